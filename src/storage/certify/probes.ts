/** Checks of a store: conditions of writes, and that reads see the last one. */
import { isError } from '../../base/brands.ts';
import { compareStrings } from '../../base/bytes.ts';
import { StorageError } from '../../base/errors.ts';
import type { PutResult } from '../contract/driver.ts';
import type { Verdicts, CheckName } from './certification.ts';
import { expectFound, probeBytes, Violation, Unsettled } from './prober.ts';
import type { FoundProbe, Probe, Prober, ProbeCondition } from './prober.ts';

/** An object that was created, read, and is not to be changed. */
export interface Anchor {
  readonly key: string;
  readonly probe: Probe;
  readonly etag: string;
}

/** Clocks that differ by more than this are worth a word. */
const tolerableSkewMs = 5000;
/** Stores give times in whole seconds, mostly cut off. */
const timeGrainMs = 1000;

/** The first object: whether anything can be written and read at all, and what time the store thinks it is. */
export async function probeAnchor(prober: Prober): Promise<{ readonly anchor: Anchor; readonly skewMs: number }> {
  const [key, probe] = [prober.key('anchor'), prober.probe()];
  const sentMs = prober.environment.now();
  const etag = await prober.write(key, probe, 'absent');
  const found = await prober.holds(key, probe, etag);
  return { anchor: { key, probe, etag }, skewMs: skewOf(found, sentMs, prober.environment.now()) };
}

/** How far the time of an object is from the time in which it was written. */
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

/** A create-only put on an existing key, from memory and as a stream. */
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
  // Past the end, so that this says something about ranges as well.
  const tail = content.bytes.subarray(8);
  await prober.readRange(other, { start: 8, end: probeBytes + 1000 }, ({ bytes, sizeBytes }) => {
    return sizeBytes === probeBytes && sameBytes(bytes, tail);
  });
  verdicts.pass('streamed put', 'Created where there is nothing, refused where there is an object.');
}

/** Replacements by ETag, each read back; one with the ETag of an older version is refused. */
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

/** A put with an ETag where there is no object. */
export async function probeMissingKey(prober: Prober, verdicts: Verdicts, { etag }: Anchor): Promise<void> {
  const key = prober.key('missing');
  const intruder = prober.probe('missing key', 'A put with an ETag (If-Match) created an object where there was none.');
  await prober.refused(key, intruder, { etag });
  const stored = await prober.read(key);
  // Nobody else writes there.
  if (stored.status !== 'missing') throw new Violation('missing key', intruder.intruder?.finding ?? '');
  verdicts.pass('missing key', 'A put with an ETag is refused where there is no object, and creates none.');
}

/** Parts of an object. */
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

// Checks of a store: listings, their order, and deletions.

/**
 * Names in the order of their UTF-8 bytes. The first two differ in characters as StoreDb's own names have them; the last
 * two are the other way round in UTF-16.
 */
const names = ['list/a-b', 'list/a/\u{ff5e}', 'list/a/\u{1f600}'];
const pageLimit = 2;
/** A store that says for ever that more follows is not asked for ever. */
const maxPages = 6;

/** What was just put is listed, over several pages, in order. */
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

/** Deletes all probes; those of the lists are not listed any more. */
export async function probeDeletions(prober: Prober, verdicts: Verdicts): Promise<void> {
  const { gone, failure } = await prober.deleteAll().catch((error: unknown) => {
    if (!(error instanceof Unsettled) || prober.permissions.delete !== 'forbidden') throw error;
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

// Checks of a store: of puts that race for one key, one wins. A store that looks first and then writes is found out
// here only, since it is right whenever nobody else is there.
//
// Some answers of a race may be unknown: failures, or "look again" (409), or "slower" (429). What is stored afterwards
// tells who won. Only what no unknown answer explains is a violation; a race that shows too little is run again.

const racers = 16;
/** Races of each kind that must have shown who won. */
const minRounds = 2;
const maxRounds = 6;
/** Answers, of all races of a kind together, that end the races; and how few will do after the last. */
const wantedAnswers = minRounds * racers * 0.5;
const minAnswers = 4;
/** Stores that limit how often a key is written allow it once a second. */
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
  /** What is there before the race. */
  readonly before: Winner | undefined;
}

function emptyTally(): Tally {
  return { rounds: 0, decided: 0, answers: 0, failure: undefined };
}

function isOver({ decided, answers }: Tally): boolean {
  return decided >= minRounds && answers >= wantedAnswers;
}

export async function probeRaces(prober: Prober, verdicts: Verdicts): Promise<void> {
  const [creates, updates] = [emptyTally(), emptyTally()];
  for (let round = 1; round <= maxRounds && !(isOver(creates) && isOver(updates)); round++) {
    if (creates.decided < creates.rounds) await prober.pause(round);
    // A key of its own: whatever is still on its way to another one changes nothing here.
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
  throw new Unsettled(message, { cause: failure });
}

/** One race; undefined if it did not show who won. */
async function run(prober: Prober, race: Race, tally: Tally): Promise<Winner | undefined> {
  const { check, key, condition } = race;
  const probes = Array.from({ length: racers }, () => prober.probe());
  tally.rounds++;
  // All are sent before any is answered.
  const answers = await Promise.all(
    probes.map(async (probe) => {
      try {
        return { probe, result: await prober.put(key, probe, condition, { raced: true }) };
      } catch (error) {
        if (error instanceof Unsettled) throw error;
        tally.failure = error;
        // A store that lets one through and asks the others to go slower has answered them, whatever became of them.
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

/** Who won, by what is stored. Where nobody was told that it won, that may be a writer that heard nothing, or a wrong answer. */
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
