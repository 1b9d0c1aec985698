/** The continuous work of a process of a lane: several workers, each one operation after the other. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../src/api/database.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { addUp, audit, chooseTransfer, readBalances, transferGuarded } from './bank-workload.ts';
import { flushOnce } from './flush.ts';
import type { Patience } from './flush.ts';
import type { Asked, FieldRows, Shown } from './history.ts';
import type { LaneTask } from './lane-protocol.ts';
import { appendGuarded, chooseKeys, readLists } from './list-workload.ts';
import { readPapers, readPapersNow, writePaper } from './paper-workload.ts';
import { banks, fieldNames, guardedBank, marks, shared, sharedRows } from './tables.ts';
import type { Teller } from './telling.ts';
import { appendInTransaction, chooseManner, transferInTransaction } from './transaction-workload.ts';

/** A flush has this long mostly; some have hardly any time, so that they are given up in every place. */
const usualPatienceMs = 10_000;
/** Snapshots of killed processes are to expire. */
const snapshotMs = 30_000;

export class LaneWorkers {
  readonly #db: Database;
  readonly #task: LaneTask;
  readonly #teller: Teller;
  readonly #random: SeededRandom;
  /** Flushes of marks that were acknowledged and are to be deleted again. */
  readonly #marked: string[][] = [];
  #values = 0;
  #isFinishing = false;

  constructor(db: Database, task: LaneTask, teller: Teller) {
    this.#db = db;
    this.#task = task;
    this.#teller = teller;
    this.#random = new SeededRandom(task.seed);
  }

  /** Nothing new is begun from now on. */
  finish(): void {
    this.#isFinishing = true;
  }

  /** Resolves when all has ended that was begun before `finish()`. */
  async run(): Promise<void> {
    const steps = [
      () => this.#lists(),
      () => this.#lists(),
      () => this.#bank(),
      () => this.#rows(),
      () => this.#reads(),
      () => this.#care(),
      () => this.#snapshots(),
    ];
    await Promise.all(steps.map((step) => this.#repeat(step)));
  }

  async #repeat(step: () => Promise<boolean>): Promise<void> {
    while (!this.#isFinishing) {
      const wentWell = await step();
      // What fails may do so at once, again and again.
      await sleep(this.#random.between(0, this.#task.pauseMs) + (wentWell ? 0 : this.#task.pauseMs));
    }
  }

  #do(id: string, asked: Asked, call: (onRetry: () => void) => Promise<Shown | undefined>): Promise<boolean> {
    return this.#teller.perform(id, asked, call);
  }

  #patience(): Patience {
    const random = this.#random;
    const ms = random.chance(0.1) ? random.between(1, 400) : usualPatienceMs;
    return { ms: Math.ceil(ms), settles: random.chance(0.6) };
  }

  /** Lists under guards, or in transactions; some only read, in a query or in a transaction. */
  #lists(): Promise<boolean> {
    const random = this.#random;
    const id = this.#teller.nextId();
    const isGuarded = random.chance(0.4);
    const keys = chooseKeys(random, this.#teller.nowMs(), isGuarded ? ['g'] : ['r', 'e']);
    const patience = this.#patience();
    if (isGuarded) {
      const asked = { kind: 'lists', reads: keys, appends: keys.map((key) => [key, id] as const) } as const;
      return this.#do(id, asked, (onRetry) => appendGuarded(this.#db, asked, patience, onRetry));
    }
    const written = keys.slice(0, random.integer(0, keys.length));
    const asked = { kind: 'lists', reads: keys, appends: written.map((key) => [key, id] as const) } as const;
    const manner = chooseManner(random, patience);
    return this.#do(id, asked, (onRetry) => appendInTransaction(this.#db, asked, manner, onRetry));
  }

  #bank(): Promise<boolean> {
    const random = this.#random;
    if (random.chance(0.2)) return this.#balances();
    const id = this.#teller.nextId();
    const asked = chooseTransfer(random, random.pick(banks), id);
    const patience = this.#patience();
    if (asked.bank === guardedBank)
      return this.#do(id, asked, (onRetry) => transferGuarded(this.#db, asked, patience, onRetry));
    const manner = chooseManner(random, patience);
    return this.#do(id, asked, (onRetry) => transferInTransaction(this.#db, asked, manner, onRetry));
  }

  #balances(): Promise<boolean> {
    const bank = this.#random.pick(banks);
    const read = async (): Promise<Shown> => ({ balances: await readBalances(this.#db, bank) });
    return this.#do(this.#teller.nextId(), { kind: 'balances', bank }, read);
  }

  /** Plain flushes. One worker makes them, so that those of a field come one after the other. */
  #rows(): Promise<boolean> {
    const dice = this.#random.next();
    if (dice < 0.4) return this.#mark();
    if (dice < 0.6 && this.#marked.length > 0) return this.#unmark();
    return dice < 0.75 ? this.#paper() : this.#field();
  }

  async #mark(): Promise<boolean> {
    const id = this.#teller.nextId();
    const own = Array.from({ length: this.#random.integer(1, 4) }, (_, i) => `${id}.${i}`);
    const done = await this.#do(id, { kind: 'mark', marks: own }, async () => {
      const batch = this.#db.batch();
      for (const mark of own) void batch.insert(marks, { id: mark, flush: id });
      await flushOnce(batch, this.#patience());
      return undefined;
    });
    if (done) this.#marked.push(own);
    return done;
  }

  #unmark(): Promise<boolean> {
    const own = this.#marked.shift() as string[];
    return this.#do(this.#teller.nextId(), { kind: 'unmark', marks: own }, async () => {
      const batch = this.#db.batch();
      for (const mark of own) void batch.delete(marks, mark);
      await flushOnce(batch, this.#patience());
      return undefined;
    });
  }

  /** Higher than any before it in this lane. */
  #nextValue(): number {
    return this.#task.life * 100_000 + ++this.#values;
  }

  #paper(): Promise<boolean> {
    const field = `paper${this.#task.lane}`;
    const value = this.#nextValue();
    return this.#do(this.#teller.nextId(), { kind: 'field', row: 'papers', field, value }, async () => {
      await writePaper(this.#db, field, value, this.#patience());
      return undefined;
    });
  }

  #field(): Promise<boolean> {
    const row = this.#random.pick(sharedRows);
    const field = fieldNames[this.#task.lane] as string;
    const value = this.#nextValue();
    return this.#do(this.#teller.nextId(), { kind: 'field', row, field, value }, async () => {
      const batch = this.#db.batch();
      void batch.update('shared', { id: row, [field]: value });
      await flushOnce(batch, this.#patience());
      return undefined;
    });
  }

  #reads(): Promise<boolean> {
    const dice = this.#random.next();
    if (dice < 0.3) return this.#balances();
    const id = this.#teller.nextId();
    if (dice < 0.6) {
      const read = dice < 0.35 ? readPapersNow : readFields;
      return this.#do(id, { kind: 'fields' }, async () => ({ fields: await read(this.#db) }));
    }
    // One query shows one moment; lists that are stored otherwise would take another one.
    const keys = chooseKeys(this.#random, this.#teller.nowMs(), [this.#random.pick(['g', 'r', 'e'] as const)]);
    return this.#do(id, { kind: 'lists', reads: keys, appends: [] }, () => readLists(this.#db, keys));
  }

  /** Merges, and collects garbage. */
  async #care(): Promise<boolean> {
    await sleep(this.#random.between(0, 6 * this.#task.pauseMs));
    if (this.#isFinishing) return true;
    const id = this.#teller.nextId();
    const quietly = async (call: Promise<unknown>): Promise<undefined> => {
      await call;
      return undefined;
    };
    const signal = AbortSignal.timeout(usualPatienceMs);
    const dice = this.#random.next();
    if (dice < 0.5) {
      const options = { graceMs: 0, loopGraceMs: 0, logRetentionMs: this.#random.chance(0.7) ? 0 : 3000, signal };
      return this.#do(id, { kind: 'gc' }, () => quietly(this.#db.gc(options)));
    }
    if (dice < 0.75) return this.#do(id, { kind: 'checkpoint' }, () => quietly(this.#db.checkpoint({ signal })));
    return this.#do(id, { kind: 'refresh' }, () => quietly(this.#db.refresh({ signal })));
  }

  async #snapshots(): Promise<boolean> {
    await sleep(this.#random.between(0, 6 * this.#task.pauseMs));
    if (this.#isFinishing) return true;
    const bank = this.#random.pick(banks);
    const id = this.#teller.nextId();
    if (this.#random.chance(0.3)) return this.#do(id, { kind: 'audit', bank }, () => audit(this.#db, bank));
    return this.#do(id, { kind: 'hold', bank }, () => this.#hold(bank));
  }

  /** Holds a snapshot for some time, in which others merge and collect garbage. */
  async #hold(bank: string): Promise<Shown> {
    const snapshot = await this.#db.snapshot({ expiresAfterMs: snapshotMs });
    try {
      const keys = chooseKeys(this.#random, this.#teller.nowMs(), [this.#random.pick(['g', 'r', 'e'] as const)]);
      const text = async (): Promise<string> =>
        JSON.stringify([await readLists(snapshot, keys), await readFields(snapshot)]);
      const first = await text();
      await sleep(this.#random.between(100, 3000));
      // Also what has not been read before, and is not in memory.
      return { first, again: await text(), fields: await readPapers(snapshot), ...(await addUp(snapshot, bank)) };
    } finally {
      await snapshot.release().catch(() => undefined);
    }
  }
}

export async function readFields(db: Pick<Database, 'query'>): Promise<FieldRows> {
  const rows = await db.query(shared).execute();
  return Object.fromEntries(
    rows.map(({ id, a, b, c, d }) => [id, { a: a as number, b: b as number, c: c as number, d: d as number }]),
  );
}
