/**
 * Random histories of a migration whose rows are made ahead: whoever writes, merges, collects garbage or makes other rows meanwhile,
 * both versions show what the model gives, the indexes have the entries of their rows, and no block that is referred to is gone.
 */
import { describe, expect, it } from 'vitest';
import { Database } from '../../../src/api/database.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import type { MergedTable } from '../../../src/merge/merge-table.ts';
import { mayRefer } from '../../../src/merge/new-trees.ts';
import { nextChunk } from '../../../src/migration/chunk.ts';
import { RowTranslation } from '../../../src/migration/row-translation.ts';
import { canMakeAhead, makeAhead, storeAhead } from '../../../src/migration/rows-ahead.ts';
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
        await this.#put(
          1,
          node,
          Array.from({ length: keys / 2 }, (_, i) => 2 * i),
        );
    }
    const [, two] = this.nodes as [unknown, { node: TestNode }];
    await this.#put(2, two.node, [1]);
    await versions.merge(two.node);
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

  async #put(version: 1 | 2, { db }: TestNode, ids: readonly number[]): Promise<void> {
    const batch = db.batch();
    for (const id of ids) {
      const row = { id, ...this.#document(version) };
      void batch.upsert('users', row);
      this.model.write(version, row);
    }
    await this.versions.run(batch.flush());
  }

  async write(): Promise<void> {
    const { random } = this;
    const { node, version } = random.pick(this.nodes);
    const ids = [...new Set(Array.from({ length: random.between(1, 6) }, () => random.below(keys)))];
    if (random.chance(0.3)) {
      const batch = node.db.batch();
      for (const id of ids) {
        void batch.delete('users', id);
        this.model.delete(id);
      }
      await this.versions.run(batch.flush());
    } else await this.#put(version, node, ids);
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

  async ahead(): Promise<void> {
    const { random, versions, engine, translation } = this;
    // It brings the rows in line.
    await this.chunk(keys, 3);
    const view = this.view();
    if (!canMakeAhead(view, 'users', translation)) return;
    const limits = { rows: random.between(1, keys / 2), isOver: () => random.chance(0.005) };
    const written = await versions.run(
      engine.merger.ahead(view.block0, random.between(1, 12), (context) => {
        return makeAhead(view, 'users', translation, limits, context);
      }),
    );
    for (let i = random.below(12); i > 0; i--) await this.others();
    if (random.chance(0.2)) await this.chunk();
    // As a process that ends here.
    if (written?.made === undefined || random.chance(0.1)) return;
    const { made } = written;
    await versions.run(engine.refresh());
    let chunk: { table: MergedTable | undefined } | undefined;
    const collects = random.chance(0.3);
    const done = await versions.run(
      engine.merger.rebuild(
        async (block0, context) => {
          if (!mayRefer(block0, written)) return [];
          chunk = await storeAhead(View.ofBlock0(engine.context, block0), 'users', made, translation, 1e6, context);
          // It announces a generation before the chunk is stored, and deletes what that does not reach.
          if (collects) await random.pick(this.nodes).node.db.gc({ loopGraceMs: 0 });
          return chunk?.table === undefined ? [] : [chunk.table];
        },
        true,
        (present) => mayRefer(present, written),
      ),
    );
    if (done && chunk?.table !== undefined) this.stored++;
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
    for (let i = 0; i < steps; i++) {
      const choice = random.below(20);
      if (choice < 8) await this.ahead();
      else if (choice < 12) await this.chunk();
      else if (choice < 19) await this.others();
      else await this.check();
    }
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
      await history.open();
      await history.run(25);
      expect(history.stored + history.lost).toBeGreaterThan(0);
    },
  );
});
