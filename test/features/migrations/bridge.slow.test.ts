import { describe, expect, it } from 'vitest';
import {
  DuplicateKeyError,
  InvalidSchemaError,
  MigrationError,
  MigrationPendingError,
} from '../../../src/base/errors.ts';
import { createDatabase, Database } from '../../../src/api/database.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import type { StoredTableVersion, StoredMigration, StoredRoot } from '../../../src/format/stored-table.ts';
import { Types } from '../../../src/format/types.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { prefix } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { users1, users2, Versions } from './versions.ts';

const people = Array.from({ length: 200 }, (_, i) => ({ id: i, name: `name ${i}`, age: i % 50, old: `old ${i}` }));

async function opened(versions = new Versions(), options = { blockSizeBytes: 512 }) {
  const v1 = await versions.open(1, [users1], options);
  await versions.write(v1, 'insert', people);
  return { versions, v1, v2: await versions.open(2, [users2], options) };
}

describe('writes of one version', () => {
  it('goes on sharing blocks with the base while only the new one writes', async () => {
    const { versions, v2 } = await opened();
    await versions.merge(v2);
    for (let round = 0; round < 3; round++) {
      await versions.write(v2, 'update', [{ id: round, level: 5 }]);
      await versions.write(v2, 'insert', [{ id: 300 + round, level: 5 }]);
      await versions.merge(v2);
      const { tables, migrations } = await versions.block0();
      const [active, nextVersion] = tables.find(({ name }) => name === 'users')?.versions ?? [];
      expect(migrations).toMatchObject([{ table: 'users', from: 1, to: 2, phase: 'beside', built: '' }]);
      expect(migrations[0]?.base).toEqual(active?.root);
      expect([active?.root?.count, nextVersion?.root?.count]).toEqual([201 + round, 2 * round + 2]);
    }
    expect(await versions.findings(v2)).toEqual([]);
  });

  it('is merged by nodes that know neither version, together with other tables', async () => {
    const { versions, v1, v2 } = await opened();
    const neither = await versions.open(3, []);
    await versions.write(v2, 'update', [{ id: 7, email: 'x' }]);
    await versions.write(v1, 'update', [{ id: 7, name: 'seven' }]);
    await versions.run(versions.insert(neither, 1));
    await versions.merge(neither);
    expect((await versions.block0()).migrations).toHaveLength(1);
    expect(await versions.row(v2, 7)).toEqual({ id: 7, name: 'seven', age: 7, email: 'x', level: 3 });
    expect(await versions.names(neither, [1])).toEqual(['row 1']);
    // What it leaves as it is, roots in Block 0 included, stays whole.
    await versions.run(versions.insert(neither, 2));
    await versions.merge(neither);
    const again = await versions.open(4, [users2]);
    expect(await versions.row(again, 7)).toEqual({ id: 7, name: 'seven', age: 7, email: 'x', level: 3 });
    expect(await versions.findings(again)).toEqual([]);
  });

  it('in a staged commit that deletes rows too is seen by one who opens the database, and has a migrate', async () => {
    const versions = new Versions();
    const open = async (nodeId: number, schema: SchemaDefinition): Promise<Database> => {
      const given = {
        dbPrefix: prefix,
        nodeId,
        driver: versions.store,
        writeForwardInterval: 86_400_000,
        logLevel: 'silent',
      };
      const checked = checkOptions(given, () => undefined);
      // Anything but the smallest commit is staged.
      const db = new Database(new Instance(checked, versions.environment, 300));
      db.registerSchema(schema);
      await versions.run(db.start());
      return db;
    };
    const v1 = await open(1, users1);
    const first = v1.batch();
    void first.insert('users', { id: 1, name: 'goes' });
    void first.insert('users', { id: 2, name: 'stays' });
    await versions.run(first.flush());
    await versions.run(v1.checkpoint());
    const second = v1.batch();
    void second.delete('users', 1);
    for (let id = 10; id < 40; id++) void second.insert('users', { id, name: `row ${id}` });
    await versions.run(second.flush());
    const migrate = ({ id, name, age }: Record<string, unknown>): Record<string, unknown> => ({ id, name, age });
    const v2 = await open(2, { ...users2, migrate });
    expect(v2.stats().log?.pendingCommits).toBe(1);
    expect(await versions.run(v2.query('users').count())).toBe(31);
    expect(await versions.run(v2.get('users', 1))).toBeUndefined();
    expect(await versions.run(v2.get('users', 2))).toMatchObject({ id: 2, name: 'stays', level: 3 });
  });

  it('in large batches is seen by the other, before and after it is merged', async () => {
    const versions = new Versions();
    const options = { blockSizeBytes: 4096 };
    const v1 = await versions.open(1, [users1], options);
    const v2 = await versions.open(2, [users2], options);
    const long = 'x'.repeat(100_000);
    const large = Array.from({ length: 100 }, (_, id) => ({ id, name: `${long}${id}`, age: id % 100 }));
    await versions.write(v1, 'insert', [{ id: -1, name: 'first' }]);
    await versions.write(v1, 'insert', large);
    await versions.run(v2.db.refresh());
    expect(await versions.run(v2.db.query('users').count())).toBe(101);
    await versions.write(
      v2,
      'upsert',
      large.map(({ id, name, age }) => ({ id, name, age, email: `${id}@x` })),
    );
    const check = async (): Promise<void> => {
      expect(await versions.row(v1, 34)).toEqual({ id: 34, name: `${long}34`, age: 34, old: null });
      const row = { id: 34, name: `${long}34`, age: 34, email: '34@x', level: 3 };
      expect(await versions.row(v2, 34)).toEqual(row);
      for (const { db } of [v1, v2]) expect(await versions.run(db.query('users').count())).toBe(101);
    };
    await check();
    const deleting = v1.db.batch();
    await versions.run(deleting.deleteWhere(v1.db.query('users').where('id', '>=', 50)));
    void deleting.upsert('users', { id: 5, name: long });
    await versions.run(deleting.flush());
    await versions.run(v2.db.refresh());
    expect(await versions.run(v2.db.query('users').count())).toBe(51);
    await versions.merge(v1);
    expect(await versions.run(v2.db.query('users').count())).toBe(51);
    expect(await versions.row(v2, 5)).toEqual({ id: 5, name: long, age: null, email: '5@x', level: 3 });
    expect(await versions.row(v2, 77)).toBeUndefined();
    await versions.run(v2.db.gc({ loopGraceMs: 0, graceMs: 0 }));
    expect(await versions.findings(v1)).toEqual([]);
  });

  it('survives its garbage being collected, in snapshots too', async () => {
    const { versions, v1, v2 } = await opened();
    await versions.write(v2, 'update', [{ id: 3, email: 'three' }]);
    const snapshot = await versions.run(v2.db.snapshot());
    const old = await versions.run(v1.db.snapshot());
    await versions.write(v2, 'update', [{ id: 3, email: 'four' }]);
    await versions.write(v1, 'update', [{ id: 3, name: 'four' }]);
    for (let round = 0; round < 3; round++) {
      await versions.write(
        v1,
        'update',
        people.map(({ id }) => ({ id, age: round })),
      );
      await versions.merge(round % 2 === 0 ? v1 : v2);
      await versions.environment.advance(10_000);
      await versions.run(v1.db.gc({ loopGraceMs: 0, graceMs: 0 }));
      await versions.run(v2.db.gc({ loopGraceMs: 0, graceMs: 0 }));
    }
    expect(await versions.run(snapshot.get('users', 3))).toMatchObject({ name: 'name 3', email: 'three' });
    expect(await versions.run(snapshot.query('users').count())).toBe(200);
    expect(await versions.run(old.get('users', 3))).toMatchObject({ name: 'name 3', old: 'old 3' });
    expect(await versions.row(v2, 3)).toEqual({ id: 3, name: 'four', age: 2, email: 'four', level: 3 });
    expect(await versions.findings(v2)).toEqual([]);
    await versions.run(snapshot.release());
    await versions.run(old.release());
  });

  it('is read again when garbage was collected past the view', async () => {
    const { versions, v1, v2 } = await opened();
    const churn = async (round: number): Promise<void> => {
      await versions.write(
        v1,
        'update',
        people.map(({ id }) => ({ id, age: round })),
      );
      await versions.merge(v1);
      await versions.environment.advance(3_600_000);
      await versions.run(v1.db.gc({ loopGraceMs: 0, graceMs: 0 }));
    };
    await versions.write(
      v2,
      'update',
      people.slice(0, 100).map(({ id }) => ({ id, email: `${id}@x` })),
    );
    await versions.merge(v1);
    await churn(0);
    const uses: ((late: TestNode) => Promise<void>)[] = [
      async ({ db }) => expect(await versions.run(db.get('users', 50))).toMatchObject({ email: '50@x' }),
      async ({ db }) => expect(await versions.run(db.query('users').execute())).toHaveLength(200),
      async ({ db }) => expect(await versions.run(db.query('users').where('age', '>=', 0).count())).toBe(200),
      async ({ db }) => {
        const iterator = db.query('users')[Symbol.asyncIterator]();
        for (let id = 0; id < 200; id++) {
          expect((await versions.run(iterator.next())).value).toMatchObject({ id, email: id < 100 ? `${id}@x` : null });
          // Before others have merged, it holds on to what it reads.
          if (id === 5) await versions.environment.advance(11_000);
          if (id === 100) for (const round of [3, 4]) await churn(round);
        }
        expect((await versions.run(iterator.next())).done).toBe(true);
      },
      async (late) => {
        await versions.write(late, 'update', [{ id: 50, level: 7 }]);
        expect(await versions.row(v2, 50)).toMatchObject({ email: '50@x', level: 7 });
      },
      async ({ db }) => {
        const write = db.transaction(async (tx) => {
          const row = await tx.get('users', 50);
          await tx.update('users', { id: 50, level: (row as { level: number }).level + 1 });
        });
        await versions.run(write);
        expect(await versions.row(v2, 50)).toMatchObject({ email: '50@x', level: 8 });
      },
    ];
    for (const use of uses) {
      const late = await versions.open(3, [users2], { blockSizeBytes: 512, polling: 'onDemand' });
      const { generation } = await versions.block0();
      await churn(1);
      await churn(2);
      expect((await versions.block0()).collected).toBeGreaterThan(generation);
      await use(late);
      await versions.run(late.db.stop());
    }
  });

  it('is read again when only the next version has changed', async () => {
    const { versions, v1 } = await opened();
    const driving = await versions.open(4, [users2], {
      blockSizeBytes: 512,
      polling: 'onDemand',
      writeForwardInterval: 1000,
    });
    await versions.merge(v1);
    await versions.run(driving.db.setTargetSchemaVersion('users', 2, { keepOld: true, rowsPerSecond: 20 }));
    const roots = async (): Promise<(StoredRoot | undefined)[]> => {
      const users = (await versions.block0()).tables.find(({ name }) => name === 'users');
      return (users?.versions ?? []).map(({ root }) => root);
    };
    const until = async (rows: number): Promise<void> => {
      for (let waited = 0; waited < 500 && ((await roots())[1]?.count ?? 0) < rows; waited++) {
        await versions.run(driving.db.refresh());
        await versions.environment.advance(100);
      }
    };
    await until(1);
    const late = await versions.open(3, [users2], { blockSizeBytes: 512, polling: 'onDemand' });
    const [active, nextVersion] = await roots();
    await until(200);
    const [activeNow, nextVersionNow] = await roots();
    expect([activeNow?.id, nextVersion?.count === 200, nextVersionNow?.count]).toEqual([active?.id, false, 200]);
    for (let round = 0; round < 2; round++) {
      await versions.run(versions.insert(v1, round));
      await versions.merge(v1);
      await versions.environment.advance(3_600_000);
      await versions.run(v1.db.gc({ loopGraceMs: 0, graceMs: 0 }));
    }
    expect(await versions.run(late.db.query('users').execute())).toHaveLength(200);
    expect(await versions.run(late.db.get('users', 3))).toMatchObject({ name: 'name 3' });
  });

  it('is there for an instance that opens the database again', async () => {
    const { versions, v1, v2 } = await opened();
    await versions.write(v2, 'update', [{ id: 3, email: 'three' }]);
    await versions.merge(v1);
    await versions.write(v2, 'update', [{ id: 4, email: 'four' }]);
    await versions.write(v1, 'update', [{ id: 3, name: 'T' }]);
    const again = await versions.open(5, [users2, users1]);
    expect(await versions.row(again, 3)).toEqual({ id: 3, name: 'T', age: 3, email: 'three', level: 3 });
    expect(await versions.row(again, 4)).toEqual({ id: 4, name: 'name 4', age: 4, email: 'four', level: 3 });
  });
});

describe('db.verify()', () => {
  it('notices a next version with wrong contents', async () => {
    const { versions, v1, v2 } = await opened();
    await versions.merge(v1);
    await versions.write(
      v2,
      'update',
      people.slice(0, 100).map(({ id }) => ({ id, level: 1 })),
    );
    await versions.merge(v2);
    await versions.write(v2, 'update', [{ id: 1, level: 2 }]);
    expect(await versions.findings(v1)).toEqual([]);
    const sound = await versions.block0();
    const findings = async (change: Partial<Block0>): Promise<string> => {
      await versions.replaceBlock0(() => change);
      const found = await versions.findings(v1);
      await versions.replaceBlock0(() => ({ tables: sound.tables, migrations: sound.migrations }));
      return found.join(' ');
    };
    const withVersion2 = (change: Partial<StoredTableVersion>): Partial<Block0> => ({
      tables: sound.tables.map(({ name, versions: stored }) => ({
        name,
        versions: stored.map((version) => (version.schema.version === 2 ? { ...version, ...change } : version)),
      })),
    });
    const [migration] = sound.migrations as [StoredMigration];
    const [, nextVersion] = sound.tables.find(({ name }) => name === 'users')?.versions ?? [];
    expect(await findings({ migrations: [{ ...migration, base: null }] })).toContain('goes with no row of the base');
    const target = { rowsPerSecond: 1, keepOld: false };
    const switched = { ...migration, phase: 'switched', built: null, target } as const;
    expect(await findings({ migrations: [switched] })).toContain('Version 2 has 100 rows, and version 1 200');
    const empty = (nextVersion?.indexes ?? []).map(({ name }) => ({ name, root: null }));
    expect(await findings(withVersion2({ indexes: empty }))).toContain(
      'The index has 0 entries, and the table 100 rows',
    );
    const root = { ...(nextVersion?.root as NonNullable<StoredRoot>), id: '0000000000000000' };
    expect(await findings(withVersion2({ root }))).toContain('missing');
    expect(await versions.findings(v1)).toEqual([]);
  });
});

describe('blobs', () => {
  it('belong to a row in both versions, whether the one or the other writes or deletes it', async () => {
    const versions = new Versions();
    const photo = { photo: { typeId: Types.blob } };
    const v1 = await versions.open(1, [{ ...users1, fields: { ...users1.fields, ...photo } }]);
    const v2 = await versions.open(2, [{ ...users2, fields: { ...users2.fields, ...photo } }]);
    const text = async (node: TestNode, id: number): Promise<string | undefined> => {
      const row = await versions.row(node, id);
      const reference = row?.['photo'];
      if (typeof reference !== 'string') return undefined;
      return versions.run(node.db.getBlob(reference).getString());
    };
    await versions.write(v1, 'insert', [
      { id: 1, photo: v1.db.Blob('one') },
      { id: 2, photo: v1.db.Blob('two') },
    ]);
    await versions.write(v2, 'insert', [{ id: 3, photo: v2.db.Blob('three') }]);
    await versions.write(v2, 'update', [
      { id: 1, level: 4 },
      { id: 2, photo: v2.db.Blob('two, again') },
    ]);
    await versions.write(v1, 'update', [{ id: 3, name: 'c' }]);
    for (const merge of [false, true]) {
      if (merge) await versions.merge(v1);
      for (const node of [v1, v2]) {
        expect([await text(node, 1), await text(node, 2), await text(node, 3)]).toEqual(['one', 'two, again', 'three']);
      }
      expect(await versions.findings(v1)).toEqual([]);
    }
    await versions.delete(v1, [3]);
    await versions.delete(v2, [1]);
    await versions.merge(v2);
    for (let round = 0; round < 2; round++) {
      await versions.environment.advance(86_400_000);
      await versions.run(v1.db.gc({ loopGraceMs: 0, graceMs: 0 }));
      await versions.merge(v1);
    }
    expect((await versions.keys()).filter((key) => key.startsWith('blobs/'))).toHaveLength(1);
    expect(await text(v2, 2)).toBe('two, again');
    expect(await versions.findings(v2)).toEqual([]);
  });
});

describe('a transaction of the new version', () => {
  const race = async (other: (world: Awaited<ReturnType<typeof opened>>) => Promise<void>) => {
    const world = await opened();
    const { versions, v2 } = world;
    let attempts = 0;
    await versions.run(v2.db.refresh());
    const failure = await versions
      .run(
        v2.db.transaction(
          async (tx) => {
            attempts++;
            const row = await tx.get('users', 5);
            await tx.query('users').where('age', '=', 7).execute();
            if (attempts === 1) await other(world);
            await tx.update('users', { id: 5, level: (row as { age: number }).age + 100 });
          },
          { maxAttempts: 3 },
        ),
      )
      .catch((error: unknown) => error);
    return { ...world, attempts, failure };
  };

  it('is repeated when an old one changes rows that it read', async () => {
    const { versions, v2, attempts, failure } = await race(async ({ v1 }) => {
      const batch = v1.db.batch();
      void batch.update('users', { id: 5, age: 77 });
      await batch.flush();
    });
    expect([attempts, failure]).toEqual([2, undefined]);
    expect(await versions.row(v2, 5)).toMatchObject({ age: 77, level: 177 });
  });

  it('is made again when an old one changes a row that its query could find', async () => {
    const { attempts } = await race(async ({ v1 }) => {
      const batch = v1.db.batch();
      void batch.update('users', { id: 100, age: 7 });
      await batch.flush();
    });
    expect(attempts).toBe(2);
  });

  it('is repeated when another new one does, and not for rows that it did not read', async () => {
    const { versions } = await opened();
    const other = await versions.open(3, [users2]);
    const keyed = await versions.open(4, [users2]);
    let attempts = 0;
    await versions.run(
      keyed.db.transaction(async (tx) => {
        attempts++;
        await tx.get('users', 5);
        await tx.query('users').where('age', '=', 7).execute();
        if (attempts === 1) {
          const batch = other.db.batch();
          void batch.update('users', { id: 6, level: 1 });
          await batch.flush();
        }
        await tx.update('users', { id: 5, level: 2 });
      }),
    );
    expect(attempts).toBe(1);
    const { attempts: both } = await race(async (world) => {
      const batch = world.v2.db.batch();
      void batch.update('users', { id: 5, level: 1 });
      await batch.flush();
    });
    expect(both).toBe(2);
  });
});

describe('a row that cannot be brought to the new version', () => {
  const strict = {
    ...users2,
    migrate: (row: Record<string, unknown>) => {
      if (row['name'] === 'bad') throw new RangeError('this name will not do');
      return row;
    },
  } as const satisfies SchemaDefinition;

  it('is an error for the new one only, and only where it is read', async () => {
    const versions = new Versions();
    const v1 = await versions.open(1, [users1], { blockSizeBytes: 512 });
    const v2 = await versions.open(2, [strict], { blockSizeBytes: 512 });
    await versions.write(v1, 'insert', people);
    await versions.write(v1, 'update', [{ id: 77, name: 'bad' }]);
    for (const merged of [false, true]) {
      if (merged) await versions.merge(v1);
      await versions.run(v2.db.refresh());
      const errors = [
        await versions.failure(v2.db.query('users').execute()),
        await versions.failure(v2.db.get('users', 77)),
      ];
      for (const error of errors) {
        expect(error).toBeInstanceOf(MigrationError);
        expect(error).toMatchObject({ table: 'users', primaryKey: 77, cause: expect.any(RangeError) as unknown });
        expect(error.message).toContain('this name will not do');
      }
      for (const id of [0, 76, 78, 199]) expect(await versions.row(v2, id)).toMatchObject({ id, name: `name ${id}` });
      expect(await versions.rows(v1)).toHaveLength(200);
      await versions.write(v2, 'update', [{ id: 76, level: 9 }]);
      expect(await versions.row(v2, 76)).toMatchObject({ level: 9 });
    }
    await versions.write(v2, 'upsert', [{ id: 77, name: 'good' }]);
    expect(await versions.rows(v2)).toHaveLength(200);
    await versions.write(v1, 'update', [{ id: 78, name: 'bad' }]);
    expect(await versions.failure(v2.db.refresh().then(() => v2.db.get('users', 78)))).toBeInstanceOf(MigrationError);
    await versions.write(v1, 'update', [{ id: 78, name: 'good again' }]);
    expect(await versions.rows(v2)).toHaveLength(200);
    await versions.merge(v2);
    expect(await versions.rows(v2)).toHaveLength(200);
  });
});

describe('a value that the new type of its field cannot hold', () => {
  const fields = { id: { typeId: Types.int32 }, name: { typeId: Types.varchar } };
  const ranked = { name: 'ranked', primaryKey: 'id', indexes: ['name'] } as const;
  const ranked1: SchemaDefinition = { ...ranked, version: 1, fields: { ...fields, rank: { typeId: Types.int32 } } };
  const ranked2: SchemaDefinition = { ...ranked, version: 2, fields: { ...fields, rank: { typeId: Types.int16 } } };

  it('is no error if an index on another field excludes its row', async () => {
    const versions = new Versions();
    const v1 = await versions.open(1, [ranked1], { blockSizeBytes: 512 });
    const v2 = await versions.open(2, [ranked2], { blockSizeBytes: 512 });
    const batch = v1.db.batch();
    const rows = Array.from({ length: 200 }, (_, id) => ({
      id,
      name: `name ${id % 10}`,
      rank: id === 70 ? 40_000 : id,
    }));
    for (const row of rows) void batch.insert('ranked', row);
    await versions.run(batch.flush());
    await versions.merge(v1);
    await versions.run(v2.db.refresh());
    const named = (name: string): Promise<unknown> => v2.db.query('ranked').where('name', '=', name).execute();
    expect(await versions.run(named('name 1'))).toHaveLength(20);
    expect(await versions.failure(named('name 0'))).toMatchObject({ code: 'MIGRATION', primaryKey: 70 });
  });
});

describe('versions that cannot be had', () => {
  it('a third one, until the migration is over', async () => {
    const { versions, v2 } = await opened();
    await versions.write(v2, 'update', [{ id: 1, level: 1 }]);
    const third: SchemaDefinition = { ...users1, version: 3 };
    const v3 = await versions.open(3, [third]);
    const error = await versions.failure(v3.db.query('users').execute());
    expect(error).toBeInstanceOf(InvalidSchemaError);
    expect(error.message).toContain('from version 1 to version 2');
    const batch = v3.db.batch();
    void batch.insert('users', { id: 1 });
    expect(await versions.failure(batch.flush())).toBeInstanceOf(InvalidSchemaError);
    await versions.run(versions.insert(v3, 1));
    expect(await versions.names(v3, [1])).toEqual(['row 1']);
  });

  it('one that is older than the active version', async () => {
    const versions = new Versions();
    const v2 = await versions.open(2, [users2]);
    await versions.write(v2, 'insert', [{ id: 1 }]);
    const v1 = await versions.open(1, [users1], { retiredVersions: 'allow' });
    const error = await versions.failure(v1.db.query('users').execute());
    expect(error).toBeInstanceOf(InvalidSchemaError);
    expect(error.message).toContain('Deploy the version of the application that registers version 2');
  });

  it('one with other keys, before all of its rows are made', async () => {
    const { versions } = await opened();
    const other = await versions.open(3, [{ ...users2, fields: { ...users2.fields, id: { typeId: Types.varchar } } }]);
    expect(await versions.failure(other.db.query('users').execute())).toBeInstanceOf(MigrationPendingError);
  });

  it('a definition that differs from the one of other writers', async () => {
    const { versions, v2 } = await opened();
    await versions.write(v2, 'update', [{ id: 1, level: 1 }]);
    const other = await versions.open(3, [{ ...users2, indexes: [] }]);
    const error = await versions.failure(other.db.query('users').execute());
    expect(error).toBeInstanceOf(InvalidSchemaError);
    expect(error.message).toContain('It has other indexes there');
  });

  it('a `migrate` that is no function', () => {
    const versions = new Versions();
    const db = createDatabase({ dbPrefix: prefix, nodeId: 9, driver: versions.store }, versions.environment);
    const schema = { ...users2, migrate: 'yes' } as unknown as SchemaDefinition;
    expect(() => db.registerSchema(schema)).toThrow(InvalidSchemaError);
  });
});

describe('an instance', () => {
  it('that registers a newer version while it runs uses it from then on', async () => {
    const { versions, v1 } = await opened();
    expect(await versions.row(v1, 1)).toHaveProperty('old');
    v1.db.registerSchema(users2);
    expect(await versions.row(v1, 1)).toEqual({ id: 1, name: 'name 1', age: 1, email: null, level: 3 });
    await versions.write(v1, 'update', [{ id: 1, email: 'x' }]);
    expect(await versions.row(v1, 1)).toMatchObject({ email: 'x' });
    v1.db.registerSchema({ ...users2, version: 3 });
    expect(await versions.failure(v1.db.get('users', 1))).toBeInstanceOf(InvalidSchemaError);
  });

  it('keeps keys unique among its own unflushed writes and the writes of others', async () => {
    const { versions, v1, v2 } = await opened();
    const batches: { db: TestNode['db'] }[] = [v1, v2];
    const flushes = batches.map(({ db }) => {
      const batch = db.batch();
      void batch.insert('users', { id: 500, name: 'mine' });
      return batch.flush().then(
        () => 'inserted',
        (error: unknown) => (error instanceof DuplicateKeyError ? 'duplicate' : error),
      );
    });
    const outcomes = await versions.run(Promise.all(flushes));
    expect(new Set(outcomes)).toEqual(new Set(['duplicate', 'inserted']));
    const overlaid = v2.db.batch();
    void overlaid.update('users', { id: 1, email: 'overlaid' });
    void overlaid.insert('users', { id: 501, name: 'new' });
    const rows = await versions.run(v2.db.query('users').overlay(overlaid).where('id', 'IN', [1, 501]).execute());
    expect(rows).toMatchObject([
      { id: 1, name: 'name 1', email: 'overlaid' },
      { id: 501, name: 'new' },
    ]);
  });
});
