/**
 * Many nodes on one store, in virtual time: the real engine, with every request counted and every commit timed. Used by
 * `npm run scale`, which makes the figures of docs/scale.md, and by the test that holds it to the main ones.
 */
import type { NewDocumentOf } from '../../../src/schema/schema.ts';
import { BackpressureError, ContentionError } from '../../../src/base/errors.ts';
import { sleep } from '../../../src/base/env.ts';
import type { LogFollower } from '../../../src/log/log-follower.ts';
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Block0Reader } from '../../../src/block0/block0-reader.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { Network } from './network.ts';
import { Observer, spreadOf } from './observer.ts';
import type { Spread } from './observer.ts';

export const prefix = 'db';
export const intervalMs = 5000;

export const items = {
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    owner: { typeId: Types.varchar, maxLength: 20 },
    text: { typeId: Types.varchar, maxLength: 120 },
    count: { typeId: Types.int32 },
  },
  primaryKey: 'id',
  indexes: ['owner'],
} as const;

/** Rows of the table when a simulation begins: 2.5 MB, some forty blocks, and half as much for the index. */
const loadedRows = 20_000;

function rowOf(id: number, random: SeededRandom): NewDocumentOf<typeof items> {
  const owner = `owner ${random.integer(1, 2000)}`;
  return { id, owner, text: `${id} `.repeat(random.integer(4, 20)).slice(0, 120), count: 0 };
}

export interface ClusterOptions {
  readonly nodes: number;
  readonly polling: Polling;
  /** How many of them write; the others are replicas. Default: all. */
  readonly writers?: number;
  readonly seed?: string;
  /** Further options of all nodes. */
  readonly options?: Partial<StoreDbOptions>;
}

export class ScaleNode {
  readonly nodeId: number;
  readonly db: Database;
  readonly process: VirtualEnvironment;
  readonly instance: Instance;

  constructor(cluster: Cluster, nodeId: number, options: Partial<StoreDbOptions>) {
    this.nodeId = nodeId;
    this.process = cluster.environment.fork();
    const driver = this.process.connect(cluster.network);
    const given = { dbPrefix: prefix, nodeId, driver, logLevel: 'silent', ...options };
    this.instance = new Instance(
      checkOptions(given, () => undefined),
      this.process,
    );
    this.db = new Database(this.instance);
    this.db.registerSchema(items);
  }

  get isLive(): boolean {
    return !this.process.isFrozen && this.instance.engine !== undefined;
  }

  get follower(): LogFollower {
    return this.instance.running('The simulation').follower;
  }

  get untilStaleMs(): number {
    return 2 * intervalMs - this.instance.running('The simulation').viewAgeMs;
  }
}

/** What became of flushes, and how long they took, in milliseconds. */
export interface FlushOutcomes {
  readonly latency: Spread;
  readonly contention: number;
  readonly backpressure: number;
  /** Failures of any other kind; there should be none. */
  readonly others: readonly string[];
}

let loaded: Promise<MemoryDriver> | undefined;

/** A store with the table, which simulations copy. */
async function load(): Promise<MemoryDriver> {
  const environment = new VirtualEnvironment({ seed: 'load' });
  const random = new SeededRandom('rows');
  const store = new MemoryDriver({ environment });
  const given = { dbPrefix: prefix, nodeId: 0, driver: store, logLevel: 'silent' };
  const db = new Database(
    new Instance(
      checkOptions(given, () => undefined),
      environment,
    ),
  );
  db.registerSchema(items);
  await environment.run(db.start());
  const batch = db.batch();
  for (let id = 0; id < loadedRows; id++) void batch.insert(items, rowOf(id, random));
  await environment.run(batch.flush());
  await environment.run(db.checkpoint());
  await environment.run(db.stop());
  return store;
}

async function copyOf(store: MemoryDriver, environment: VirtualEnvironment): Promise<MemoryDriver> {
  const copy = new MemoryDriver({ environment });
  for (let after: string | undefined; ; ) {
    const page = await store.list(prefix, after === undefined ? {} : { after });
    for (const { key } of page.entries) {
      const object = await store.get(key);
      if (object.status === 'found') await copy.put(key, object.bytes, { if: 'absent' });
    }
    after = page.entries.at(-1)?.key;
    if (!page.more) return copy;
  }
}

export class Cluster {
  readonly environment: VirtualEnvironment;
  readonly random: SeededRandom;
  readonly store: MemoryDriver;
  readonly network: Network;
  readonly observer: Observer;
  readonly nodes: ScaleNode[] = [];
  readonly #options: Partial<StoreDbOptions>;
  readonly #writers: number;
  #latencies: number[] = [];
  #resolvedMs: number[] = [];
  #failures = { contention: 0, backpressure: 0, others: [] as string[] };
  #nextId = loadedRows;

  private constructor(
    environment: VirtualEnvironment,
    store: MemoryDriver,
    { seed, polling, nodes, writers = nodes, options }: ClusterOptions,
  ) {
    this.environment = environment;
    this.random = new SeededRandom(`cluster ${seed}`);
    this.store = store;
    this.network = new Network(store, environment, this.random.fork());
    this.observer = new Observer(environment);
    // Every commit is merged in the next turn: the figures are about turns.
    this.#options = { polling, mergePolicy: { minCommits: 1 }, ...options };
    this.#writers = writers;
  }

  /** Nodes that are not started yet. */
  static async make(given: ClusterOptions): Promise<Cluster> {
    loaded ??= load();
    const environment = new VirtualEnvironment({ seed: given.seed ?? 1 });
    const cluster = new Cluster(environment, await copyOf(await loaded, environment), given);
    for (let nodeId = 0; nodeId < given.nodes; nodeId++) cluster.nodes.push(cluster.node(nodeId));
    return cluster;
  }

  /** Nodes that run, and that all are registered: how they come to be is simulated elsewhere. */
  static async started(given: ClusterOptions): Promise<Cluster> {
    const cluster = await Cluster.make(given);
    const nodes = cluster.nodes.slice(0, given.writers).map(({ nodeId }) => nodeId);
    await cluster.store.put(`${prefix}/block0`, encodeBlock0({ ...(await cluster.block0()), nodes }), { if: 'any' });
    await cluster.startAll();
    await cluster.advance(3 * intervalMs);
    return cluster;
  }

  node(nodeId: number): ScaleNode {
    const role = nodeId < this.#writers ? 'writer' : 'replica';
    return new ScaleNode(this, nodeId, { role, ...this.#options });
  }

  async start(node: ScaleNode): Promise<void> {
    await node.db.start();
    this.observer.add(node);
  }

  async startAll(): Promise<void> {
    await this.environment.run(Promise.all(this.nodes.map((node) => this.start(node))));
  }

  advance(ms: number): Promise<void> {
    return this.environment.advance(ms);
  }

  get nowMs(): number {
    return this.environment.timeline.nowMs;
  }

  /** The writers that live. */
  get live(): ScaleNode[] {
    return this.nodes.slice(0, this.#writers).filter((node) => node.isLive);
  }

  async block0(): Promise<Block0> {
    const read = await new Block0Reader(this.store, prefix).read({});
    if (typeof read === 'string') throw new Error('There is no Block 0');
    return read.block0;
  }

  get lostMerges(): number {
    return this.nodes.reduce((sum, { db }) => sum + (db.stats().merges?.lostMerges ?? 0), 0);
  }

  get merges(): number {
    return this.nodes.reduce((sum, { db }) => sum + (db.stats().merges?.merges ?? 0), 0);
  }

  /** One small commit: an insert at the end, or an update anywhere. Never rejects. */
  async commit(node: ScaleNode): Promise<void> {
    const { random } = this;
    const batch = node.db.batch();
    const id = random.integer(0, loadedRows - 1);
    if (random.chance(0.5)) void batch.insert(items, rowOf(this.#nextId++, random));
    else void batch.update(items, { id, count: random.integer(0, 1_000_000) });
    const startedMs = this.nowMs;
    try {
      await batch.flush();
    } catch (error) {
      if (error instanceof ContentionError) this.#failures.contention++;
      else if (error instanceof BackpressureError) this.#failures.backpressure++;
      else this.#failures.others.push(String(error));
      return;
    }
    this.#latencies.push(this.nowMs - startedMs);
    this.#resolvedMs.push(this.nowMs);
    this.observer.flushed(node.nodeId);
  }

  /** Has something done after so many milliseconds of virtual time. */
  after(ms: number, what: () => Promise<void>): void {
    void sleep(this.environment, ms).then(what);
  }

  /** Commits at random moments of the next `ms` milliseconds, each on a random node that lives then. */
  spread(commits: number, ms: number): void {
    for (let i = 0; i < commits; i++) {
      this.after(this.random.between(0, ms), () => this.commit(this.random.pick(this.live)));
    }
  }

  /** Forgets what became of flushes, and counts from now on. */
  forget(): void {
    this.#latencies = [];
    this.#resolvedMs = [];
    this.#failures = { contention: 0, backpressure: 0, others: [] };
  }

  /** How many flushes resolved in a second, from the first to the last. */
  get flushesASecond(): number {
    const times = this.#resolvedMs;
    const lastedMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
    return lastedMs > 0 ? ((times.length - 1) * 1000) / lastedMs : 0;
  }

  get outcomes(): FlushOutcomes {
    return { latency: spreadOf(this.#latencies), ...this.#failures };
  }
}
