/**
 * Random histories of a migration whose rows are made ahead: whoever writes, merges, collects garbage or makes other rows meanwhile,
 * both versions show what the model gives, the indexes have the entries of their rows, and no block that is referred to is gone.
 */
import { describe, expect, it } from 'vitest';
import { Database } from '../../../src/api/database.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import type { MergedTable } from '../../../src/merge/merge-table.ts';
import { nextChunk } from '../../../src/migration/chunk.ts';
import { RowTranslation } from '../../../src/migration/row-translation.ts';
import { canMakeAhead, makeAhead, storeAhead } from '../../../src/migration/rows-ahead.ts';
import type { RowsAhead } from '../../../src/migration/rows-ahead.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import { shapeOf } from '../../../src/schema/table-shape.ts';
import { View } from '../../../src/view/view.ts';
import { VersionModel } from '../../features/migrations/version-model.ts';
import { users1, users2, Versions } from '../../features/migrations/versions.ts';
import type { Row } from '../../features/migrations/versions.ts';
import { prefix, quietIntervalMs } from '../../features/protocol/nodes.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';
import { Random } from '../model/random.ts';

const keys = 900;

class History {
  readonly versions: Versions;
  readonly random: Random;
  readonly model = new VersionModel({
    forward: ({ id, name, age }) => ({ id, name, age, email: null, level: 3 }),
    back: ({ id, name, age }, before) => ({ id, name, age, old: before?.['old'] ?? null }),
  });
  readonly nodes: { readonly node: TestNode; readonly version: 1 | 2 }[] = [];
  readonly instance: Instance;
  readonly worker: Database;
  readonly translation = new RowTranslation(
    shapeOf(toStoredSchema(users1)),
    shapeOf(toStoredSchema(users2)),
    undefined,
    undefined,
  );
  /** Works that were stored, and works that were not. */
  stored = 0;
  lost = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.versions = new Versions(seed);
    const given = { dbPrefix: prefix, nodeId: 9, driver: this.versions.store, logLevel: 'silent', blockSizeBytes: 512 };
    const options = { ...given, writeForwardInterval: quietIntervalMs, polling: 'onDemand' };
    this.instance = new Instance(
      checkOptions(options, () => undefined),
      this.versions.environment,
    );
    this.worker = new Database(this.instance);
  }

  get engine(): NonNullable<Instance['engine']> {
    const { engine } = this.instance;
    if (engine === undefined) throw new Error('it is not started');
    return engine;
  }

  async open(): Promise<void> {
    const { versions } = this;
    for (const [nodeId, version] of [
      [1, 1],
      [2, 2],
    ] as const) {
      const schema = version === 1 ? users1 : users2;
      const node = await versions.open(nodeId, [schema], { blockSizeBytes: 512, polling: 'onDemand' });
      this.nodes.push({ node, version });
      if (version === 1)
        await this.put(
          1,
          node,
          Array.from({ length: keys / 2 }, (_, i) => 2 * i),
        );
    }
    await this.put(2, this.node2, [1]);
    await versions.merge(this.node2);
    await versions.replaceBlock0(({ migrations }) => ({
      migrations: migrations.map((migration) => ({
        ...migration,
        phase: 'building',
        target: { rowsPerSecond: 1_000_000, keepOld: true },
      })),
    }));
    this.worker.registerSchema(users2);
    await versions.run(this.worker.start());
  }

  #document(version: 1 | 2): Row {
    const { random } = this;
    return {
      name: random.pick(['Ann', 'Bob', 'a name that does not fit into a row', null]),
      age: random.pick([null, 0, 7, 255]),
      ...(version === 1 ? { old: `old ${random.below(9)}` } : { email: `email ${random.below(9)}`, level: 8 }),
    };
  }

  get node1(): TestNode {
    return this.nodes[0]?.node as TestNode;
  }

  get node2(): TestNode {
    return this.nodes[1]?.node as TestNode;
  }

  async put(version: 1 | 2, { db }: TestNode, ids: readonly number[], given?: Row): Promise<void> {
    const batch = db.batch();
    for (const id of ids) {
      const row = { ...(given ?? this.#document(version)), id };
      void batch.upsert('users', row);
      this.model.write(version, row);
    }
    await this.versions.run(batch.flush());
  }

  async delete({ db }: TestNode, ids: readonly number[]): Promise<void> {
    const batch = db.batch();
    for (const id of ids) {
      void batch.delete('users', id);
      this.model.delete(id);
    }
    await this.versions.run(batch.flush());
  }

  async write(): Promise<void> {
    const { random } = this;
    const { node, version } = random.pick(this.nodes);
    const ids = [...new Set(Array.from({ length: random.between(1, 6) }, () => random.below(keys)))];
    if (random.chance(0.3)) {
      await this.delete(node, ids);
    } else await this.put(version, node, ids);
  }

  /** Others do something. */
  async others(): Promise<void> {
    const { random, versions } = this;
    const { node } = random.pick(this.nodes);
    const choice = random.below(10);
    if (choice < 5) await this.write();
    else if (choice < 9) await versions.merge(node);
    else await versions.run(node.db.gc({ loopGraceMs: 0 }));
  }

  view(): View {
    return View.ofBlock0(this.engine.context, this.engine.view.block0);
  }

  /** Makes rows ahead; undefined if that cannot be done. */
  async make(rows: number, generations: number, isOver = (): boolean => false): Promise<RowsAhead | undefined> {
    const { versions, engine, translation } = this;
    // It brings the rows in line.
    await this.chunk(keys, 3);
    const view = this.view();
    if (!canMakeAhead(view, 'users', translation)) return undefined;
    const limits = { rows, bytes: 4096, isOver };
    const written = await versions.run(
      engine.merger.ahead(view.block0, generations, (context) => {
        return makeAhead(view, 'users', translation, limits, context);
      }),
    );
    return written?.made;
  }

  /** Stores rows made ahead, if it may. Returns whether it has. `during` runs before the chunk is stored. */
  async store(made: RowsAhead, during: () => Promise<void> = () => Promise.resolve()): Promise<boolean> {
    const { versions, engine, translation } = this;
    await versions.run(engine.refresh());
    let chunk: { table: MergedTable | undefined } | undefined;
    const done = await versions.run(
      engine.merger.rebuild(async (block0, context) => {
        const present = View.ofBlock0(engine.context, block0);
        chunk = await storeAhead(present, 'users', made, translation, 1e6, context);
        await during();
        return chunk?.table === undefined ? [] : [chunk.table];
      }, true),
    );
    return done && chunk?.table !== undefined;
  }

  async ahead(): Promise<void> {
    const { random } = this;
    const made = await this.make(random.between(1, keys / 2), random.between(1, 12), () => random.chance(0.005));
    for (let i = random.below(12); i > 0; i--) await this.others();
    if (random.chance(0.2)) await this.chunk();
    // As a process that ends here.
    if (made === undefined || random.chance(0.1)) return;
    const { node } = random.pick(this.nodes);
    const collects = random.chance(0.3);
    // It announces a generation before the chunk is stored, and deletes the blocks that this generation does not reach.
    const stored = await this.store(made, async () => {
      if (collects) await node.db.gc({ loopGraceMs: 0 });
    });
    if (stored) this.stored++;
    else this.lost++;
  }

  /** Makes a chunk. Returns the phase of the migration after it. */
  async chunk(rows = this.random.between(1, 20), built = rows): Promise<string | undefined> {
    const { versions, engine, translation } = this;
    await versions.run(engine.refresh());
    let phase: string | undefined;
    const limits = { rows, built, bytes: 1e6, isOver: () => false };
    await versions.run(
      engine.merger.rebuild(async (block0, context) => {
        const view = View.ofBlock0(engine.context, block0);
        if (view.nextVersion('users')?.migration?.phase !== 'building') return [];
        const chunk = await nextChunk(view, 'users', translation, limits, context, 'no');
        ({ phase } = chunk);
        return chunk.table === undefined ? [] : [chunk.table];
      }),
    );
    return phase;
  }

  async check(): Promise<void> {
    for (const { node, version } of this.nodes) {
      const expected = this.model.rows(version);
      expect(await this.versions.rows(node), `version ${version}`).toEqual(expected);
      for (const age of [7, null]) {
        const found = await this.versions.run(node.db.query('users').where('age', '=', age).execute());
        expect(found).toEqual(expected.filter((row) => row['age'] === age));
      }
      expect(await this.versions.findings(node)).toEqual([]);
    }
  }

  async run(steps: number): Promise<void> {
    const { random } = this;
    await this.open();
    for (let i = 0; i < steps; i++) {
      const choice = random.below(20);
      if (choice < 8) await this.ahead();
      else if (choice < 12) await this.chunk();
      else if (choice < 19) await this.others();
      else await this.check();
    }
    await this.end();
  }

  /** Makes all rows that are missing, and ends. */
  async end(): Promise<void> {
    for (let i = 0; i < 100 && (await this.chunk(keys)) === 'building'; i++) await this.check();
    const { migrations } = await this.versions.block0();
    expect(migrations).toMatchObject([{ phase: 'switched' }]);
    await this.check();
    for (const { node } of this.nodes) await this.versions.run(node.db.stop());
    await this.versions.run(this.worker.stop());
  }
}

describe('rows made ahead', () => {
  it.each(Array.from({ length: 16 }, (_, i) => i + 1))(
    'are the rows that chunks would make (seed %i)',
    async (seed) => {
      const history = new History(seed);
      await history.run(25);
      expect(history.stored + history.lost).toBeGreaterThan(0);
    },
  );

  it('are not stored if gc may have deleted a block that they share', async () => {
    const history = new History(1);
    await history.open();
    const { versions, node1, node2 } = history;
    await history.chunk(keys, 200);
    const made = (await history.make(50, 12)) as RowsAhead;
    const row = { name: 'before', age: 1, email: 'e', level: 2 };
    // The leaf of the first row is written twice, and is as it was at the end.
    const [first] = (await versions.rows(node2)) as [Row];
    for (const change of [row, first]) {
      await history.put(2, node2, [0], change);
      await versions.merge(node2);
    }
    await versions.run(node1.db.gc({ loopGraceMs: 0 }));
    expect(await history.store(made)).toBe(false);
    await history.check();
    await history.end();
  });

  it('are not stored once the generation of their birth has passed', async () => {
    const history = new History(2);
    await history.open();
    const { versions, node1 } = history;
    const made = (await history.make(50, 2)) as RowsAhead;
    for (const id of [800, 802]) {
      await history.put(1, node1, [id]);
      await versions.merge(node1);
    }
    await versions.run(node1.db.gc({ loopGraceMs: 0 }));
    expect(await history.store(made)).toBe(false);
    await history.check();
    await history.end();
  });

  it('are stored in the last generation before that, and nothing of them is garbage', async () => {
    const history = new History(2);
    await history.open();
    const { versions, node1 } = history;
    const made = (await history.make(50, 2)) as RowsAhead;
    await history.put(1, node1, [800]);
    await versions.merge(node1);
    await versions.run(node1.db.gc({ loopGraceMs: 0 }));
    expect(await history.store(made)).toBe(true);
    await versions.run(node1.db.gc({ loopGraceMs: 0 }));
    await history.check();
    await history.end();
  });

  it('are not made of an empty table', async () => {
    const history = new History(4);
    await history.open();
    const { versions, node1, engine, translation } = history;
    await history.chunk(keys, 3);
    await history.delete(node1, [1, ...Array.from({ length: keys / 2 }, (_, i) => 2 * i)]);
    await versions.merge(node1);
    await history.chunk(keys, 0);
    await versions.run(engine.refresh());
    expect(canMakeAhead(history.view(), 'users', translation)).toBe(false);
    await history.check();
    await history.end();
  });

  it('are not made while rows are out of line', async () => {
    const history = new History(4);
    await history.open();
    const { versions, node1, engine, translation } = history;
    await history.chunk(keys, 200);
    expect(canMakeAhead(history.view(), 'users', translation)).toBe(true);
    await history.put(1, node1, [0], { name: 'of the old version', age: 1, old: 'old' });
    await versions.merge(node1);
    await versions.run(engine.refresh());
    expect(canMakeAhead(history.view(), 'users', translation)).toBe(false);
    await history.check();
    await history.end();
  });

  it('are not stored if another instance has made rows meanwhile', async () => {
    const history = new History(5);
    await history.open();
    const made = (await history.make(50, 12)) as RowsAhead;
    await history.chunk(20);
    expect(await history.store(made)).toBe(false);
    await history.check();
    await history.end();
  });

  it('are made of the rows that were brought in line since', async () => {
    const history = new History(3);
    await history.open();
    const { versions, node1 } = history;
    const made = (await history.make(keys, 12)) as RowsAhead;
    await history.put(1, node1, [600]);
    await versions.merge(node1);
    // A chunk that makes no missing row brings the row in line: nothing of it is stored for the new version.
    await history.chunk(1, 0);
    expect(await history.store(made)).toBe(true);
    await history.check();
    await history.end();
  });

  it('include a row that the old version has deleted and inserted again', async () => {
    const history = new History(3);
    await history.open();
    const { versions, node1, node2 } = history;
    await history.put(2, node2, [601]);
    await versions.merge(node2);
    const made = (await history.make(keys, 12)) as RowsAhead;
    await history.delete(node1, [601]);
    await versions.merge(node1);
    await history.put(1, node1, [601]);
    await versions.merge(node1);
    await history.chunk(1, 0);
    expect(await history.store(made)).toBe(true);
    await history.check();
    await history.end();
  });
});
