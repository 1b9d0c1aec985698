/**
 * A whole stored database with one to three objects damaged: it opens and answers right, or says that something is wrong.
 * Where checksums were made right again answers may be wrong, but nothing crashes, hangs or takes up memory without
 * bounds. To repeat one case: FUZZ_SEED=… FUZZ_CASE=…
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CorruptionError, StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { damageOf } from './database-damage.ts';
import type { Damage } from './database-damage.ts';
import { OverlayStore } from './overlay-store.ts';
import type { Objects } from './overlay-store.ts';
import { askAll, orRefusal, statesOf, wrongAnswers } from './questions.ts';
import type { Answers } from './questions.ts';
import { buildDatabase, dbPrefix, openDatabase } from './stored-database.ts';
import type { StoredDatabase } from './stored-database.ts';

const CASES = Number(process.env['FUZZ_DATABASES'] ?? 900);
const SEED = process.env['FUZZ_SEED'] ?? '1';
const ONLY = process.env['FUZZ_CASE'];

/** All questions and verify() together make some hundreds. */
const maxRequests = 20_000;
const maxMs = 5000;

interface Tally {
  refusedToOpen: number;
  rightAnswers: number;
  refusals: number;
  olderStates: number;
  foundByVerify: number;
  merged: number;
  repaired: number;
}

let stored: StoredDatabase;
let objects: Objects;
/** The answers in every state since the last merge and before: by the last slot of the log. */
let history: Answers[];
const stackDepth = Error.stackTraceLimit;

beforeAll(async () => {
  stored = await buildDatabase();
  objects = new Map([...stored.objects].map(([name, bytes]) => [`${dbPrefix}/${name}`, bytes]));
  history = [];
  for (let slot = 0; slot <= stored.tail; slot++) history.push(await answersAt(slot));
  if (ONLY === undefined) Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackDepth;
});

/** What the database answered when its log ended at a slot: from its first Block 0 and that much of the log. */
async function answersAt(slot: number): Promise<Answers> {
  const changes = new Map<string, Uint8Array | undefined>([[`${dbPrefix}/block0`, stored.oldBlock0s[0]]]);
  for (const name of stored.objects.keys()) {
    if (name.startsWith('committed/') && Number(name.slice(10)) > slot) changes.set(`${dbPrefix}/${name}`, undefined);
  }
  const db = openDatabase(new OverlayStore(objects, changes, maxRequests), 1);
  await db.start();
  const answers = await askAll(db);
  expect(answers.filter((answer) => answer instanceof StoreDbError)).toEqual([]);
  await db.stop();
  return answers;
}

class Case {
  readonly #damage: Damage;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  readonly #seed: number;

  constructor(number: number, tally: Tally) {
    this.#random = new SeededRandom(`${SEED} database ${number}`);
    this.#damage = damageOf(stored, this.#random);
    this.#seed = number;
    this.#tally = tally;
  }

  get what(): string {
    return this.#damage.what.join(', ');
  }

  async run(): Promise<void> {
    const db = openDatabase(new OverlayStore(objects, this.#damage.changes, maxRequests), this.#seed);
    const opened = await orRefusal(() => db.start());
    if (opened instanceof StoreDbError) {
      this.#tally.refusedToOpen++;
      return;
    }
    const answers = await askAll(db);
    this.#tally.refusals += answers.filter((answer) => answer instanceof StoreDbError).length;
    if (!this.#damage.sealed) this.#judge(answers);
    if (this.#random.chance(0.5)) await this.#verify(db, answers);
    if (this.#random.chance(0.05)) await this.#repair(db);
    if (this.#random.chance(0.3)) {
      await orRefusal(() => db.checkpoint());
      await askAll(db);
      this.#tally.merged++;
    }
    await db.stop();
  }

  /** What a query stumbles over, verify() finds. Blobs it reads only if it is asked to. */
  async #verify(db: Database, answers: Answers): Promise<void> {
    const deep = this.#random.chance(0.5);
    const report = await orRefusal(() => db.verify({ deep }));
    const found = report instanceof StoreDbError || !report.ok;
    if (found) this.#tally.foundByVerify++;
    const blobs = answers.length - 1;
    const isDamaged = answers.some((answer, q) => answer instanceof CorruptionError && (deep || q !== blobs));
    if (isDamaged && !found) throw new Error('verify() does not find what a query stumbled over');
  }

  /** A repair makes nothing worse, and if it says that nothing is wrong any more, that is so. */
  async #repair(db: Database): Promise<void> {
    const report = await orRefusal(() => db.repair());
    if (report instanceof StoreDbError) return;
    if (report.repaired.length > 0) this.#tally.repaired++;
    const answers = await askAll(db);
    if (!this.#damage.sealed) this.#judge(answers);
    const again = await orRefusal(() => db.repair());
    if (again instanceof StoreDbError) throw new Error(`the second repair fails: ${again.message}`, { cause: again });
    if (again.repaired.length > 0) throw new Error('the second repair makes an index anew again');
    if (again.ok !== report.ok) throw new Error(`the second repair finds ${JSON.stringify(again.unrepairable)}`);
  }

  /** With every checksum as it was written, an answer is right, and all of them are of one state. */
  #judge(answers: Answers): void {
    const last = history.length - 1;
    const states = statesOf(answers, history);
    if (states.includes(last)) this.#tally.rightAnswers++;
    else if (this.#damage.timeTravel && states.length > 0) this.#tally.olderStates++;
    else throw new Error(`wrong answers: ${wrongAnswers(answers, history[last] as Answers)}`);
  }
}

async function runCase(number: number, tally: Tally): Promise<void> {
  const one = new Case(number, tally);
  const startedMs = performance.now();
  try {
    await one.run();
    const tookMs = performance.now() - startedMs;
    if (tookMs > maxMs) throw new Error(`it took ${Math.round(tookMs)} ms`);
  } catch (cause) {
    throw new Error(`FUZZ_SEED=${SEED} FUZZ_CASE=${number} (${one.what}): ${String(cause)}`, { cause });
  }
}

describe('a stored database, damaged', () => {
  it('is one with all that can be damaged', () => {
    const kinds = new Set([...stored.objects.keys()].map((name) => name.split('/')[0]));
    expect(kinds).toEqual(new Set(['blobs', 'block0', 'committed', 'data', 'indexes', 'staged']));
    expect(stored.tail - stored.appliedSeq).toBe(3);
    expect(stored.objects.size).toBeGreaterThan(60);
  });

  it('answers right, or says that something is wrong', { timeout: 60_000 + CASES * 50 }, async ({ annotate }) => {
    const tally: Tally = {
      refusedToOpen: 0,
      rightAnswers: 0,
      refusals: 0,
      olderStates: 0,
      foundByVerify: 0,
      merged: 0,
      repaired: 0,
    };
    if (ONLY !== undefined) return runCase(Number(ONLY), tally);
    const failures: string[] = [];
    for (let number = 0; number < CASES && failures.length < 20; number++) {
      await runCase(number, tally).catch((error: unknown) => failures.push(String(error)));
    }
    expect(failures).toEqual([]);
    await annotate(JSON.stringify(tally));
    // A repair takes as long as many other cases, and few damages leave anything to repair.
    const { repaired, ...others } = tally;
    expect(repaired).toBeGreaterThan(CASES / 2000);
    for (const count of Object.values(others)) expect(count).toBeGreaterThan(CASES / 250);
  });
});
