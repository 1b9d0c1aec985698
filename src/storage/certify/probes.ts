/** The checks of a store: conditional puts, reads, ranges, listings, deletions, and races of puts. */
import { isError } from '../../base/brands.ts';
import { compareStrings } from '../../base/bytes.ts';
import { StorageError } from '../../base/errors.ts';
import type { PutResult } from '../contract/driver.ts';
import type { Verdicts, CheckName } from './certification.ts';
import { expectFound, probeBytes, Violation, Inconclusive } from './prober.ts';
import type { FoundProbe, Probe, Prober, ProbeCondition } from './prober.ts';

/** An object that was created and read, and must not be changed. */
export interface Anchor {
  readonly key: string;
  readonly probe: Probe;
  readonly etag: string;
}

/** Difference of clocks above which there is a warning, in milliseconds. */
const tolerableSkewMs = 5000;
/** Stores report times in whole seconds, usually rounded down. */
const timeGrainMs = 1000;

/** Creates and reads the first object. It shows whether the store can be written and read at all, and the store's time. */
export async function probeAnchor(prober: Prober): Promise<{ readonly anchor: Anchor; readonly skewMs: number }> {
  const [key, probe] = [prober.key('anchor'), prober.probe()];
  const sentMs = prober.environment.now();
  const etag = await prober.write(key, probe, 'absent');
  const found = await prober.holds(key, probe, etag);
  return { anchor: { key, probe, etag }, skewMs: skewOf(found, sentMs, prober.environment.now()) };
}

/** Returns how far the time of an object is outside the period in which it was written. */
function skewOf({ lastModifiedMs }: FoundProbe, sentMs: number, answeredMs: number): number {
  if (lastModifiedMs > answeredMs) return lastModifiedMs - answeredMs;
  return Math.min(0, lastModifiedMs + timeGrainMs - sentMs);
}

export function judgeClock(verdicts: Verdicts, skewMs: number): void {
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  if (Math.abs(skewMs) <= tolerableSkewMs) {
    verdicts.pass('clock', "The store's clock and this machine's agree.");
    return;
  }
  verdicts.warn(
    'clock',
    `The store's clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's. No data depends on it, ` +
      'but instances take turns by their clocks, and stores refuse requests whose time is far off.',
  );
}

/** Checks create-only puts on an existing key, of bytes and of a stream. */
export async function probeCreateOnly(prober: Prober, verdicts: Verdicts, { key, probe, etag }: Anchor): Promise<void> {
  const intruder = prober.probe(
    'create-only put',
    'A create-only put (If-None-Match: *) replaced an object that was there.',
  );
  const streamed = prober.probe('streamed put', 'A streamed create-only put replaced an object that was there.');
  await prober.refused(key, intruder, 'absent');
  await prober.refused(key, streamed, 'absent', { streamed: true });
  await prober.holds(key, probe, etag);
  verdicts.pass('create-only put', 'Refused where there is an object, which was left as it was.');
  const [other, content] = [prober.key('streamed'), prober.probe()];
  await prober.write(other, content, 'absent', { streamed: true });
  // The range ends past the object, so that this also tests ranges.
  const tail = content.bytes.subarray(8);
  await prober.readRange(other, { start: 8, end: probeBytes + 1000 }, ({ bytes, sizeBytes }) => {
    return sizeBytes === probeBytes && sameBytes(bytes, tail);
  });
  verdicts.pass('streamed put', 'Created where there is nothing, refused where there is an object.');
}

/** Checks replacements by ETag, each read back, and that one with the ETag of an older version is refused. */
export async function probeUpdates(prober: Prober, verdicts: Verdicts): Promise<void> {
  const key = prober.key('register');
  const [first, second, third] = [prober.probe(), prober.probe(), prober.probe()];
  const intruder = prober.probe(
    'stale ETag',
    'A put with the ETag of an older version (If-Match) replaced a newer one.',
  );
  const firstEtag = await prober.write(key, first, 'absent');
  const secondEtag = await prober.write(key, second, { etag: firstEtag });
  expectOther(firstEtag, secondEtag);
  await prober.holds(key, second, secondEtag);
  await prober.refused(key, intruder, { etag: firstEtag });
  const seen = expectFound(await prober.read(key, { ifNoneMatch: firstEtag }), second, secondEtag);
  verdicts.pass('stale ETag', 'Refused where the object has been replaced, and changed nothing.');
  const thirdEtag = await prober.write(key, third, { etag: seen.etag });
  verdicts.pass('condition that holds', 'Puts whose condition holds are made, with the ETag of a put and of a read.');
  expectOther(firstEtag, thirdEtag);
  expectOther(secondEtag, thirdEtag);
  expectFound(await prober.read(key, { ifNoneMatch: secondEtag }), third, thirdEtag);
  verdicts.pass('ETags', 'Every version has its own, and a read answers with the one of the put.');
  verdicts.pass('reads', 'A read shows the last write at once.');
  const same = await prober.read(key, { ifNoneMatch: thirdEtag });
  if (same.status === 'unchanged') {
    verdicts.pass('conditional reads', 'Unchanged objects are answered without their bytes.');
    return;
  }
  expectFound(same, third, thirdEtag);
  verdicts.warn(
    'conditional reads',
    'A conditional read (If-None-Match) of an unchanged object gave all of its bytes: correct, but every refresh costs more.',
  );
}

function expectOther(earlier: string, later: string): void {
  if (earlier === later) throw new Violation('ETags', 'Two versions of an object had the same ETag.');
}

/** Checks that a put with an ETag is refused if there is no object. */
export async function probeMissingKey(prober: Prober, verdicts: Verdicts, { etag }: Anchor): Promise<void> {
  const key = prober.key('missing');
  const intruder = prober.probe('missing key', 'A put with an ETag (If-Match) created an object where there was none.');
  await prober.refused(key, intruder, { etag });
  const stored = await prober.read(key);
  // Nobody else writes to this key.
  if (stored.status !== 'missing') throw new Violation('missing key', intruder.intruder?.finding ?? '');
  verdicts.pass('missing key', 'A put with an ETag is refused where there is no object, and creates none.');
}

/** Checks range reads. */
export async function probeRanges(prober: Prober, verdicts: Verdicts, { key, probe, etag }: Anchor): Promise<void> {
  const part = probe.bytes.subarray(40, 72);
  await prober.readRange(key, { start: 40, end: 72 }, (found) => {
    return found.sizeBytes === probeBytes && found.etag === etag && sameBytes(found.bytes, part);
  });
  verdicts.pass('ranges', 'A read of a part gives exactly that part.');
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

/**
 * Names in the order of their UTF-8 bytes. The first two differ in characters of StoreDb's own names; the last two have the
 * opposite order in UTF-16.
 */
const names = ['list/a-b', 'list/a/\u{ff5e}', 'list/a/\u{1f600}'];
const pageLimit = 2;
/** Most pages read, for a store that always says that more follow. */
const maxPages = 6;

/** Checks that new objects are listed, over several pages, in order. */
export async function probeLists(prober: Prober, verdicts: Verdicts): Promise<void> {
  const keys = names.map((name) => prober.key(name));
  await Promise.all(keys.map((key) => prober.write(key, prober.probe(), 'absent')));
  const listed: string[] = [];
  for (let pages = 0, after: string | undefined; pages < maxPages; pages++) {
    const page = await prober.list(prober.key('list/'), pageLimit, after);
    listed.push(...page.entries.map(({ key }) => key));
    after = listed.at(-1);
    if (!page.more) break;
  }
  if (!keys.every((key) => listed.includes(key))) {
    throw new Violation('lists', 'A list did not show every object that had been written before it was asked for.');
  }
  if (listed.length !== keys.length) {
    throw new Violation('lists', 'The pages of a list showed objects twice, or objects that nobody had written.');
  }
  verdicts.pass('lists', 'A list shows what was just written, and nothing twice.');
  if (listed[0] !== keys[0]) throw new Violation('order of lists', 'Lists are not in the order of the names.');
  if (listed.every((key, at) => at === 0 || compareStrings(listed[at - 1] as string, key) < 0)) {
    verdicts.pass('order of lists', 'In the order of UTF-8 bytes, over several pages.');
    return;
  }
  verdicts.warn(
    'order of lists',
    "Lists are not in the order of UTF-8 bytes where names have characters beyond ASCII. StoreDb's own names have none.",
  );
}

/** Deletes all probes, and checks that the listed ones are no longer listed. */
export async function probeDeletions(prober: Prober, verdicts: Verdicts): Promise<void> {
  const { gone, failure } = await prober.deleteAll().catch((error: unknown) => {
    if (!(error instanceof Inconclusive) || prober.permissions.delete !== 'forbidden') throw error;
    return { gone: new Set<string>(), failure: error.message };
  });
  if (failure !== undefined) {
    verdicts.warn('deletions', `Probes could not be deleted, and stay: ${failure}`);
    return;
  }
  const deleted = names.map((name) => prober.key(name)).filter((key) => gone.has(key));
  if (deleted.length === 0) {
    verdicts.pass('deletions', 'The probes were deleted.');
    return;
  }
  const { entries } = await prober.list(prober.key('list/'), names.length, undefined);
  if (entries.some(({ key }) => deleted.includes(key))) {
    throw new Violation('lists', 'A list showed an object that had been deleted before it was asked for.');
  }
  verdicts.pass('deletions', 'The probes were deleted, and are not listed any more.');
}

const racers = 16;
/** Races of each kind that must have had a known winner. */
const minRounds = 2;
const maxRounds = 6;
/**
 * Responses, of all races of a kind together, after which no more races are run, and the fewest that suffice after the last race.
 */
const wantedAnswers = minRounds * racers * 0.5;
const minAnswers = 4;
/** Stores that limit writes of a key allow one per second. */
const keyPauseMs = 1200;

interface Tally {
  rounds: number;
  decided: number;
  answers: number;
  failure: unknown;
}

interface Winner {
  readonly probe: Probe;
  readonly etag: string;
}

interface Race {
  readonly check: CheckName;
  readonly key: string;
  readonly condition: ProbeCondition;
  /** The object before the race. */
  readonly before: Winner | undefined;
}

function emptyTally(): Tally {
  return { rounds: 0, decided: 0, answers: 0, failure: undefined };
}

function isOver({ decided, answers }: Tally): boolean {
  return decided >= minRounds && answers >= wantedAnswers;
}

/**
 * Checks that one of several puts that race for a key wins. Only this check detects a store that reads first and then writes,
 * because such a store is correct without concurrency. Some responses of a race may be unknown: failures, conflicts (409) or
 * throttling (429). The object stored afterwards shows the winner. A result is a violation only if no unknown response explains
 * it; a race that shows too little is repeated.
 */
export async function probeRaces(prober: Prober, verdicts: Verdicts): Promise<void> {
  const [creates, updates] = [emptyTally(), emptyTally()];
  for (let round = 1; round <= maxRounds && !(isOver(creates) && isOver(updates)); round++) {
    if (creates.decided < creates.rounds) await prober.pause(round);
    // A new key: a late put to an earlier key has no effect here.
    const key = prober.key(`race-${round}`);
    const winner = await run(
      prober,
      { check: 'race of creates', key, condition: 'absent', before: undefined },
      creates,
    );
    if (winner === undefined) continue;
    if (updates.decided < updates.rounds) await prober.pause(round, keyPauseMs);
    await run(prober, { check: 'race of updates', key, condition: { etag: winner.etag }, before: winner }, updates);
  }
  conclude(verdicts, 'race of creates', creates);
  conclude(verdicts, 'race of updates', updates);
}

function conclude(verdicts: Verdicts, check: CheckName, { rounds, decided, answers, failure }: Tally): void {
  if (decided >= minRounds && answers >= minAnswers) {
    verdicts.pass(check, `In ${decided} races of ${racers} puts each, one won, and what it wrote was stored.`);
    return;
  }
  const why = isError(failure) ? `: ${failure.message}` : '.';
  const message = `Too few puts were answered in ${rounds} races of ${racers}${why}`;
  verdicts.skip(check, message);
  throw new Inconclusive(message, { cause: failure });
}

/** Runs one race; undefined if it did not show the winner. */
async function run(prober: Prober, race: Race, tally: Tally): Promise<Winner | undefined> {
  const { check, key, condition } = race;
  const probes = Array.from({ length: racers }, () => prober.probe());
  tally.rounds++;
  // All are sent before the first response.
  const answers = await Promise.all(
    probes.map(async (probe) => {
      try {
        return { probe, result: await prober.put(key, probe, condition, { raced: true }) };
      } catch (error) {
        if (error instanceof Inconclusive) throw error;
        tally.failure = error;
        // Throttling counts as a response: some stores accept one put and throttle the others.
        if (error instanceof StorageError && error.reason === 'throttled') tally.answers++;
        return { probe, result: undefined };
      }
    }),
  );
  const won = answers.flatMap(({ probe, result }) =>
    result?.status === 'written' ? [{ probe, etag: result.etag }] : [],
  );
  tally.answers += answers.filter(({ result }) => result !== undefined).length;
  if (won.length > 1) {
    throw new Violation(check, `Of ${racers} ${describe(race)} at the same time, ${won.length} were made; one may be.`);
  }
  const winner = await findWinner(prober, race, answers, won[0]);
  if (winner !== undefined) tally.decided++;
  return winner;
}

/**
 * Finds the winner by the stored object. If no put was reported as written, the winner may be one without a response, or one with
 * a wrong response.
 */
async function findWinner(
  prober: Prober,
  race: Race,
  answers: readonly { readonly probe: Probe; readonly result: PutResult | undefined }[],
  told: Winner | undefined,
): Promise<Winner | undefined> {
  const { check, key, before } = race;
  const stored = await prober.read(key);
  const mayHaveWon = stored.status === 'found' && answers.some(({ probe }) => probe === stored.probe);
  if (mayHaveWon && told !== undefined && stored.probe !== told.probe) {
    throw new Violation(
      check,
      `Of ${racers} ${describe(race)} at the same time, one was told that it was made, and another one was stored.`,
    );
  }
  if (told !== undefined) return expectFound(stored, told.probe, told.etag);
  if (mayHaveWon) return stored;
  if (before !== undefined) expectFound(stored, before.probe, before.etag);
  if (answers.every(({ result }) => result !== undefined)) {
    throw new Violation(check, `Of ${racers} ${describe(race)} at the same time, none was made, although one must be.`);
  }
  return undefined;
}

function describe({ condition }: Race): string {
  return condition === 'absent' ? 'create-only puts' : 'puts with one ETag';
}
