/**
 * Checks of a store: of puts that race for one key, one wins. A store that looks first and then writes is found out
 * here only, since it is right whenever nobody else is there.
 *
 * Some answers of a race may be unknown: failures, or "look again" (409), or "slower" (429). What is stored afterwards
 * tells who won. Only what no unknown answer explains is a violation; a race that shows too little is run again.
 */
import { isError } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import type { CheckName, Verdicts } from './certification.ts';
import type { PutResult } from '../contract/driver.ts';
import { expectFound, Unsettled, Violation } from './prober.ts';
import type { Probe, ProbeCondition, Prober } from './prober.ts';

const racers = 16;
/** Races of each kind that must have shown who won. */
const leastRounds = 2;
const maxRounds = 6;
/** Answers, of all races of a kind together, that end the races; and how few will do after the last. */
const wantedAnswers = leastRounds * racers * 0.5;
const leastAnswers = 4;
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
  return decided >= leastRounds && answers >= wantedAnswers;
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
  if (decided >= leastRounds && answers >= leastAnswers) {
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

/** Who won, by what is stored. Where nobody was told that it won, that may be whoever heard nothing, or a wrong thing. */
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
