/**
 * A small database with all that one can have: trees of several levels, indexes, commits that are not merged, one of
 * them staged, and blobs. It is what the fuzzer damages, together with every state that it was ever in.
 */
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Pacer } from '../../../src/base/pacer.ts';
import { decodeCommit, encodeCommit, commitBlockName } from '../../../src/format/commit.ts';
import type { TableChange } from '../../../src/format/commit.ts';
import { randomUuid } from '../../../src/base/ids.ts';
import { commitName, stagedRun } from '../../../src/format/object-names.ts';
import { openNode } from '../../../src/format/node.ts';
import { Types } from '../../../src/format/types.ts';
import { StagedSink } from '../../../src/batch/make-member.ts';
import { LayerChanges } from '../../../src/merge/index-changes.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import { layeredState } from '../../../src/view/layered-state.ts';
import { noBlocks } from '../../../src/tree/block-source.ts';
import { Uploads } from '../../../src/tree/block-writer.ts';
import { Tree, treeOfNode } from '../../../src/tree/tree.ts';
import { applyChanges } from '../../../src/tree/write.ts';
import { seededClockless } from '../model/seeded-environment.ts';
import type { Objects } from './overlay-store.ts';

export const dbPrefix = 'db';

const towns = defineSchema({
  name: 'Towns',
  version: 1,
  fields: {
    id: { typeId: Types.varchar },
    country: { typeId: Types.varchar },
    people: { typeId: Types.int32 },
    founded: { typeId: Types.timestamp },
    about: { typeId: Types.json },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['country', 'people', { function: 'first', typeId: Types.varchar }],
});

const readings = defineSchema({
  name: 'readings',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, value: { typeId: Types.float64 }, raw: { typeId: Types.bytes } },
  primaryKey: 'id',
  indexes: ['value'],
});

/** Whether anything asked of the database takes longer than it may is decided by the store, not by a clock. */
export function openDatabase(driver: StorageDriver, seed: number): Database {
  const options = { dbPrefix, nodeId: 0, driver, blockSizeBytes: 512, maxMemoryBytes: 1024 * 1024 };
  const db = createDatabase({ ...options, logLevel: 'silent' }, seededClockless(seed));
  db.registerSchema(towns);
  db.registerSchema(readings);
  db.registerFunction('first', ({ country }) => (typeof country === 'string' ? country.slice(0, 1) : null), 1);
  return db;
}

export interface StoredDatabase {
  /** Without the prefix. */
  readonly objects: Objects;
  /** Every Block 0 that there was before the present one. */
  readonly oldBlock0s: readonly Uint8Array[];
  /** The last slot of the log, and the last one that is merged. */
  readonly tail: number;
  readonly appliedSeq: number;
}

const countries = ['aa', 'bb', 'cc', 'a country whose name is longer than what a view holds'];

class Builder {
  readonly driver = new MemoryDriver();
  readonly db: Database = openDatabase(this.driver, 1);
  readonly oldBlock0s: Uint8Array[] = [];
  readonly #random = new SeededRandom('stored database');
  readonly #environment = seededClockless(2);
  #town = 0;

  async #block0(): Promise<Uint8Array> {
    const stored = await this.driver.get(`${dbPrefix}/block0`);
    if (stored.status !== 'found') throw new Error('there is no Block 0');
    return stored.bytes;
  }

  /** One commit: new towns and readings, some of the old ones changed, some deleted. */
  async commit(count: number, withPhoto: boolean): Promise<void> {
    const random = this.#random;
    const batch = this.db.batch();
    const changed = new Set<number>();
    for (let i = 0; this.#town > 8 && i < count / 3; i++) changed.add(random.integer(0, this.#town - 1));
    for (const n of changed) {
      if (random.chance(0.4)) void batch.delete(towns, idOf(n));
      else void batch.upsert(towns, { id: idOf(n), country: random.pick(countries), people: n, founded: null });
      void batch.upsert(readings, { id: n, value: random.integer(0, 5), raw: random.bytes(20) });
    }
    for (let i = 0; i < count; i++, this.#town++) {
      const n = this.#town;
      const photo = withPhoto && i < 2 ? this.db.Blob(random.bytes(300 + n)) : null;
      const about = random.chance(0.5) ? { n, text: 'é'.repeat(n % 30) } : null;
      const founded = new Date(Date.UTC(1000 + n, 1, 1));
      void batch.insert(towns, { id: idOf(n), country: random.pick(countries), people: n * 7, founded, about, photo });
      void batch.upsert(readings, { id: n, value: n / 3, raw: random.bytes(n % 25) });
    }
    await batch.flush();
  }

  async checkpoint(): Promise<void> {
    this.oldBlock0s.push(await this.#block0());
    await this.db.checkpoint();
  }

  /** Puts the commit of a slot back with its rows in staged runs, as if they had been many. */
  async stage(slot: number): Promise<void> {
    const key = `${dbPrefix}/${commitName(slot)}`;
    const stored = await this.driver.get(key);
    if (stored.status !== 'found') throw new Error(`there is no commit ${slot}`);
    const commit = decodeCommit(slot, stored.bytes);
    const members: { changes: TableChange[] }[] = [];
    for (const member of commit.members) {
      const changes: TableChange[] = [];
      for (const change of member.changes) changes.push(await this.#stageChange(change, slot));
      members.push({ changes });
    }
    await this.driver.put(key, encodeCommit(slot, { ...commit, members }), { if: 'any' });
  }

  async #stageChange({ schema, node }: TableChange, slot: number): Promise<TableChange> {
    const environment = this.#environment;
    const uploads = new Uploads({ driver: this.driver, prefix: dbPrefix, environment });
    const sink = new StagedSink(uploads, () => stagedRun(slot, randomUuid(environment)));
    const shape = new TableShape(schema);
    const state = layeredState(shape, new Tree(noBlocks, null), new Map(), [treeOfNode(node)]);
    const root = await applyChanges(new Tree(noBlocks, null), await LayerChanges.of(state), {
      sink,
      leaf: shape.changeShape,
      blockSizeBytes: 512,
      pacer: new Pacer(environment),
      counters: { splits: 0, joins: 0, rootSplits: 0 },
    });
    await sink.finish();
    if (root.kind !== 'new' || root.entries.shape.level === 0) return { schema, node };
    const name = commitBlockName(schema.name);
    const top = openNode(name, root.entries.encode(name, 0, root.entries.count));
    return { schema, node: top, staged: { runs: sink.runs } };
  }
}

/** Where a town stands does not follow from its number. */
export function idOf(n: number): string {
  return `town ${(n * 37) % 101}`.padEnd(8 + (n % 9), '.');
}

export async function buildDatabase(): Promise<StoredDatabase> {
  const builder = new Builder();
  const { driver, db } = builder;
  await db.start();
  await builder.commit(30, true);
  await builder.checkpoint();
  await builder.commit(25, true);
  await builder.commit(5, false);
  await builder.checkpoint();
  await builder.commit(12, false);
  await builder.checkpoint();
  const { appliedSeq } = db.stats().log as { appliedSeq: number };
  await builder.commit(20, false);
  await builder.commit(3, true);
  await builder.commit(2, false);
  const { tail } = db.stats().log as { tail: number };
  await db.stop();
  await builder.stage(appliedSeq + 1);
  const objects = new Map<string, Uint8Array>();
  for (const { key } of (await driver.list(`${dbPrefix}/`)).entries) {
    const stored = await driver.get(key);
    if (stored.status === 'found') objects.set(key.slice(dbPrefix.length + 1), stored.bytes);
  }
  return { objects, oldBlock0s: builder.oldBlock0s, tail, appliedSeq };
}
