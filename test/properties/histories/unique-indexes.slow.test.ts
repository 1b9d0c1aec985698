/**
 * Random batches of several nodes that write few different values into unique indexes, with merges, garbage collection, lost
 * slots and a store that fails in between: replayed on a plain map in the order of the log, no two rows ever agree, and
 * what was refused for that would have made two agree in some state between the call and the refusal.
 */
import { describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { Database } from '../../../src/api/database.ts';
import { decodeCommit } from '../../../src/format/commit.ts';
import type { Commit } from '../../../src/format/commit.ts';
import { parseCommitName } from '../../../src/format/object-names.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { RowLayout } from '../../../src/format/row-layout.ts';
import { Types } from '../../../src/format/types.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { PutBody, PutOptions, PutResult } from '../../../src/storage/contract/driver.ts';
import type { Faults } from '../../../src/testing/faults.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const users = {
  name: 'users',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    email: { typeId: Types.varchar },
    team: { typeId: Types.uint8 },
    seat: { typeId: Types.uint8 },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['email'], unique: true }, { fields: ['team', 'seat'], unique: true }, 'team'],
} as const;

/** Every batch leaves its name here, so that the order of all of them can be read from the log. */
const done = { name: 'done', version: 1, fields: { id: { typeId: Types.varchar } }, primaryKey: 'id' } as const;

interface User {
  readonly id: number;
  readonly email: string | null;
  readonly team: number | null;
  readonly seat: number | null;
}

interface Step {
  readonly kind: 'insert' | 'upsert' | 'update' | 'delete';
  readonly row: Partial<User> & { readonly id: number };
}

type State = ReadonlyMap<number, User>;

/** Some differ only where keys do not hold them. */
const emails = ['a', 'b', 'c', 'd', 'e', ...['1', '2'].map((end) => 'x'.repeat(1100) + end), null];

function randomSteps(random: SeededRandom): Step[] {
  return Array.from({ length: random.integer(1, 4) }, (): Step => {
    const id = random.integer(0, 11);
    const kind = random.pick(['insert', 'upsert', 'upsert', 'update', 'update', 'delete'] as const);
    const email = random.pick(emails);
    const place = { team: random.pick([1, 2, null]), seat: random.integer(0, 3) };
    if (kind !== 'update') return { kind, row: { id, email, ...place } };
    return { kind, row: random.chance(0.5) ? { id, email } : { id, ...place } };
  });
}

/** What comes of a batch; undefined if it goes against what is there. */
function applied(state: State, steps: readonly Step[]): State | undefined {
  const after = new Map(state);
  for (const { kind, row } of steps) {
    const before = after.get(row.id);
    if (kind === 'insert' ? before !== undefined : kind === 'update' && before === undefined) return undefined;
    if (kind === 'delete') after.delete(row.id);
    else {
      const nothing = { email: null, team: null, seat: null };
      after.set(row.id, { ...nothing, ...(kind === 'update' ? before : undefined), ...row });
    }
  }
  return after;
}

function isUnique(state: State): boolean {
  const all = [...state.values()];
  const values = [all.map(({ email }) => [email]), all.map(({ team, seat }) => [team, seat])];
  return values.every((list) => {
    const texts = list.filter((value) => !value.includes(null)).map((value) => JSON.stringify(value));
    return new Set(texts).size === texts.length;
  });
}

/** A store that notes what comes into the log. */
class RecordedStore extends MemoryDriver {
  readonly log = new Map<number, Commit>();

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    const slot = parseCommitName(key.slice('db/'.length));
    if (slot === undefined || result.status !== 'written' || this.log.has(slot)) return result;
    this.log.set(slot, decodeCommit(slot, body as Uint8Array));
    return result;
  }
}

const noFaults: Faults = { latencyMs: [1, 60] };
const faults: Faults = { lostRequest: 0.02, lostAnswer: 0.03, lateEffect: 0.02, falseLoss: 0.02, lateMs: [100, 5000] };
const rejections = new Set(['DUPLICATE_KEY', 'ROW_NOT_FOUND', 'CONTENTION', 'STORAGE', 'UNIQUE_INDEX']);

interface Refusal {
  readonly name: string;
  /** Slots that were taken when it was called, and when it was refused. */
  readonly from: number;
  readonly to: number;
}

class History {
  readonly #random: SeededRandom;
  readonly #clock: VirtualEnvironment;
  readonly #store: RecordedStore;
  readonly #plans = new Map<string, readonly Step[]>();
  readonly #databases: Database[] = [];
  readonly #drivers: FaultyDriver[] = [];
  readonly #acknowledged = new Set<string>();
  readonly #unknown = new Set<string>();
  readonly refusals: Refusal[] = [];

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#clock = new VirtualEnvironment({ seed });
    this.#store = new RecordedStore({ environment: this.#clock });
  }

  async open(count: number): Promise<void> {
    for (let nodeId = 0; nodeId < count; nodeId++) {
      const environment = this.#clock.fork({ seed: `${nodeId} of ${this.#random.integer(0, 1_000_000)}` });
      const faulty = new FaultyDriver(this.#store, { environment, seed: nodeId, faults: noFaults });
      this.#drivers.push(faulty);
      const turns = { writeForwardInterval: 400, polling: 'interval', mergePolicy: { minCommits: 1 } } as const;
      const options = { dbPrefix: 'db', nodeId, driver: environment.connect(faulty), ...turns };
      const checked = checkOptions({ ...options, blockSizeBytes: 512, logLevel: 'silent' }, () => undefined);
      // Some stage all that they write.
      const db = new Database(new Instance(checked, environment, this.#random.chance(0.2) ? 100 : 8_388_608));
      for (const schema of [users, done]) db.registerSchema(schema);
      await this.#clock.run(db.start());
      this.#databases.push(db);
    }
  }

  async run(): Promise<void> {
    await this.open(3);
    if (this.#random.chance(0.4)) this.#setFaults({ ...noFaults, ...faults });
    const working = this.#databases.flatMap((db, node) => [0, 1].map((worker) => this.#work(db, `${node}.${worker}`)));
    await this.#clock.run(Promise.all([...working, this.#disturb()]));
    this.#setFaults(noFaults);
    const state = this.#check();
    const expected = [...state.values()].toSorted((a, b) => a.id - b.id);
    for (const db of this.#databases) {
      await this.#clock.run(db.refresh());
      expect(await this.#clock.run(db.query(users).execute())).toEqual(expected);
    }
    await this.close();
  }

  async close(): Promise<void> {
    const [first] = this.#databases as [Database];
    await this.#clock.run(first.checkpoint());
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
    for (let n = 0; n < 10; n++) {
      await this.#pause(200);
      await this.#flush(db, `${worker}.${n}`, randomSteps(this.#random));
    }
  }

  async #flush(db: Database, name: string, steps: readonly Step[]): Promise<void> {
    const from = this.#store.log.size;
    this.#plans.set(name, steps);
    const batch = db.batch();
    for (const { kind, row } of steps) {
      if (kind === 'delete') void batch.delete(users, row.id);
      else void batch[kind](users, row);
    }
    void batch.insert(done, { id: name });
    try {
      await batch.flush();
      this.#acknowledged.add(name);
    } catch (error) {
      const { code = '' } = error as { code?: string };
      if (code === 'UNIQUE_INDEX') this.refusals.push({ name, from, to: this.#store.log.size });
      else if (code === 'COMMIT_OUTCOME_UNKNOWN') this.#unknown.add(name);
      else if (!rejections.has(code)) throw error;
    }
  }

  /** Merges and collects garbage while the others work. */
  async #disturb(): Promise<void> {
    for (let n = 0; n < 6; n++) {
      await this.#pause(400);
      const db = this.#random.pick(this.#databases);
      await db.checkpoint().catch(() => undefined);
      if (this.#random.chance(0.3)) await db.gc({ loopGraceMs: 0, graceMs: 0 }).catch(() => undefined);
    }
  }

  /** Names of the batches in a commit. */
  #namesIn({ members }: Commit): string[] {
    const layout = new RowLayout(Object.entries(done.fields).map(([name, { typeId }]) => ({ name, typeId })));
    const changes = members.flatMap((member) => member.changes).filter(({ schema }) => schema.name === done.name);
    return changes.map(({ node }) => {
      if (node.level > 0) throw new Error('a change of one row has more than a leaf');
      return decodeRow(layout, node, node.rowBase(0))['id'] as string;
    });
  }

  #check(): State {
    let state: State = new Map();
    /** After each slot. */
    const states = [state];
    const committed: string[] = [];
    for (const slot of [...this.#store.log.keys()].toSorted((x, y) => x - y)) {
      for (const name of this.#namesIn(this.#store.log.get(slot) as Commit)) {
        committed.push(name);
        const after = applied(state, this.#plans.get(name) as readonly Step[]);
        expect(after, name).toBeDefined();
        state = after as State;
        expect(isUnique(state), `after ${name}`).toBe(true);
        expect(this.#acknowledged.has(name) || this.#unknown.has(name), name).toBe(true);
      }
      states.push(state);
    }
    expect(committed).toEqual(expect.arrayContaining([...this.#acknowledged]));
    for (const { name, from, to } of this.refusals) {
      const could = states.slice(from, to + 1).some((before) => {
        const after = applied(before, this.#plans.get(name) as readonly Step[]);
        return after !== undefined && !isUnique(after);
      });
      expect(could, `${name} was refused`).toBe(true);
    }
    return state;
  }

  /** All nodes at once for one value; who has come by it. */
  async race(round: number): Promise<number> {
    const email = this.#random.chance(0.5) ? `value ${round}` : 'x'.repeat(1200) + String(round);
    const flushes = this.#databases.map((db, node) => {
      return this.#flush(db, `${round}.${node}`, [{ kind: 'upsert', row: { id: round * 10 + node, email } }]);
    });
    await this.#clock.run(Promise.all(flushes));
    if (this.#random.chance(0.3)) await this.#clock.run(this.#random.pick(this.#databases).checkpoint());
    return this.#databases.filter((_, node) => this.#acknowledged.has(`${round}.${node}`)).length;
  }
}

const seeds = Number(process.env['SEEDS'] ?? 20);

describe('random batches on three nodes', () => {
  it('never make two rows agree in a unique index, and are refused for no other reason', async () => {
    let refused = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const history = new History(seed);
      try {
        await history.run();
      } catch (error) {
        throw new Error(`Seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
      refused += history.refusals.length;
    }
    // Otherwise it would prove little.
    expect(refused).toBeGreaterThan(seeds * 5);
  }, 240_000);

  it('leave a value to exactly one of those who ask for it at once', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const history = new History(seed);
      await history.open(4);
      for (let round = 0; round < 8; round++) expect(await history.race(round), `seed ${seed}`).toBe(1);
      await history.close();
    }
  });
});
