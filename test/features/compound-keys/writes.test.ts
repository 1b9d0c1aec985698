/** Tables whose primary key has several fields: refusals, and writes and look-ups by key. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  ConditionFailedError,
  DuplicateKeyError,
  EncodeError,
  InvalidQueryError,
  InvalidSchemaError,
  RowNotFoundError,
  UniqueIndexError,
} from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const pages = {
  name: 'pages',
  version: 1,
  fields: {
    title: { typeId: Types.varchar },
    slug: { typeId: Types.varchar },
    tenant: { typeId: Types.uint32 },
    views: { typeId: Types.uint32, default: 0 },
    file: { typeId: Types.blob },
    meta: { typeId: Types.json },
  },
  primaryKey: ['tenant', 'slug'],
  indexes: [{ fields: ['title'], unique: true }, 'views'],
} as const satisfies SchemaDefinition;

/** Keys that are as long as they may be. */
const wide = {
  name: 'wide',
  version: 1,
  fields: { a: { typeId: Types.varchar }, b: { typeId: Types.bytes }, c: { typeId: Types.float32 } },
  primaryKey: ['a', 'b', 'c'],
} as const satisfies SchemaDefinition;

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

async function open(nodeId: number): Promise<TestNode> {
  const node = nodes.make(nodeId, { blockSizeBytes: 1024 });
  node.db.registerSchema(pages);
  node.db.registerSchema(wide);
  await nodes.run(node.db.start());
  return node;
}

beforeEach(async () => {
  nodes = new Nodes();
  a = await open(1);
  b = await open(2);
});

function refusal(primaryKey: unknown): string {
  try {
    toStoredSchema({ ...pages, primaryKey });
  } catch (error) {
    if (error instanceof InvalidSchemaError) return error.message;
    throw error;
  }
  return 'it was taken';
}

/** What a write is refused with, at once. */
async function refusedWrite(write: (batch: ReturnType<TestNode['db']['batch']>) => Promise<unknown>): Promise<Error> {
  const batch = a.db.batch();
  const error = await nodes.failure(write(batch));
  expect(batch.size).toBe(0);
  return error;
}

describe('a definition', () => {
  it('takes 1 to 16 different fields that can be keys', () => {
    expect(refusal([])).toBe(
      "The primary key of table 'pages' must be the name of a field, or an array of 1 to 16, not of 0.",
    );
    expect(refusal(['tenant', 'slug', 'tenant'])).toBe(
      "The primary key of table 'pages' has the field 'tenant' twice.",
    );
    expect(refusal(['tenant', 'slgu'])).toBe(
      "The primary key 'slgu' is not a field of table 'pages': did you mean slug?",
    );
    expect(refusal(['tenant', 'meta'])).toBe("Field 'meta' is of type json, which cannot be the primary key.");
    expect(refusal(['file', 'tenant'])).toBe("Field 'file' is of type blob, which cannot be the primary key.");
    // oxlint-disable-next-line no-sparse-arrays -- a hole is no name
    expect(refusal(['tenant', , 'slug'])).toBe("The primary key undefined is not a field of table 'pages'.");
    expect(refusal(5)).toBe("The primary key 5 is not a field of table 'pages'.");
    const many = Array.from({ length: 17 }, (_, i) => `f${i}`);
    const fields = Object.fromEntries(many.map((name) => [name, { typeId: Types.uint8 }]));
    expect(() => toStoredSchema({ ...pages, indexes: [], fields, primaryKey: many })).toThrow(
      'an array of 1 to 16, not of 17.',
    );
    expect(toStoredSchema({ ...pages, indexes: [], fields, primaryKey: many.slice(1) }).primaryKey).toHaveLength(16);
    expect(toStoredSchema(pages).primaryKey).toEqual(['tenant', 'slug']);
  });

  it('of one field in an array equals the key of the field', () => {
    expect(toStoredSchema({ ...pages, primaryKey: ['slug'] })).toEqual(
      toStoredSchema({ ...pages, primaryKey: 'slug' }),
    );
  });
});

describe('writes', () => {
  it('resolve to the key, which rows are looked up by', async () => {
    const batch = a.db.batch();
    const added = batch.insert(pages, { slug: 'a', title: 'first', tenant: 7 });
    expect(await nodes.run(added)).toEqual([7, 'a']);
    void batch.insert(pages, { slug: 'b', tenant: 7 });
    void batch.upsert(pages, { slug: 'a', tenant: 8, title: 'other' });
    await nodes.run(batch.flush());
    const row = { title: 'first', slug: 'a', tenant: 7, views: 0, file: null, meta: null };
    for (const { db } of [a, b]) {
      await nodes.run(db.refresh());
      expect(await nodes.run(db.get(pages, [7, 'a']))).toEqual(row);
      expect((await nodes.run(db.get(pages, [8, 'a'])))?.title).toBe('other');
      expect(await nodes.run(db.get(pages, [8, 'b']))).toBeUndefined();
      expect(await nodes.run(db.get(pages, [-1, 'a']))).toBeUndefined();
    }
    await nodes.run(a.db.checkpoint());
    expect(await nodes.run(a.db.get(pages, [7, 'a']))).toEqual(row);
    const snapshot = await nodes.run(a.db.snapshot());
    expect(await nodes.run(snapshot.get(pages, [7, 'a']))).toEqual(row);
    await nodes.run(snapshot.release());
  });

  it('change and delete the row of a key, on any node', async () => {
    const batch = a.db.batch();
    for (const tenant of [1, 2]) void batch.insert(pages, { tenant, slug: 'x', title: `t${tenant}`, views: 5 });
    await nodes.run(batch.flush());
    await nodes.run(b.db.refresh());
    const both = [a, b].map(({ db }) => db.batch());
    for (const each of both) void each.increment(pages, [1, 'x'], { views: 2 });
    for (const each of both) await nodes.run(each.flush());
    const changes = a.db.batch();
    void changes.update(pages, { tenant: 2, slug: 'x', title: 'new' }, { if: { views: 5 } });
    await nodes.run(changes.flush());
    await nodes.run(b.db.refresh());
    expect(await nodes.run(b.db.query(pages).select('tenant', 'title', 'views').execute())).toEqual([
      { tenant: 1, title: 't1', views: 9 },
      { tenant: 2, title: 'new', views: 5 },
    ]);
    const deletions = b.db.batch();
    void deletions.delete(pages, [1, 'x'], { if: { views: 9 } });
    void deletions.delete(pages, [1, 'y']);
    await nodes.run(deletions.flush());
    await nodes.run(a.db.refresh());
    expect(await nodes.run(a.db.query(pages).select('tenant').execute())).toEqual([{ tenant: 2 }]);
  });

  it('are refused with the key in the error', async () => {
    const batch = a.db.batch();
    void batch.insert(pages, { tenant: 1, slug: 'x', title: 'one' });
    await nodes.run(batch.flush());
    const refusedFlush = async (write: (batch: ReturnType<TestNode['db']['batch']>) => void): Promise<Error> => {
      const other = a.db.batch();
      write(other);
      return nodes.failure(other.flush());
    };
    const duplicate = await refusedFlush((other) => void other.insert(pages, { tenant: 1, slug: 'x' }));
    expect(duplicate).toBeInstanceOf(DuplicateKeyError);
    expect((duplicate as DuplicateKeyError).primaryKey).toEqual([1, 'x']);
    expect(duplicate.message).toBe("Table 'pages' has a row with primary key [1, 'x'] already. Nothing was written.");
    const missing = await refusedFlush((other) => void other.update(pages, { tenant: 1, slug: 'y', views: 1 }));
    expect(missing).toBeInstanceOf(RowNotFoundError);
    expect(missing.message).toContain("no row with primary key [1, 'y'] to update");
    const failed = await refusedFlush(
      (other) => void other.update(pages, { tenant: 1, slug: 'x', views: 1 }, { if: { title: 'two' } }),
    );
    expect(failed).toBeInstanceOf(ConditionFailedError);
    expect(failed.message).toContain("Field 'title' of the row with primary key [1, 'x'] in table 'pages' is 'one'");
    const agreeing = await refusedFlush((other) => void other.insert(pages, { tenant: 2, slug: 'x', title: 'one' }));
    expect(agreeing).toBeInstanceOf(UniqueIndexError);
    expect([(agreeing as UniqueIndexError).primaryKey, (agreeing as UniqueIndexError).otherKey]).toEqual([
      [2, 'x'],
      [1, 'x'],
    ]);
    const overflown = await refusedFlush((other) => void other.increment(pages, [1, 'x'], { views: -1 }));
    expect(overflown.message).toContain("of the row with primary key [1, 'x']");
  });

  it('are refused at the call where the key is not one', async () => {
    const loose = 'pages';
    const missing = await refusedWrite((batch) => batch.insert(loose, { tenant: 1 }));
    expect(missing).toBeInstanceOf(EncodeError);
    expect(missing.message).toBe(
      "Cannot store field 'slug' of table 'pages': it is missing, or null, and the primary key is made of tenant, slug: every row needs all of them.",
    );
    for (const document of [{ slug: 'a' }, { tenant: null, slug: 'a' }, { tenant: 1, slug: null }, {}]) {
      for (const kind of ['insert', 'upsert', 'update'] as const) {
        expect(await refusedWrite((batch) => batch[kind](loose, document))).toBeInstanceOf(EncodeError);
      }
    }
    const given = (key: unknown): Promise<Error> => refusedWrite((batch) => batch.delete(loose, key));
    expect((await given('a')).message).toContain("the primary key is an array of 2 values, [tenant, slug], not 'a'.");
    expect((await given([1])).message).toContain('[tenant, slug], not an array of 1.');
    expect((await given([1, 'a', 'b'])).message).toContain('not an array of 3.');
    expect((await given(['a', 1])).message).toContain("field 'tenant' of table 'pages': 'a' does not fit type uint32");
    expect((await given([1, null])).message).toContain("field 'slug' of table 'pages': it is missing, or null");
    expect((await given([1, 'x'.repeat(1025)])).message).toContain(
      'has 1025 bytes, and a primary key takes up to 1024',
    );
    const long = await refusedWrite((batch) => batch.insert(wide, { a: 'é'.repeat(400), b: Buffer.alloc(225), c: 1 }));
    expect(long.message).toContain('has 1025 bytes, and a primary key takes up to 1024');
    const longest = a.db.batch();
    for (const c of [1, 2, 3]) void longest.insert(wide, { a: '\0'.repeat(800), b: Buffer.alloc(224), c });
    await nodes.run(longest.flush());
    await nodes.run(a.db.checkpoint());
    expect(await nodes.run(a.db.query(wide).count())).toBe(3);
    const increment = (key: unknown): Promise<Error> =>
      refusedWrite((batch) => batch.increment(loose, key, { views: 1 }));
    expect(await increment('a')).toBeInstanceOf(EncodeError);
    expect((await increment([1])).message).toContain('[tenant, slug], not an array of 1.');
    expect((await refusedWrite((batch) => batch.increment(loose, [1, 'a'], { tenant: 1 }))).message).toContain(
      "'tenant' is the primary key",
    );
    await nodes.run(a.db.refresh());
    for (const key of ['a', [1], [1, 'a', 2], [true, 'a']]) {
      expect(await nodes.failure(Promise.resolve().then(() => a.db.get(loose, key)))).toBeInstanceOf(InvalidQueryError);
    }
  });

  it('give fields their defaults, of the key too', async () => {
    const notes = {
      name: 'notes',
      version: 1,
      fields: {
        owner: { typeId: Types.varchar, default: 'me' },
        id: { typeId: Types.uuid, default: 'uuidv7' },
        at: { typeId: Types.timestamp, default: 'now' },
      },
      primaryKey: ['owner', 'id', 'at'],
    } as const satisfies SchemaDefinition;
    a.db.registerSchema(notes);
    const batch = a.db.batch();
    const key = await nodes.run(batch.insert(notes, {}));
    expect(key).toEqual(['me', expect.stringMatching(/^[0-9a-f-]{36}$/), expect.any(Date)]);
    await nodes.run(batch.flush());
    expect(await nodes.run(a.db.get(notes, key))).toEqual({ owner: key[0], id: key[1], at: key[2] });
  });
});

describe('other uses of a key', () => {
  it('updates and deletes the rows of a query', async () => {
    const batch = a.db.batch();
    for (let i = 0; i < 6; i++) void batch.insert(pages, { tenant: i % 2, slug: `s${i}`, views: i });
    await nodes.run(batch.flush());
    const changes = a.db.batch();
    expect(await nodes.run(changes.updateWhere(a.db.query(pages).where('tenant', '=', 1), { views: 50 }))).toBe(3);
    expect(await nodes.run(changes.deleteWhere(a.db.query(pages).where('views', '<', 3)))).toBe(2);
    const refused = a.db.batch();
    const error = await nodes.failure(refused.updateWhere(a.db.query(pages), { slug: 'x' }));
    expect(error.message).toContain("updateWhere() cannot give 'slug', of the primary key of table 'pages'");
    refused.clear();
    await nodes.run(changes.flush());
    const left = await nodes.run(a.db.query(pages).select('tenant', 'slug', 'views').execute());
    expect(left).toEqual([
      { tenant: 0, slug: 's4', views: 4 },
      { tenant: 1, slug: 's1', views: 50 },
      { tenant: 1, slug: 's3', views: 50 },
      { tenant: 1, slug: 's5', views: 50 },
    ]);
  });

  it('is the one that triggers, functions, changes and blobs show', async () => {
    const seen: unknown[] = [];
    a.db.registerTrigger(pages, '*', async (row, _batch, api, operation, before) => {
      seen.push([operation, row, before, await api.get(pages, [1, 'x'])]);
    });
    const batch = a.db.batch();
    void batch.insert(pages, { tenant: 1, slug: 'x', file: a.db.Blob('content') });
    await nodes.run(batch.flush());
    const gone = a.db.batch();
    void gone.delete(pages, [9, 'z']);
    await nodes.run(gone.flush());
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(['delete', { tenant: 9, slug: 'z' }, undefined, expect.objectContaining({ tenant: 1 })]);
    const row = await nodes.run(a.db.get(pages, [1, 'x']));
    expect(await nodes.run(a.db.getBlob(row?.file as string).getString())).toBe('content');
    const removal = a.db.batch();
    void removal.delete(pages, [1, 'x']);
    await nodes.run(removal.flush());
    await nodes.run(a.db.checkpoint());
    await nodes.run(a.db.gc());
    expect((await nodes.run(a.db.verify({ deep: true }))).findings).toEqual([]);
    a.db.registerFunction('bad', () => {
      throw new Error('no');
    });
    const other = b.db.batch();
    void other.insert(pages, { tenant: 3, slug: 'f' });
    await nodes.run(other.flush());
    await nodes.run(a.db.refresh());
    const error = await nodes.failure(a.db.query(pages).where('bad', '=', 1).execute());
    expect(error.message).toContain("with primary key [3, 'f']");
  });

  it('decides conflicts of transactions', async () => {
    const batch = a.db.batch();
    for (const slug of ['x', 'y']) void batch.insert(pages, { tenant: 1, slug, views: 1 });
    await nodes.run(batch.flush());
    await nodes.run(b.db.refresh());
    let attempts = 0;
    const write = async (slug: string): Promise<void> => {
      const other = b.db.batch();
      void other.increment(pages, [1, slug], { views: 10 });
      await other.flush();
    };
    const add = async (disturbed: string): Promise<number> => {
      attempts = 0;
      await nodes.run(
        a.db.transaction(async (tx) => {
          attempts++;
          const row = await tx.get(pages, [1, 'x']);
          if (attempts === 1) await write(disturbed);
          await tx.update(pages, { tenant: 1, slug: 'x', views: (row?.views ?? 0) + 1 });
        }),
      );
      return attempts;
    };
    expect(await add('x')).toBe(2);
    expect(await add('y')).toBe(1);
    await nodes.run(a.db.refresh());
    expect((await nodes.run(a.db.get(pages, [1, 'x'])))?.views).toBe(13);
  });
});
