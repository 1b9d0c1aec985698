/** The `validate` of a definition: on which rows it runs, and what it refuses before anything is written. */
import { type } from 'arktype';
import * as v from 'valibot';
import { beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { date, InvalidSchemaError, StoreDb, Types, ValidationError } from '../../../src/index.ts';
import type { Database, SchemaDefinition, StandardSchema } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';

const base = {
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    title: { typeId: Types.varchar },
    note: { typeId: Types.varchar },
    words: { typeId: Types.int32 },
    meta: { typeId: Types.json },
  },
  primaryKey: 'id',
} satisfies SchemaDefinition;

let driver: MemoryDriver;

beforeEach(() => {
  driver = new MemoryDriver();
});

async function opened(validate: StandardSchema | undefined, options = {}): Promise<Database> {
  const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent', ...options });
  db.registerSchema({ ...base, ...(validate !== undefined && { validate }) });
  await db.start();
  return db;
}

async function objects(): Promise<string[]> {
  const { entries } = await driver.list('app/');
  return entries.map(({ key }) => key);
}

type Write = 'insert' | 'update' | 'upsert';

/** Flushes a batch of one operation. */
async function write(db: Database, operation: Write, row: object): Promise<void> {
  const batch = db.batch();
  void batch[operation]('day' in row ? 'days' : 'articles', row);
  await batch.flush();
}

async function remove(db: Database, id: number): Promise<void> {
  const batch = db.batch();
  void batch.delete('articles', id);
  await batch.flush();
}

const titled = z.object({ id: z.number(), title: z.string().min(3) });

const inLibraries: [string, StandardSchema][] = [
  ['zod', titled],
  ['valibot', v.object({ id: v.number(), title: v.pipe(v.string(), v.minLength(3)) })],
  ['arktype', type({ id: 'number', title: 'string >= 3' })],
];

describe('validate', () => {
  it.each(inLibraries)('refuses rows by a schema of %s', async (_, schema) => {
    await using db = await opened(schema);
    const batch = db.batch();
    void batch.insert('articles', { id: 1, title: 'Long enough' });
    void batch.insert('articles', { id: 2, title: 'ab' });
    const before = (await objects()).length;
    const error = await batch.flush().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ValidationError);
    const { code, table, primaryKey, issues, message } = error as ValidationError;
    expect({ code, table, primaryKey }).toEqual({ code: 'VALIDATION', table: 'articles', primaryKey: 2 });
    expect(issues.map(({ path }) => path)).toEqual([['title']]);
    expect(issues[0]?.message).not.toBe('');
    expect(message).toMatch(
      /^The row of table 'articles' with primary key 2 is not valid: title: .+\. Nothing was written\.$/,
    );
    expect((await objects()).length).toBe(before);
    expect(await db.query('articles').count()).toBe(0);
  });

  it('sees an update as the whole row that it makes', async () => {
    await using db = await opened(
      z
        .object({ title: z.string(), words: z.number() })
        .refine((row) => row.title.length <= row.words, 'too few words'),
    );
    await write(db, 'insert', { id: 1, title: 'abc', words: 3 });
    await expect(write(db, 'update', { id: 1, title: 'abcd' })).rejects.toThrow(
      "The row of table 'articles' with primary key 1 is not valid: too few words. Nothing was written.",
    );
    const less = db.batch();
    void less.increment('articles', 1, { words: -1 });
    await expect(less.flush()).rejects.toThrow(ValidationError);
    await write(db, 'update', { id: 1, title: 'abcd', words: 4 });
    await expect(write(db, 'upsert', { id: 1, title: 'abcd' })).rejects.toThrow(ValidationError);
    expect(await db.get('articles', 1)).toMatchObject({ title: 'abcd', words: 4 });
    // The last row counts, not those on the way to it.
    const batch = db.batch();
    void batch.update('articles', { id: 1, title: 'abcdef' });
    void batch.update('articles', { id: 1, words: 6 });
    await batch.flush();
    await remove(db, 1);
  });

  it('runs in transactions, triggers and loads', async () => {
    await using db = await opened(titled);
    await expect(
      db.transaction(async (tx) => {
        await tx.insert('articles', { id: 1, title: 'x' });
      }),
    ).rejects.toThrow(ValidationError);
    await write(db, 'insert', { id: 1, title: 'abc' });
    await expect(
      db.load('articles', [
        { id: 3, title: 'fine' },
        { id: 2, title: 'x' },
      ]),
    ).rejects.toThrow(ValidationError);
    expect(await db.query('articles').count()).toBe(1);
    db.registerTrigger('articles', 'insert', (row, batch) => {
      if (row['id'] === 4) void batch.insert('articles', { id: 9, title: '' });
    });
    await expect(write(db, 'insert', { id: 4, title: 'abc' })).rejects.toThrow('primary key 9');
    expect(await db.query('articles').count()).toBe(1);
  });

  it('takes a field without a value as null, and as left out', async () => {
    await using db = await opened(
      z.strictObject({
        id: z.number(),
        title: z.string().nullable(),
        note: z.string().optional(),
        words: z.number().nullish(),
      }),
    );
    await write(db, 'insert', { id: 1 });
    await write(db, 'insert', { id: 2, note: null, title: null });
    await expect(write(db, 'insert', { id: 3, meta: {} })).rejects.toThrow(ValidationError);
    expect(await db.query('articles').count()).toBe(2);
  });

  it('waits for schemas that answer later, and stores rows as they were given', async () => {
    const later = z.object({
      id: z.number(),
      title: z
        .string()
        .trim()
        .refine(async (title) => (await Promise.resolve(title)) !== 'bad'),
    });
    await using db = await opened(later);
    await expect(write(db, 'insert', { id: 1, title: 'bad' })).rejects.toThrow(ValidationError);
    await write(db, 'insert', { id: 1, title: ' good ' });
    expect(await db.get('articles', 1)).toMatchObject({ title: ' good ' });
  });

  it('takes a schema that fails for one that refuses', async () => {
    await using db = await opened({
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: () => {
          throw new Error('Out of order');
        },
      },
    });
    await expect(write(db, 'insert', { id: 1 })).rejects.toThrow('the schema failed: Out of order');
  });

  it.each([
    [undefined, 'and answered undefined'],
    [4, 'and answered 4'],
    [{}, 'and answered an object without a value'],
    [{ issues: 4 }, 'and answered issues: 4'],
    [{ issues: [] }, 'does not say why'],
    [{ issues: [{}, undefined] }, 'it is not valid; it is not valid'],
    [{ issues: [{ message: 'Too old', path: null }] }, 'Too old'],
    [{ issues: [{ message: 'Too old', path: 4 }] }, 'is not valid: Too old'],
  ])('refuses a row where the schema answers %o', async (answer, message) => {
    for (const given of [answer, Promise.resolve(answer)]) {
      const odd = { '~standard': { version: 1, vendor: 'odd', validate: () => given } } as unknown as StandardSchema;
      const db = await opened(odd, { dbPrefix: `app${String(given instanceof Promise)}` });
      const refused = write(db, 'insert', { id: 1 });
      await expect(refused).rejects.toThrow(ValidationError);
      await expect(refused).rejects.toThrow(message);
      expect(await db.query('articles').count()).toBe(0);
      await db.stop();
    }
  });

  it('stores nothing of a batch that is too large for its commit', async () => {
    await using db = await opened(titled);
    const before = await objects();
    const batch = db.batch();
    for (let id = 0; id < 4000; id++) void batch.insert('articles', { id, title: 'x'.repeat(2000) });
    void batch.insert('articles', { id: 4000, title: '' });
    await expect(batch.flush()).rejects.toThrow('primary key 4000');
    expect(await objects()).toEqual(before);
  });

  it('is of the process that registers it', async () => {
    await using strict = await opened(titled);
    const loose = StoreDb({ dbPrefix: 'app', nodeId: 1, driver, logLevel: 'silent' });
    loose.registerSchema(base);
    await loose.start();
    await write(loose, 'insert', { id: 1, title: 'x' });
    await loose.stop();
    await strict.refresh();
    // A row that is there already is checked once it is written again.
    await remove(strict, 1);
  });

  it.each([[{}], ['zod'], [() => true], [{ '~standard': { version: 2, validate: () => ({}) } }]])(
    'refuses %j at the registration',
    (validate) => {
      const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent' });
      expect(() => db.registerSchema({ ...base, validate: validate as never })).toThrow(InvalidSchemaError);
    },
  );
});

describe('date()', () => {
  const days = {
    name: 'days',
    version: 1,
    fields: { id: { typeId: Types.int32 }, day: date() },
    primaryKey: 'id',
    indexes: ['day'],
  } satisfies SchemaDefinition;

  it('takes days of the calendar, in the order of time', async () => {
    await using db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent' });
    db.registerSchema(days);
    await db.start();
    const batch = db.batch();
    const given = ['2026-11-28', '0999-01-01', '2024-02-29', null];
    for (const [id, day] of given.entries()) void batch.insert('days', { id, day });
    await batch.flush();
    const rows = await db.query('days').where('day', '>=', '1000-01-01').orderBy('day').execute();
    expect(rows.map(({ day }) => day)).toEqual(['2024-02-29', '2026-11-28']);
    for (const day of [
      '2026-02-29',
      '2026-13-01',
      '2026-1-1',
      '2026-11-28T00:00',
      '',
      '1900-02-29',
      '2026-00-10',
      '2026-01-00',
    ]) {
      await expect(write(db, 'insert', { id: 9, day })).rejects.toThrow(ValidationError);
    }
  });
});
