/** Fields of `decimal()` and `date()`: what writes and conditions say of values that are none of theirs. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  date,
  decimal,
  defineSchema,
  EncodeError,
  InvalidQueryError,
  parseDecimal,
  StoreDb,
  Types,
} from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

const goods = defineSchema({
  name: 'goods',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    price: decimal(2),
    weight: decimal(0),
    due: date(),
    units: { typeId: Types.int64 },
    text: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['price', 'due'],
});

let db: Database;

beforeEach(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
  db.registerSchema(goods);
  await db.start();
  const batch = db.batch();
  for (const [id, due] of ['2026-01-31', '2026-02-03', '2026-11-28'].entries()) {
    void batch.insert(goods, { id, price: parseDecimal(`1${id}.50`, 2), due });
  }
  await batch.flush();
});

afterEach(async () => {
  await db.stop();
});

const amount = (example: string, scale = 2): string =>
  `It is a decimal(${scale}) field, of whole numbers of the smallest unit: parseDecimal('${example}', ${scale}) makes its values.`;
const day = "It is a date() field: its values are the texts of days, such as '2026-11-28'";

describe('a write', () => {
  it.each([
    [{ price: '12.5' }, amount('12.5')],
    [{ price: 12.25 }, amount('12.25')],
    [{ price: 12.255 }, amount('12.50')],
    [{ price: 'much' }, amount('12.50')],
    [{ weight: 1.5 }, amount('12', 0)],
    [{ weight: ' 7 ' }, amount('7', 0)],
    [{ due: new Date(0) }, `${day}; date.toISOString().slice(0, 10) makes that of a Date, in UTC.`],
    [{ due: 20_260_203 }, `${day}.`],
  ])('of %j says how the value is made', async (fields, advice) => {
    const batch = db.batch();
    const error = await batch.insert('goods', { id: 9, ...fields }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EncodeError);
    const [[field, value]] = Object.entries(fields) as [[string, unknown]];
    expect(error).toMatchObject({ table: 'goods', field, value });
    expect((error as Error).message).toMatch(/^Cannot store field '\w+' of table 'goods': .* does not fit type /);
    expect((error as Error).message.endsWith(`. ${advice}`)).toBe(true);
    await expect(batch.flush()).rejects.toBe(error);
    for (const call of [
      () => db.batch().update('goods', { id: 1, ...fields }),
      () => db.batch().updateWhere(db.query('goods'), fields),
      () => db.transaction((tx) => tx.insert('goods', { id: 9, ...fields })),
      () => db.load('goods', [{ id: 9, ...fields }]),
    ]) {
      await expect(call()).rejects.toThrow(advice);
    }
  });

  it('of a value that a field can have, or of another field, says nothing of kinds', async () => {
    const refusal = async (fields: object): Promise<string> => {
      const error: unknown = await db
        .batch()
        .insert('goods', { id: 9, ...fields })
        .catch((reason: unknown) => reason);
      return (error as Error).message;
    };
    expect(await refusal({ price: 2n ** 70n })).not.toContain('decimal');
    expect(await refusal({ units: 1.5 })).not.toContain('decimal');
    expect(await refusal({ text: new Date(0) })).not.toContain('date()');
  });
});

describe('a condition', () => {
  it.each([
    ['price', '>', 12.5, amount('12.5')],
    ['price', '=', '12.50', amount('12.50')],
    ['price', 'IN', [1250n, 12.5], amount('12.5')],
    ['price', 'BETWEEN', [0.5, 1250n], amount('0.5')],
    ['due', '>', '2026-2-3', `${day}.`],
    ['due', '=', '2026-02-30', `${day}.`],
    ['due', '!=', '', `${day}.`],
    ['due', '<=', '2026-02', `${day}.`],
    ['due', 'IN', ['2026-02-03', 'tomorrow'], `${day}.`],
    ['due', 'BETWEEN', ['2026-02-03', '2026-2-4'], `${day}.`],
    ['due', '>', new Date(0), `${day}; date.toISOString().slice(0, 10) makes that of a Date, in UTC.`],
  ] as const)('%s %s, case %#, is refused with the way to say it', async (field, operator, value, advice) => {
    const asked = value as never;
    expect(() => db.query('goods').where(field, operator, asked)).toThrow(InvalidQueryError);
    expect(() => db.query('goods').where(field, operator, asked)).toThrow(advice);
    expect(() => db.query('goods').where(({ not, is }) => not(is(field, operator, asked)))).toThrow(advice);
    await expect(db.transaction(async (tx) => tx.query('goods').where(field, operator, asked).count())).rejects.toThrow(
      advice,
    );
    const snapshot = await db.snapshot();
    expect(() => snapshot.query('goods').where(field, operator, asked)).toThrow(advice);
    await snapshot.release();
  });

  it('is refused in a comparison of several fields, in a long list, and where the table is registered later', async () => {
    const query = db.query('goods');
    expect(() => query.where(['due', 'id'], '>', ['2026-2-3', 1])).toThrow(day);
    expect(() => query.where(['price', 'id'], 'IN', [[12.5, 1]])).toThrow(amount('12.5'));
    const days = Array.from({ length: 3000 }, () => '2026-11-28');
    await expect(query.where('due', 'IN', [...days, 'never']).execute()).rejects.toThrow(day);
    const later = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
    await later.start();
    const early = later.query('goods').where('due', '>', '2026-2-3');
    later.registerSchema(goods);
    await expect(early.execute()).rejects.toThrow(day);
    await later.stop();
  });

  it('takes whole units, infinite bounds, days, beginnings of days and null', async () => {
    const ids = async (field: 'price' | 'due', operator: string, value: unknown): Promise<number[]> => {
      const rows = await db
        .query('goods')
        .where(field, operator as '=', value as never)
        .orderBy('id')
        .execute();
      return rows.map((row) => (row as { id: number }).id);
    };
    expect(await ids('price', '>', parseDecimal('10.50', 2))).toEqual([1, 2]);
    expect(await ids('price', '>=', 1150)).toEqual([1, 2]);
    expect(await ids('price', 'BETWEEN', [1150n, Infinity])).toEqual([1, 2]);
    expect(await ids('due', '>', '2026-02-02')).toEqual([1, 2]);
    expect(await ids('due', '=', '2026-02-03')).toEqual([1]);
    expect(await ids('due', 'PREFIX', '2026-0')).toEqual([0, 1]);
    expect(await ids('due', '=', null)).toEqual([]);
    expect(await ids('due', 'IN', [null, '2026-11-28'])).toEqual([2]);
  });

  it('compares a field of the same type as before', async () => {
    expect(await db.query('goods').where('units', '>', 12.5).count()).toBe(0);
    expect(await db.query('goods').where('text', '>', '2026-2-3').count()).toBe(0);
  });
});
