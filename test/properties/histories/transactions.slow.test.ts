/**
 * Random transactions on several nodes, with batches, merges, garbage collection, lost slots and a store that fails in between, against a
 * serial run: each that committed, replayed on plain maps in the order of the log, reads what it read.
 */
import { describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { decodeCommit } from '../../../src/format/commit.ts';
import type { Commit } from '../../../src/format/commit.ts';
import { parseCommitName } from '../../../src/format/object-names.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { RowLayout } from '../../../src/format/row-layout.ts';
import { Types } from '../../../src/format/types.ts';
import type { Faults } from '../../../src/testing/faults.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { PutBody, PutOptions, PutResult } from '../../../src/storage/contract/driver.ts';
import type { Transaction } from '../../../src/transaction/transaction.ts';

const rows = {
  name: 'rows',
  version: 1,
  fields: { id: { typeId: Types.int32 }, a: { typeId: Types.int32 }, b: { typeId: Types.int32 } },
  primaryKey: 'id',
  indexes: ['a'],
} as const;

/** Every committed transaction leaves its name here, so that the order of all of them can be read from the log. */
const done = { name: 'done', version: 1, fields: { id: { typeId: Types.varchar } }, primaryKey: 'id' } as const;

interface Row {
  readonly id: number;
  readonly a: number | null;
  readonly b: number | null;
}

type Condition = { readonly field: 'id' | 'a' | 'b'; readonly operator: '=' | '<' | '>='; readonly value: number };

/** A step that a transaction takes. What it writes is worked out from all that it has read before. */
type Step =
  | { readonly kind: 'get'; readonly id: number }
  | { readonly kind: 'find'; readonly conditions: readonly Condition[] }
  | { readonly kind: 'count'; readonly conditions: readonly Condition[] }
  | { readonly kind: 'odd'; readonly odd: boolean }
  | { readonly kind: 'upsert' | 'insert'; readonly id: number }
  | { readonly kind: 'delete'; readonly id: number }
  | { readonly kind: 'update'; readonly id: number; readonly field: 'a' | 'b' }
  | { readonly kind: 'deleteWhere'; readonly conditions: readonly Condition[] };

/** A store that notes what comes into the log, and when. */
class RecordedStore extends MemoryDriver {
  readonly #log: Map<number, Commit>;

  constructor(options: ConstructorParameters<typeof MemoryDriver>[0], log: Map<number, Commit>) {
    super(options);
    this.#log = log;
  }

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    const slot = parseCommitName(key.slice('db/'.length));
    if (slot === undefined || result.status !== 'written' || this.#log.has(slot)) return result;
    this.#log.set(slot, decodeCommit(slot, body as Uint8Array));
    return result;
  }
}

type BlindStep = Extract<Step, { readonly kind: 'upsert' | 'insert' | 'delete' | 'update' }>;

function isBlind(step: Step): step is BlindStep {
  return ['upsert', 'insert', 'delete', 'update'].includes(step.kind);
}

const keys = 12;
const values = 6;

function isOdd({ b }: { readonly b?: unknown }): boolean {
  return ((b as number | null) ?? 0) % 2 === 1;
}

function matches(row: Row, conditions: readonly Condition[]): boolean {
  return conditions.every(({ field, operator, value }) => {
    const actual = row[field];
    if (actual === null) return false;
    return operator === '=' ? actual === value : operator === '<' ? actual < value : actual >= value;
  });
}

function randomCondition(random: SeededRandom): Condition {
  const field = random.pick(['id', 'a', 'a', 'b'] as const);
  const operator = random.pick(['=', '<', '>='] as const);
  return { field, operator, value: random.integer(0, field === 'id' ? keys : values) };
}

function randomSteps(random: SeededRandom): Step[] {
  return Array.from({ length: random.integer(1, 5) }, (): Step => {
    const id = random.integer(0, keys - 1);
    const conditions = Array.from({ length: random.integer(0, 2) }, () => randomCondition(random));
    const kind = random.pick([
      'get',
      'get',
      'find',
      'count',
      'odd',
      'upsert',
      'update',
      'update',
      'insert',
      'delete',
      'deleteWhere',
    ] as const);
    switch (kind) {
      case 'find':
      case 'count':
      case 'deleteWhere':
        return { kind, conditions: kind === 'deleteWhere' ? [...conditions, randomCondition(random)] : conditions };
      case 'odd':
        return { kind, odd: random.chance(0.5) };
      case 'update':
        return { kind, id, field: random.pick(['a', 'b'] as const) };
      default:
        return { kind, id };
    }
  });
}

/** Something that follows from everything that was read. */
function digest(reads: readonly unknown[]): number {
  let sum = 7;
  for (const char of JSON.stringify(reads)) sum = (sum * 31 + char.charCodeAt(0)) % 10_007;
  return sum % values;
}

/** Takes the steps on a database; what was read. */
async function take(tx: Transaction, steps: readonly Step[], pause: () => Promise<void>): Promise<unknown[]> {
  const reads: unknown[] = [];
  const query = (conditions: readonly Condition[]): ReturnType<typeof tx.query<typeof rows>> => {
    let built = tx.query(rows);
    for (const { field, operator, value } of conditions) built = built.where(field, operator, value);
    return built;
  };
  for (const step of steps) {
    await pause();
    if (step.kind === 'get') reads.push((await tx.get(rows, step.id)) ?? null);
    else if (step.kind === 'find') reads.push(await query(step.conditions).execute());
    else if (step.kind === 'count') reads.push(await query(step.conditions).count());
    else if (step.kind === 'odd') reads.push(await tx.query(rows).where('isOdd', '=', step.odd).execute());
    else if (step.kind === 'deleteWhere') reads.push(await tx.deleteWhere(query(step.conditions)));
    else if (step.kind === 'delete') await tx.delete(rows, step.id);
    else if (step.kind === 'update') await tx.update(rows, { id: step.id, [step.field]: digest(reads) });
    else await tx[step.kind](rows, { id: step.id, a: digest(reads), b: digest([...reads, 1]) });
  }
  return reads;
}

/** The same on a map, which it changes; undefined if the transaction must have been rejected. */
function replay(state: Map<number, Row>, steps: readonly Step[]): unknown[] | undefined {
  const reads: unknown[] = [];
  const sorted = (test: (row: Row) => boolean): Row[] =>
    [...state.values()].filter((row) => test(row)).toSorted((x, y) => x.id - y.id);
  for (const step of steps) {
    if (step.kind === 'get') reads.push(state.get(step.id) ?? null);
    else if (step.kind === 'find') reads.push(sorted((row) => matches(row, step.conditions)));
    else if (step.kind === 'count') reads.push(sorted((row) => matches(row, step.conditions)).length);
    else if (step.kind === 'odd') reads.push(sorted((row) => isOdd(row) === step.odd));
    else if (step.kind === 'deleteWhere') {
      const found = sorted((row) => matches(row, step.conditions));
      for (const { id } of found) state.delete(id);
      reads.push(found.length);
    } else if (step.kind === 'delete') state.delete(step.id);
    else if (step.kind === 'update') {
      const row = state.get(step.id);
      if (row === undefined) return undefined;
      state.set(step.id, { ...row, [step.field]: digest(reads) });
    } else {
      if (step.kind === 'insert' && state.has(step.id)) return undefined;
      state.set(step.id, { id: step.id, a: digest(reads), b: digest([...reads, 1]) });
    }
  }
  return reads;
}

const noFaults: Faults = { latencyMs: [1, 60] };
const faults: Faults = {
  lostRequest: 0.02,
  lostAnswer: 0.03,
  lateEffect: 0.02,
  falseLoss: 0.02,
  refused: 0.01,
  slow: 0.05,
  slowMs: [200, 2000],
  lateMs: [100, 5000],
};
/** Those that leave no doubt that nothing was committed. */
const rejections = new Set(['DUPLICATE_KEY', 'ROW_NOT_FOUND', 'TRANSACTION_CONFLICT', 'CONTENTION', 'STORAGE']);

class History {
  readonly #random: SeededRandom;
  readonly #clock: VirtualEnvironment;
  readonly #plans = new Map<string, readonly Step[]>();
  /** What each transaction that committed has read. */
  readonly #reads = new Map<string, unknown[]>();
  /** Commits by slot. Of two that were put into one slot, the second came to a dead one, and decides nothing. */
  readonly #log = new Map<number, Commit>();
  readonly #databases: Database[] = [];
  readonly #drivers: FaultyDriver[] = [];
  /** Those of whose outcome nobody could tell. */
  readonly unknown: string[] = [];
  conflicts = 0;
  committed = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#clock = new VirtualEnvironment({ seed });
  }

  async run(): Promise<void> {
    const store = new RecordedStore({ environment: this.#clock }, this.#log);
    for (let nodeId = 0; nodeId < 3; nodeId++) {
      const environment = this.#clock.fork({ seed: `${nodeId} of ${this.#random.integer(0, 1_000_000)}` });
      const faulty = new FaultyDriver(store, { environment, seed: nodeId, faults: noFaults });
      this.#drivers.push(faulty);
      const driver = environment.connect(faulty);
      const turns = { writeForwardInterval: 400, polling: 'interval', mergePolicy: { minCommits: 1 } } as const;
      const options = { dbPrefix: 'db', nodeId, driver, ...turns, blockSizeBytes: 512 };
      const db = createDatabase({ ...options, logLevel: 'silent' }, environment);
      for (const schema of [rows, done]) db.registerSchema(schema);
      db.registerFunction('isOdd', isOdd);
      await this.#clock.run(db.start());
      this.#databases.push(db);
    }
    if (this.#random.chance(0.4)) this.#setFaults({ ...noFaults, ...faults });
    const working = this.#databases.flatMap((db, node) => [0, 1].map((worker) => this.#work(db, `${node}.${worker}`)));
    await this.#clock.run(Promise.all([...working, this.#disturb()]));
    this.#check();
    this.#setFaults(noFaults);
    for (const db of this.#databases) {
      await this.#clock.run(db.refresh());
      this.conflicts += db.stats().transactions.conflicts;
      this.committed += db.stats().transactions.committed;
    }
    const [first] = this.#databases as [Database];
    expect(await this.#clock.run(first.verify())).toMatchObject({ ok: true, findings: [] });
    for (const db of this.#databases) await this.#clock.run(db.stop());
  }

  #setFaults(all: Faults): void {
    for (const driver of this.#drivers) driver.faults = all;
  }

  async #pause(ms: number): Promise<void> {
    await sleep(this.#clock, this.#random.next() * ms);
  }

  async #work(db: Database, worker: string): Promise<void> {
    for (let n = 0; n < 8; n++) {
      await this.#pause(300);
      const name = `${worker}.${n}`;
      const steps = randomSteps(this.#random);
      const blind = this.#random.chance(0.2);
      this.#plans.set(name, blind ? steps.filter(isBlind) : steps);
      try {
        this.#reads.set(name, await (blind ? this.#flush(db, name) : this.#transact(db, name)));
      } catch (error) {
        const { code = '' } = error as { code?: string };
        if (code === 'COMMIT_OUTCOME_UNKNOWN') this.unknown.push(name);
        else if (!rejections.has(code)) throw error;
      }
    }
  }

  #transact(db: Database, name: string): Promise<unknown[]> {
    return db.transaction(async (tx) => {
      const pause = (): Promise<void> => this.#pause(this.#random.chance(0.2) ? 200 : 0);
      const reads = await take(tx, this.#plans.get(name) as readonly Step[], pause);
      await tx.insert(done, { id: name });
      return reads;
    });
  }

  /** The same as a batch, which reads nothing. */
  async #flush(db: Database, name: string): Promise<unknown[]> {
    const batch = db.batch();
    for (const step of (this.#plans.get(name) as readonly Step[]).filter(isBlind)) {
      const { id } = step;
      if (step.kind === 'delete') void batch.delete(rows, id);
      else if (step.kind === 'update') void batch.update(rows, { id, [step.field]: digest([]) });
      else void batch[step.kind](rows, { id, a: digest([]), b: digest([1]) });
    }
    void batch.insert(done, { id: name });
    await batch.flush();
    return [];
  }

  /** Merges and collects garbage while the others work. */
  async #disturb(): Promise<void> {
    for (let n = 0; n < 6; n++) {
      await this.#pause(500);
      const db = this.#random.pick(this.#databases);
      await db.checkpoint().catch(() => undefined);
      const options = { graceMs: 0, loopGraceMs: 0, ...(this.#random.chance(0.3) && { logRetentionMs: 0 }) };
      if (this.#random.chance(0.5)) await db.gc(options).catch(() => undefined);
    }
  }

  /** The names of what was committed, in the order of the log. */
  *#order(): Generator<string> {
    const layout = new RowLayout(Object.entries(done.fields).map(([name, { typeId }]) => ({ name, typeId })));
    for (const slot of [...this.#log.keys()].toSorted((x, y) => x - y)) {
      for (const { changes } of (this.#log.get(slot) as Commit).members) {
        for (const { schema, node } of changes) {
          if (schema.name === done.name) yield decodeRow(layout, node, node.rowBase(0))['id'] as string;
        }
      }
    }
  }

  #check(): void {
    const state = new Map<number, Row>();
    const committed = [...this.#order()];
    for (const name of committed) {
      const reads = replay(state, this.#plans.get(name) as readonly Step[]);
      if (this.#reads.has(name)) expect([name, reads]).toEqual([name, this.#reads.get(name)]);
      else expect(this.unknown).toContain(name);
    }
    expect(new Set(committed).size).toBe(committed.length);
    expect(committed).toEqual(expect.arrayContaining([...this.#reads.keys()]));
  }
}

const seeds = Number(process.env['SEEDS'] ?? 40);

describe('random transactions on three nodes', () => {
  it('read the same rows as one after the other', async () => {
    let conflicts = 0;
    let committed = 0;
    let unknown = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const history = new History(seed);
      try {
        await history.run();
      } catch (error) {
        throw new Error(`Seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
      conflicts += history.conflicts;
      committed += history.committed;
      unknown += history.unknown.length;
    }
    // Otherwise it would prove little.
    expect(conflicts).toBeGreaterThan(seeds * 5);
    expect(committed).toBeGreaterThan(seeds * 20);
  });
});
