/** Updates and deletions that are made only if the row is as it is expected to be: `{ if: { version: 3 } }`. */
import { describe, expect, it } from 'vitest';
import { ConditionFailedError, defineSchema, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { failure, flushed, openDatabase } from '../values/open-database.ts';

const pages = defineSchema({
  name: 'pages',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    version: { typeId: Types.uint32, default: 1 },
    title: { typeId: Types.varchar },
    score: { typeId: Types.float64 },
    small: { typeId: Types.float32 },
    at: { typeId: Types.timestamp },
    raw: { typeId: Types.bytes },
    large: { typeId: Types.int64 },
    live: { typeId: Types.boolean },
    ref: { typeId: Types.uuid },
    doc: { typeId: Types.json },
    file: { typeId: Types.blob },
  },
  primaryKey: 'id',
});

const long = 'a text that is longer than a row holds beside its fields: '.repeat(4);
const ref = '0191d9a0-7b1c-7d2e-8f00-0123456789ab';
const row = {
  id: 1,
  version: 3,
  title: long,
  score: -0,
  small: 0.1,
  at: new Date('2026-01-31T12:00:00Z'),
  raw: new Uint8Array(200).fill(7),
  large: 2n ** 60n,
  live: true,
  ref,
};

async function open(): Promise<Database> {
  const db = await openDatabase([pages]);
  await flushed(db, (batch) => void batch.insert(pages, row));
  return db;
}

describe('a change with a condition', () => {
  it('is made where the row is as it is expected to be', async () => {
    const db = await open();
    await flushed(db, (batch) => void batch.update(pages, { id: 1, version: 4, title: 'new' }, { if: { version: 3 } }));
    expect(await db.get(pages, 1)).toMatchObject({ version: 4, title: 'new', large: 2n ** 60n });
    await flushed(db, (batch) => void batch.delete(pages, 1, { if: { version: 4, title: 'new' } }));
    expect(await db.get(pages, 1)).toBeUndefined();
  });

  it('rejects the whole flush if it does not hold, and gives the present value', async () => {
    const db = await open();
    const batch = db.batch();
    await batch.insert(pages, { id: 2 });
    await batch.update(pages, { id: 1, version: 5 }, { if: { title: long, version: 4 } });
    const error = await failure(batch.flush());
    expect(error).toBeInstanceOf(ConditionFailedError);
    expect(error).toMatchObject({
      code: 'CONDITION_FAILED',
      table: 'pages',
      primaryKey: 1,
      field: 'version',
      expected: 4,
      actual: 3,
    });
    expect((error as Error).message).toBe(
      "Field 'version' of the row with primary key 1 in table 'pages' is 3, and the change was to be made only where " +
        "'version' is 4. Nothing was written: read the row again, and decide again.",
    );
    expect(await db.query(pages).count()).toBe(1);
    expect(batch.size).toBe(2);
    // It is decided anew by each flush.
    await flushed(db, (other) => void other.update(pages, { id: 1, version: 4 }));
    await batch.flush();
    expect(await db.get(pages, 1)).toMatchObject({ version: 5 });
    expect(await db.query(pages).count()).toBe(2);
  });

  it.each<[string, object]>([
    ['a text', { title: long }],
    ['another form of zero', { score: 0 }],
    ['a number of 32 bits', { small: 0.1 }],
    ['a time', { at: new Date('2026-01-31T12:00:00Z') }],
    ['bytes', { raw: new Uint8Array(200).fill(7) }],
    ['a large integer', { large: 2n ** 60n }],
    ['a boolean', { live: true }],
    ['a uuid in capitals', { ref: ref.toUpperCase() }],
    ['several fields', { live: true, version: 3, title: long }],
    ['the primary key', { id: 1 }],
  ])('compares %s', async (_what, condition) => {
    const db = await open();
    await flushed(db, (batch) => void batch.update('pages', { id: 1, title: 'new' }, { if: condition }));
    expect((await db.get(pages, 1))?.title).toBe('new');
  });

  it.each<[object, string]>([
    [{ title: `${long}.` }, 'title'],
    [{ title: null }, 'title'],
    [{ score: 1 }, 'score'],
    [{ at: new Date(0) }, 'at'],
    [{ raw: new Uint8Array(200) }, 'raw'],
    [{ large: 5 }, 'large'],
    [{ live: false }, 'live'],
  ])('tells %o from what is there', async (condition, field) => {
    const db = await open();
    const batch = db.batch();
    await batch.delete('pages', 1, { if: condition });
    expect(await failure(batch.flush())).toMatchObject({ code: 'CONDITION_FAILED', field });
  });

  it('asks for null as for any value', async () => {
    const db = await open();
    await flushed(db, (batch) => void batch.insert(pages, { id: 2, score: 2.5 }));
    await flushed(
      db,
      (batch) => void batch.update(pages, { id: 2, title: 'new' }, { if: { title: null, score: 2.5 } }),
    );
    const batch = db.batch();
    await batch.update(pages, { id: 2, title: 'newer' }, { if: { title: null } });
    expect(await failure(batch.flush())).toMatchObject({ field: 'title', expected: null, actual: 'new' });
  });

  it('finds no row to be as it should: an update and a deletion say so', async () => {
    const db = await open();
    const batch = db.batch();
    await batch.delete(pages, 9, { if: { version: 1 } });
    expect(await failure(batch.flush())).toMatchObject({
      code: 'CONDITION_FAILED',
      field: 'version',
      actual: undefined,
    });
    batch.clear();
    await batch.update(pages, { id: 9, title: 'x' }, { if: { version: 1 } });
    expect(await failure(batch.flush())).toMatchObject({ code: 'ROW_NOT_FOUND' });
  });

  it('sees earlier operations of the batch, and of its parent batches', async () => {
    const db = await open();
    const batch = db.batch();
    await batch.update(pages, { id: 1, version: 4 }, { if: { version: 3 } });
    const sub = batch.subBatch();
    await sub.update(pages, { id: 1, version: 5, title: long + long }, { if: { version: 4, title: long } });
    await sub.flush();
    await batch.insert(pages, { id: 2, version: 7 });
    await batch.delete(pages, 2, { if: { version: 7 } });
    // What it shows is what it will be, if the flush is accepted.
    expect(await db.query(pages).overlay(batch).where('id', '=', 1).first()).toMatchObject({ version: 5 });
    await batch.flush();
    expect(await db.get(pages, 1)).toMatchObject({ version: 5, title: long + long });
    expect(await db.get(pages, 2)).toBeUndefined();
    await batch.delete(pages, 1);
    await batch.delete(pages, 1, { if: { version: 5 } });
    expect(await failure(batch.flush())).toMatchObject({ code: 'CONDITION_FAILED', actual: undefined });
  });

  it('goes with triggers', async () => {
    const db = await openDatabase([pages]);
    db.registerTrigger(pages, 'update', (after, batch, _api, _operation, before) => {
      if (after.id !== 1) return undefined;
      return batch.update(pages, { id: 2, version: after.version }, { if: { version: before?.version ?? null } });
    });
    await flushed(db, (batch) => void Promise.all([1, 2].map((id) => batch.insert(pages, { ...row, id }))));
    await flushed(db, (batch) => void batch.update(pages, { id: 1, version: 4 }, { if: { version: 3 } }));
    expect(await db.get(pages, 2)).toMatchObject({ version: 4 });
    await flushed(db, (batch) => void batch.update(pages, { id: 2, version: 9 }));
    const batch = db.batch();
    await batch.update(pages, { id: 1, version: 5 }, { if: { version: 4 } });
    expect(await failure(batch.flush())).toMatchObject({ primaryKey: 2, expected: 4, actual: 9 });
    expect(await db.get(pages, 1)).toMatchObject({ version: 4 });
  });

  it('rejects a transaction, which is not tried again for it', async () => {
    const db = await open();
    let attempts = 0;
    const moved = db.transaction(async (tx) => {
      attempts++;
      await tx.update(pages, { id: 1, version: 9 }, { if: { version: 8 } });
    });
    expect(await failure(moved)).toMatchObject({ code: 'CONDITION_FAILED' });
    expect(attempts).toBe(1);
    await db.transaction((tx) => tx.delete(pages, 1, { if: { version: 3 } }));
    expect(await db.query(pages).count()).toBe(0);
  });

  it.each<[unknown, string, string]>([
    [{ verison: 3 }, 'ENCODE', "the schema has no field 'verison': did you mean version."],
    [{}, 'ENCODE', 'it names no field, and so asks nothing.'],
    [{ version: undefined }, 'ENCODE', "'version' is undefined: null asks for a field without a value."],
    [{ version: 'three' }, 'ENCODE', "field 'version': "],
    [{ doc: {} }, 'ENCODE', "field 'doc' is of type json, which is compared with nothing."],
    [{ file: 'x' }, 'ENCODE', "field 'file' is of type blob, which is compared with nothing."],
    [null, 'ENCODE', 'it is an object of fields and the values that they must have, not null.'],
    [[3], 'ENCODE', 'it is an object of fields and the values that they must have, not '],
  ])('is refused at the call: %o', async (condition, code, message) => {
    const db = await open();
    const given = { if: condition } as { if: object };
    for (const call of [
      () => db.batch().update('pages', { id: 1, title: 'x' }, given),
      () => db.batch().delete('pages', 1, given),
    ]) {
      const error = await failure(call());
      expect(error).toMatchObject({ code });
      expect((error as Error).message).toContain(message);
    }
    const batch = db.batch();
    await failure(batch.update('pages', { id: 1, title: 'x' }, given));
    expect(batch.size).toBe(0);
    batch.clear();
    await batch.update(pages, { id: 1, title: 'after' }, { if: { version: 3 } });
    await batch.flush();
    expect((await db.get(pages, 1))?.title).toBe('after');
  });

  it('is refused where an option is misspelled', async () => {
    const db = await open();
    const error = await failure(db.batch().update('pages', { id: 1 }, { fi: { version: 3 } } as object));
    expect(error).toMatchObject({ code: 'INVALID_OPTION' });
  });
});
