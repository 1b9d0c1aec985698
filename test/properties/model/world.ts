/**
 * Two nodes on one store, and the model beside them: every step is done by both, and what can be seen must be equal.
 * What a step does in detail follows from its seed and from what was there before.
 */
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Batch } from '../../../src/batch/batch.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import type { Faults } from '../../../src/testing/faults.ts';
import { superfluousNames } from '../../features/gc/reachable.ts';
import { HeldStates } from './held-states.ts';
import { apply, find, rowText } from './naive.ts';
import type { Operation, Rows, Version } from './naive.ts';
import { checkQuery } from './queries.ts';
import { Random } from './random.ts';
import { keyOf, randomTable } from './schemas.ts';
import type { ModelTable } from './schemas.ts';
import { seededClockless } from './seeded-environment.ts';
import { badValue, randomValue, textOf } from './values.ts';

export const stepKinds = [
  // The first is what failing runs shrink to.
  'nothing',
  'write',
  'write',
  'write',
  'insertMany',
  'insertMany',
  'deleteMany',
  'bad',
  'subBatch',
  'flushSub',
  'flush',
  'flush',
  'flush',
  'clear',
  'checkpoint',
  'checkpoint',
  'refresh',
  'reopen',
  'query',
  'query',
  'query',
  'query',
  'get',
  'snapshot',
  'snapshotQuery',
  'snapshotQuery',
  'release',
  'gc',
] as const;
export type StepKind = (typeof stepKinds)[number];

export interface Step {
  readonly kind: StepKind;
  readonly seed: number;
}

/** What has happened in all runs together: a run that tests nothing should not pass for one that does. */
export interface Tally {
  merges: number;
  splits: number;
  joins: number;
  rootSplits: number;
  reopenings: number;
  rejectedFlushes: number;
  failedMutations: number;
  overlayQueries: number;
  staleQueries: number;
  verifications: number;
  snapshots: number;
  /** Looks at snapshots, and how many of those came after the state was replaced and what it left was collected. */
  snapshotQueries: number;
  collections: number;
  outdatedQueries: number;
  /** Blocks that were collected, and what was kept for snapshots when they were. */
  collected: number;
  collectedWithSnapshots: number;
}

export function newTally(): Tally {
  return {
    merges: 0,
    splits: 0,
    joins: 0,
    rootSplits: 0,
    reopenings: 0,
    rejectedFlushes: 0,
    failedMutations: 0,
    overlayQueries: 0,
    staleQueries: 0,
    verifications: 0,
    snapshots: 0,
    snapshotQueries: 0,
    collections: 0,
    outdatedQueries: 0,
    collected: 0,
    collectedWithSnapshots: 0,
  };
}

/** A batch, and what it holds by the model. */
interface Work {
  readonly batch: Batch;
  readonly operations: Operation[];
  /** Calls that failed since the last flush. */
  failures: number;
}

interface Node {
  readonly id: number;
  db: Database;
  /** How many versions its view has seen. */
  seen: number;
  /** Whether garbage was collected since it caught up, so that some of what its view shows may be gone. */
  outdated: boolean;
  work: Work;
  sub: Work | undefined;
}

export class World {
  readonly tables: readonly ModelTable[];
  readonly #store: StorageDriver;
  /** The same without faults. */
  readonly #memory: MemoryDriver;
  readonly #environment: ReturnType<typeof seededClockless>;
  readonly #blockSizeBytes: number;
  readonly #versions: Version[];
  readonly #nodes: Node[] = [];
  readonly #tally: Tally;
  readonly #held: HeldStates;

  /** `faults`: how often requests to the store go wrong, in ways that the database must see through by itself. */
  constructor(seed: number, tally: Tally, faults?: Faults) {
    const random = new Random(seed);
    this.#tally = tally;
    this.#environment = seededClockless(seed, faults === undefined ? 1 : 50);
    this.#memory = new MemoryDriver({ environment: this.#environment });
    this.#store = faults === undefined ? this.#memory : new FaultyDriver(this.#memory, { seed, faults });
    this.#blockSizeBytes = random.pick([512, 512, 700, 1024, 2048]);
    const first = randomTable(random, []);
    this.tables = random.chance(0.3) ? [first, randomTable(random, [first.name])] : [first];
    this.#versions = [this.tables.map(() => new Map())];
    this.#held = new HeldStates(this.tables);
  }

  /** Requests that went wrong. */
  get faults(): number {
    if (!(this.#store instanceof FaultyDriver)) return 0;
    return Object.values(this.#store.counts).reduce((sum, count) => sum + count, 0);
  }

  async start(): Promise<void> {
    for (const id of [0, 1]) {
      const db = this.#make(id);
      await db.start();
      this.#nodes.push({ id, db, seen: 1, outdated: false, work: newWork(db.batch()), sub: undefined });
    }
  }

  #make(nodeId: number): Database {
    const driver = this.#store;
    const blockSizeBytes = this.#blockSizeBytes;
    const options = { dbPrefix: 'model', nodeId, driver, blockSizeBytes, logLevel: 'silent' } as const;
    const db = createDatabase(options, this.#environment);
    for (const { definition } of this.tables) db.registerSchema(definition);
    return db;
  }

  get #latest(): Version {
    return this.#versions[this.#versions.length - 1] as Version;
  }

  async step({ kind, seed }: Step): Promise<void> {
    const random = new Random(seed);
    // The second node writes less, so that one of them mostly sees an older state.
    const node = this.#nodes[random.chance(0.7) ? 0 : 1] as Node;
    if (this.#store instanceof FaultyDriver) {
      // Who asks again after a failure may see more than was asked for: let both nodes see everything.
      await node.db.refresh();
      this.#caughtUp(node);
    }
    switch (kind) {
      case 'nothing':
        return;
      case 'write':
        for (let i = random.between(1, 10); i > 0; i--)
          await this.#add(random, node, this.#randomOperation(random, node));
        return;
      case 'insertMany':
        return this.#insertMany(random, node);
      case 'deleteMany':
        return this.#deleteMany(random, node);
      case 'bad':
        return this.#addBad(random, node);
      case 'subBatch':
        // One that was not flushed takes no part.
        node.sub = random.chance(0.7) ? newWork(node.work.batch.subBatch()) : undefined;
        return;
      case 'flushSub':
        return this.#flushSub(node);
      case 'flush':
        return this.#flush(random, node);
      case 'clear':
        if (random.chance(0.7)) return;
        clear(node.work);
        return;
      case 'checkpoint':
        await node.db.checkpoint();
        this.#caughtUp(node);
        return this.#verify(node);
      case 'refresh':
        await node.db.refresh();
        this.#caughtUp(node);
        return;
      case 'reopen':
        return this.#reopen(random, node);
      case 'query':
        return this.#query(random, node);
      case 'get':
        return this.#get(random, node);
      case 'snapshot':
        return this.#takeSnapshot(node);
      case 'snapshotQuery':
        this.#tally.snapshotQueries += Math.min(1, this.#held.count);
        return this.#held.check(random);
      case 'release':
        return this.#held.releaseOne(random);
      case 'gc':
        return this.#collect(random, node);
    }
  }

  #caughtUp(node: Node): void {
    node.seen = this.#versions.length;
    node.outdated = false;
  }

  /** Everything there is, by every node. */
  async finish(): Promise<void> {
    await this.#held.checkAll();
    for (const node of this.#nodes) {
      await node.db.checkpoint();
      this.#caughtUp(node);
      await this.#verify(node);
      await this.#checkAll(node);
      this.#count(node);
      await node.db.stop();
    }
  }

  async #takeSnapshot(node: Node): Promise<void> {
    const snapshot = await node.db.snapshot();
    this.#caughtUp(node);
    this.#tally.snapshots++;
    await this.#held.add(node.id, snapshot, this.#latest);
  }

  /** Collects garbage, and looks whether exactly what is reachable is left, and everything as it was. */
  async #collect(random: Random, node: Node): Promise<void> {
    const options = { graceMs: 0, loopGraceMs: 0, ...(random.chance(0.7) ? { logRetentionMs: 0 } : {}) };
    const isExact = !(this.#store instanceof FaultyDriver);
    const planned = random.chance(0.3) ? await node.db.gc({ ...options, dryRun: true }) : undefined;
    const { counts } = await node.db.gc(options);
    if (isExact && planned !== undefined && textOf(planned.counts) !== textOf(counts)) {
      throw new Error(`gc deleted ${textOf(counts)}, and a dry run before it said ${textOf(planned.counts)}`);
    }
    this.#tally.collections++;
    for (const other of this.#nodes) other.outdated = true;
    // It has caught up if others have merged, so that loops that it begins read what stays.
    await node.db.refresh();
    this.#caughtUp(node);
    this.#tally.collected += counts.block;
    if (this.#held.count > 0) this.#tally.collectedWithSnapshots += counts.block;
    // Rejects if anything that is kept is missing.
    const superfluous = await superfluousNames(this.#memory, 'model');
    if (isExact && superfluous.length > 0) throw new Error(`gc left ${superfluous.slice(0, 5).join(', ')}`);
    await this.#verify(node);
    if (random.chance(0.2)) await this.#held.checkAll();
  }

  #count({ db }: Node): void {
    const { merges } = db.stats();
    if (merges === undefined) return;
    for (const counter of ['merges', 'splits', 'joins', 'rootSplits'] as const) this.#tally[counter] += merges[counter];
  }

  async #verify({ db }: Node): Promise<void> {
    this.#tally.verifications++;
    const report = await db.verify();
    if (!report.ok) throw new Error(`verify() found ${JSON.stringify(report.findings.slice(0, 5))}`);
  }

  async #checkAll({ db }: Node): Promise<void> {
    for (const [i, table] of this.tables.entries()) {
      const rows = new Map((this.#latest[i] as Rows).entries());
      const expected = [...rows.values()].map((row) => rowText(table, row)).toSorted();
      const got = (await db.query(table.name).execute()).map(textOf).toSorted();
      if (got.length !== expected.length || got.some((row, at) => row !== expected[at])) {
        throw new Error(`table ${table.name} holds ${got.length} rows that are not the model's ${expected.length}`);
      }
    }
  }

  /** What flushing now would lead to, by the model. */
  #after({ work, sub }: Node): Version {
    return apply(this.tables, this.#latest, [...work.operations, ...(sub?.operations ?? [])]).version;
  }

  #randomOperation(random: Random, node: Node): Operation {
    const at = random.below(this.tables.length);
    const table = this.tables[at] as ModelTable;
    const rows = this.#after(node)[at] as Rows;
    const wanted = random.pick(['insert', 'insert', 'update', 'update', 'upsert', 'delete'] as const);
    // Now and then one that will be rejected.
    const wrong = random.chance(0.015);
    const present = [...rows.values()];
    let key = keyOf(table, random.below(250));
    let kind = wanted;
    const keyAt = table.fields.indexOf(table.primaryKey);
    if ((wanted === 'update') !== wrong || (wanted === 'delete' && random.chance(0.8))) {
      if (present.length > 0) key = random.pick(present)[keyAt];
    }
    const exists = find(table, rows, key) !== undefined;
    if (!wrong && wanted === 'insert' && exists) kind = 'update';
    if (!wrong && wanted === 'update' && !exists) kind = 'upsert';
    if (kind === 'delete') return { kind, table: at, key };
    return { kind, table: at, document: this.#document(random, table, key) };
  }

  #document(random: Random, table: ModelTable, key: unknown): ReadonlyMap<string, unknown> {
    const document = new Map<string, unknown>();
    for (const field of table.fields) {
      if (field === table.primaryKey) document.set(field.name, key);
      else if (random.chance(0.75)) document.set(field.name, randomValue(random, field.typeId));
      else if (random.chance(0.3)) document.set(field.name, undefined);
    }
    return document;
  }

  async #add(random: Random, node: Node, operation: Operation): Promise<void> {
    const work = node.sub !== undefined && random.chance(0.6) ? node.sub : node.work;
    const { name } = this.tables[operation.table] as ModelTable;
    if (operation.kind === 'delete') await work.batch.delete(name, operation.key);
    else await work.batch[operation.kind](name, Object.fromEntries(operation.document));
    work.operations.push(operation);
  }

  async #insertMany(random: Random, node: Node): Promise<void> {
    const at = random.below(this.tables.length);
    const table = this.tables[at] as ModelTable;
    const from = random.below(200);
    const count = random.between(20, 80);
    for (let i = 0; i < count; i++) {
      const document = this.#document(random, table, keyOf(table, from + i));
      await this.#add(random, node, { kind: 'upsert', table: at, document });
    }
  }

  async #deleteMany(random: Random, node: Node): Promise<void> {
    const at = random.below(this.tables.length);
    const table = this.tables[at] as ModelTable;
    const from = random.below(250);
    const count = random.between(20, 150);
    for (let i = 0; i < count; i++) {
      await this.#add(random, node, { kind: 'delete', table: at, key: keyOf(table, from + i) });
    }
  }

  async #addBad(random: Random, node: Node): Promise<void> {
    const table = random.pick(this.tables);
    const work = node.sub ?? node.work;
    const field = random.pick(table.fields);
    const document = new Map(this.#document(random, table, keyOf(table, random.below(300))));
    if (random.chance(0.3)) document.set('no such field', 1);
    else if (random.chance(0.2)) document.delete(table.primaryKey.name);
    else document.set(field.name, badValue(random, field.typeId));
    const before = work.batch.size;
    const call = work.batch[random.pick(['insert', 'upsert', 'update'] as const)](
      table.name,
      Object.fromEntries(document),
    );
    const failed = await call.then(
      () => undefined,
      (error: unknown) => error as { code?: string; table?: string },
    );
    if (failed?.code !== 'ENCODE' || failed.table !== table.name || work.batch.size !== before) {
      throw new Error(
        `a bad document was taken, or refused with ${failed?.code ?? 'nothing'}: ${textOf([...document])}`,
      );
    }
    work.failures++;
    this.#tally.failedMutations++;
  }

  async #flushSub(node: Node): Promise<void> {
    const { sub, work } = node;
    if (sub === undefined) return;
    const code = await codeOf(sub.batch.flush());
    if (sub.failures > 0) {
      expectCode(code, new Set(['ENCODE']));
      sub.failures = 0;
      return;
    }
    expectCode(code, new Set());
    work.operations.push(...sub.operations.splice(0));
  }

  async #flush(random: Random, node: Node): Promise<void> {
    const { work } = node;
    const size = work.batch.size;
    const code = await codeOf(work.batch.flush());
    if (work.failures > 0) {
      expectCode(code, new Set(['ENCODE']));
      work.failures = 0;
      this.#tally.rejectedFlushes++;
      return;
    }
    if (work.operations.length === 0) return expectCode(code, new Set());
    const { version, errors } = apply(this.tables, this.#latest, work.operations);
    expectCode(code, errors);
    this.#caughtUp(node);
    if (errors.size > 0) {
      this.#tally.rejectedFlushes++;
      if (work.batch.size !== size) throw new Error('a rejected flush changed the batch');
      if (random.chance(0.6)) clear(work);
      return;
    }
    if (work.batch.size !== 0) throw new Error('a batch that was flushed is not empty');
    work.operations.length = 0;
    this.#versions.push(version);
    this.#caughtUp(node);
    return this.#verify(node);
  }

  /** Stopped and started again, or replaced by a new instance. */
  async #reopen(random: Random, node: Node): Promise<void> {
    this.#count(node);
    this.#tally.reopenings++;
    await node.db.stop();
    if (random.chance(0.6)) {
      node.db = this.#make(node.id);
      node.work = newWork(node.db.batch());
      node.sub = undefined;
    }
    await node.db.start();
    await this.#held.endedWith(node.id);
    this.#caughtUp(node);
    await this.#verify(node);
    await this.#checkAll(node);
  }

  /**
   * What a node shows that has not caught up since garbage was collected may be gone: then it shows the newest state, and
   * never anything between the two.
   */
  async #checkOutdated(node: Node): Promise<void> {
    if (!node.outdated) return;
    this.#tally.outdatedQueries++;
    for (const [at, { name }] of this.tables.entries()) {
      const got = (await node.db.query(name).execute()).map(textOf).toSorted().join('\n');
      const shows = (seen: number): boolean => got === this.#textOf(this.#versions[seen - 1] as Version, at);
      if (shows(node.seen)) continue;
      node.seen = this.#versions.length;
      if (!shows(node.seen)) throw new Error(`after gc, a query shows neither its own state nor the newest one`);
    }
    await node.db.refresh();
    this.#caughtUp(node);
  }

  /** A table of a version, as a text that is the same for the same rows. */
  #textOf(version: Version, at: number): string {
    const rows = [...(version[at] as Rows).values()];
    return rows
      .map((row) => rowText(this.tables[at] as ModelTable, row))
      .toSorted()
      .join('\n');
  }

  async #query(random: Random, node: Node): Promise<void> {
    await this.#checkOutdated(node);
    const at = random.below(this.tables.length);
    const table = this.tables[at] as ModelTable;
    let version = this.#versions[node.seen - 1] as Version;
    let overlay: Batch | undefined;
    if (random.chance(0.4)) {
      this.#tally.overlayQueries++;
      const operations = [...node.work.operations];
      overlay = node.work.batch;
      if (node.sub !== undefined && random.chance(0.6)) {
        overlay = node.sub.batch;
        operations.push(...node.sub.operations);
      }
      version = apply(this.tables, version, operations).version;
    }
    if (node.seen < this.#versions.length) this.#tally.staleQueries++;
    await checkQuery(random, node.db, table, version[at] as Rows, overlay);
  }

  async #get(random: Random, node: Node): Promise<void> {
    await this.#checkOutdated(node);
    const version = this.#versions[node.seen - 1] as Version;
    for (const [at, table] of this.tables.entries()) {
      for (let i = 0; i < 5; i++) {
        const key = keyOf(table, random.below(280));
        const row = find(table, version[at] as Rows, key);
        const got = await node.db.get(table.name, key);
        const expected = row === undefined ? 'undefined' : rowText(table, row);
        if (textOf(got) !== expected) throw new Error(`get(${textOf(key)}) gave ${textOf(got)}, not ${expected}`);
      }
    }
  }
}

function newWork(batch: Batch): Work {
  return { batch, operations: [], failures: 0 };
}

function clear(work: Work): void {
  work.batch.clear();
  work.operations.length = 0;
  work.failures = 0;
}

function codeOf(flush: Promise<void>): Promise<string | undefined> {
  return flush.then(
    () => undefined,
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );
}

/** Checks that a call was rejected with one of the codes, or, if there are none, that it was not. */
function expectCode(code: string | undefined, codes: ReadonlySet<string>): void {
  if (codes.size === 0 ? code === undefined : code !== undefined && codes.has(code)) return;
  throw new Error(`a flush ended with ${String(code)}, and the model says ${[...codes].join(' or ') || 'success'}`);
}
