/**
 * What happens to a store beside the nodes that are watched, all of it at one instant and without faults: merging by
 * somebody else, trimming of the log as collecting garbage does it, and looking whether everything is sound.
 */
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import { sleep } from '../../../src/base/env.ts';
import { StoreDbError } from '../../../src/base/errors.ts';
import { block0Name, commitName, parseCommitName, parseStagedName } from '../../../src/format/object-names.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Block0Reader } from '../../../src/block0/block0-reader.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { storageOptions } from './encryption.ts';
import { differenceOf, rowsOf, sortedRows, textOf } from './model.ts';
import type { Key, State } from './model.ts';
import type { World } from './world.ts';
import {
  allResults,
  engineName,
  functionVersions,
  registerFunction,
  resultField,
  schemasOf,
  valueIn,
} from './functions.ts';
import { keyOf, marks, tablesIn } from './tables.ts';
import type { Row } from './tables.ts';
import { makingOf, people, peopleIn, schemaOf, versionNumbers } from './versions.ts';

/** How far the clock of whoever ends a snapshot must be past its time to live. */
const margin = 300_001;
/** History is kept for less, and so are probes of the store that somebody left behind. */
const longMs = 90_000_000;
/** Ahead of every clock, and of every time to live. */
const allOverMs = 4 * 86_400_000;

export class Maintenance {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #ofStorage: SeededRandom = new SeededRandom('storage of the caretaker');

  /** The floor at the last sweep. */
  #swept = 0;
  /** What the last audit saw. */
  #audited = '';
  /** What had been written when garbage was last collected. */
  #collectedAt = 0;

  constructor(world: World, random: SeededRandom) {
    this.#world = world;
    this.#random = random;
  }

  /** A database of somebody else's on the same store; `call` must not take any virtual time. */
  async #with<T>(
    call: (db: Database) => Promise<T>,
    aheadMs = 0,
    more: readonly SchemaDefinition[] = [],
    functionVersion?: number,
  ): Promise<T> {
    const { root, store, prefix, config } = this.#world;
    const environment = root.fork({ seed: this.#random.integer(0, 0xffff_ffff), lookMs: 0 });
    environment.skewMs = aheadMs;
    const db = createDatabase(
      {
        ...storageOptions(config.encrypted, this.#ofStorage),
        dbPrefix: prefix,
        nodeId: config.nodeIds[0] as number,
        driver: store,
        blockSizeBytes: config.blockSizeBytes,
        logLevel: 'silent',
        // Who has the function, and may write, has work to do.
        ...(functionVersion === undefined ? {} : { role: 'replica' as const }),
        retiredVersions: 'allow',
      },
      environment,
    );
    for (const schema of [...schemasOf(config), ...more]) db.registerSchema(schema);
    if (functionVersion !== undefined) registerFunction(db, functionVersion);
    await db.start();
    try {
      return await call(db);
    } finally {
      await db.stop();
    }
  }

  /** Merges everything. */
  async merge(): Promise<void> {
    const { block0, tail } = this.#world.ledger;
    if (block0 === undefined || block0.appliedSeq === tail) return;
    this.#world.trace.add('caretaker', 'merges');
    await this.#with((db) => db.checkpoint());
  }

  /** Raises the floor over slots that are applied, and forgets some of the applied commits' ids. */
  async trim(): Promise<void> {
    const { opened: store, prefix, trace } = this.#world;
    const random = this.#random;
    const key = `${prefix}/${block0Name}`;
    const stored = await store.get(key);
    if (stored.status !== 'found') return;
    const block0 = await new Block0Reader(store, prefix).decode(stored.bytes);
    const logFloor = random.chance(0.6) ? block0.appliedSeq : random.integer(block0.logFloor, block0.appliedSeq);
    const applied = random.chance(0.3)
      ? block0.applied.slice(random.integer(0, block0.applied.length))
      : block0.applied;
    const next = {
      ...block0,
      logFloor,
      applied,
      revision: block0.revision + 1,
      nonce: `trim${random.integer(0, 2 ** 48)}`,
    };
    const result = await store.put(key, encodeBlock0(next), { if: { etag: stored.etag } });
    trace.add('caretaker', `raises the floor to ${logFloor}: ${result.status}`);
  }

  /** Deletes slots under the floor, those of zombies too, and keeps the slot at the floor. */
  async sweep(): Promise<void> {
    const { opened: store, prefix, trace } = this.#world;
    const stored = await store.get(`${prefix}/${block0Name}`);
    if (stored.status !== 'found') return;
    const { logFloor } = await new Block0Reader(store, prefix).decode(stored.bytes);
    const { entries } = await store.list(`${prefix}/${commitName(0).slice(0, -16)}`);
    const dead = entries.filter(({ key }) => {
      const slot = parseCommitName(key.slice(prefix.length + 1)) as number;
      // Zombies are left for a while.
      const chance = slot <= this.#swept ? 0.3 : 0.9;
      return slot < logFloor && this.#random.chance(chance);
    });
    this.#swept = logFloor;
    if (dead.length === 0) return;
    trace.add('caretaker', `deletes ${dead.length} slots under ${logFloor}`);
    await store.delete(dead.map(({ key }) => key));
  }

  /** Collects garbage, all of it at one instant, by a clock that may be ahead. */
  async collect(): Promise<void> {
    const random = this.#random;
    const { ledger, trace, config, store } = this.#world;
    if (ledger.block0 === undefined || store.writes === this.#collectedAt) return;
    const graceMs = random.pick([0, config.graceMs]);
    const logRetentionMs = random.pick([0, config.logRetentionMs]);
    const aheadMs = random.pick([0, 0, 0, margin + config.timeToLiveMs]);
    const report = await this.#with((db) => db.gc({ loopGraceMs: 0, graceMs, logRetentionMs }), aheadMs);
    this.#collectedAt = store.writes;
    trace.add('caretaker', `collects ${JSON.stringify(report.counts)}`);
  }

  /** Now that nothing is under way any more: nothing but what is needed must be left. */
  async collectAll(): Promise<void> {
    const { ledger, root, reachable, objects, judge } = this.#world;
    if (ledger.block0 === undefined) return;
    // With this commit merged, what was made for the next generation and never used is old enough to go.
    await this.#with((db) => this.#flushMark(db));
    // Blobs are condemned, deleted, and forgotten; what each of these commits left behind goes with the next run.
    for (let round = 1; round <= 4; round++) {
      await this.merge();
      await sleep(root, longMs);
      await this.#with((db) => db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 }), allOverMs);
    }
    const needed = reachable.names();
    // What a load staged for slots to come goes once the log has passed them.
    const isAhead = (name: string): boolean => (parseStagedName(name) ?? 0) > ledger.tail;
    const left = [...objects.keys()].filter((name) => !needed.has(name) && !isAhead(name));
    if (left.length > 0) judge.fail('I9 no leak', `Nothing needs ${left.join(', ')}`);
    const { garbage, unknownObjects } = await this.#with((db) => db.verify({ deep: true }));
    if (garbage?.objects !== 0 || unknownObjects?.length !== 0) judge.fail('I9 no leak', 'verify() finds garbage');
    for (const name of needed) if (!objects.has(name)) judge.fail('I8 gc safety', `${name} is gone`);
    const { size } = ledger.blobs.after(ledger.tail).dead;
    if (size > 0) judge.fail('I9 no leak', `${size} blobs are listed as deleted for ever`);
    const { snapshots } = ledger.block0;
    if (snapshots.length > 0) judge.fail('I9 no leak', `${snapshots.length} snapshots last for ever`);
  }

  async #flushMark(db: Database): Promise<void> {
    const batch = db.batch();
    const segment = this.#world.ledger.segment([]);
    await batch.insert(marks, { id: segment.mark });
    await batch.flush();
  }

  /** Opens the database anew and compares everything in it with the model; checks what is stored. */
  async audit(): Promise<void> {
    const { ledger, judge, trace, root } = this.#world;
    if (ledger.block0 === undefined) return;
    const { happened } = root.timeline;
    const { tail } = ledger;
    const present = `${ledger.block0.revision} ${tail}`;
    if (present === this.#audited) return;
    this.#audited = present;
    const deep = this.#random.chance(0.3);
    const { found, report } = await this.#with(async (db) => {
      await this.#checkBlobs(db);
      return { found: await this.#readAll(db), report: await db.verify({ deep }) };
    });
    if (root.timeline.happened !== happened) throw new Error('The audit took time, and cannot be exact');
    const difference = differenceOf(ledger.stateAt(tail), found);
    if (difference !== undefined) judge.fail('I1 durability', `Opened anew at slot ${tail}: ${difference}`);
    trace.add('caretaker', `audits ${tail} slots`);
    const [finding] = report.findings;
    if (finding !== undefined) judge.fail('I10 index entries', `${finding.name}: ${finding.message}`);
    if (ledger.versions !== undefined) await this.#auditVersion(this.#random.pick(versionNumbers));
    if (this.#world.config.functions) for (const version of functionVersions) await this.#auditFunction(version);
  }

  /** By the function in a version, the rows are found that it makes a value of, and what is stored is what it makes. */
  async #auditFunction(version: number): Promise<void> {
    const { ledger, judge } = this.#world;
    const rows = [...rowsOf(ledger.stateAt(ledger.tail), 'items').values()];
    const fail = (what: string): void =>
      judge.fail('I10 index entries', `By version ${version} of the function: ${what}`);
    const field = resultField(version);
    await this.#with(
      async (db) => {
        for (const value of allResults) {
          const found = await db.query('items').where(engineName(field), '=', value).count();
          const expected = rows.filter((row) => valueIn(row, field) === value).length;
          if (found !== expected) fail(`${found} rows have ${value}, and in the model ${expected}`);
        }
        const { findings } = await db.verify();
        for (const { name, message } of findings) fail(`${name}: ${message}`);
      },
      0,
      [],
      version,
    );
  }

  /** Opened anew with one version of the application, it shows what that version is to see. */
  async #auditVersion(version: number): Promise<void> {
    const { ledger, judge, config } = this.#world;
    const { state, versions, block0 } = ledger;
    const schemasOfIt = versionNumbers.filter((other) => other <= version).map((v) => schemaOf(v, makingOf(config)));
    const fail = (what: string): void => judge.fail('I13 migration', `Opened anew with version ${version}: ${what}`);
    const read = async (db: Database): Promise<void> => {
      const found = textOf((await db.query(people).execute()) as Row[]);
      const expected = textOf(sortedRows(peopleIn(version), rowsOf(state, peopleIn(version))));
      if (found !== expected) fail(`found\n${found}\nIn the model:\n${expected}`);
      const { findings } = await db.verify({ deep: true });
      for (const { name, message } of findings) fail(`${name}: ${message}`);
    };
    try {
      await this.#with(read, 0, schemasOfIt);
    } catch (error) {
      const code = error instanceof StoreDbError ? error.code : '';
      const isBroken = code === 'MIGRATION' && versions?.hasBroken(state, version) === true;
      const isRefused = code === 'INVALID_SCHEMA' && versions?.isReadable(state, version, block0) === false;
      if (!isBroken && !isRefused) fail(String(error));
    }
  }

  async #readAll(db: Database): Promise<State> {
    const { config, ledger } = this.#world;
    const state = new Map<string, Map<Key, Row>>();
    for (const name of tablesIn(config)) {
      const rows = (await db.query(name).execute()) as Row[];
      state.set(name, new Map(rows.map((row) => [keyOf(name, row), ledger.blobs.read(name, row)])));
    }
    return state;
  }

  /** Every blob that a row refers to can be read. */
  async #checkBlobs(db: Database): Promise<void> {
    const { ledger, judge } = this.#world;
    for (const reference of ledger.blobs.after(ledger.tail).live) {
      const found = await db.getBlob(reference).getString();
      if (found !== ledger.blobs.contentOf(reference)) judge.fail('blobs', `Blob ${reference} is '${found}'`);
    }
  }
}
