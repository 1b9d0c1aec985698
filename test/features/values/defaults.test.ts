/** Defaults: constants of every type and generated ids, where a document leaves a field out. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import { column, failure, flushed, openDatabase, throughStages } from './open-database.ts';
import type { Row } from './open-database.ts';

const uuid = '0189abcd-0123-7abc-8def-0123456789ab';
const constants = {
  uint8: 7,
  uint16: 700,
  uint32: 70_000,
  uint64: 2n ** 64n - 1n,
  int8: -7,
  int16: -700,
  int32: -70_000,
  int64: -(2n ** 63n),
  float64: 0.1,
  float32: 0.5,
  varchar: 'a default that is longer than twelve bytes: ü\u{10000}',
  boolean: false,
  timestamp: new Date(-1),
  json: { a: [1, null] },
  uuid,
  bytes: Buffer.from([0, 255]),
} as const;

const schema = defineSchema({
  name: 'defaults',
  version: 1,
  fields: {
    id: { typeId: Types.uint8 },
    ...(Object.fromEntries(
      Object.entries(constants).map(([name, value]) => [
        name,
        { typeId: Types[name as keyof typeof constants], default: value },
      ]),
    ) as Record<string, { typeId: 1 }>),
  },
  primaryKey: 'id',
});

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('a constant default', () => {
  it('replaces missing and undefined values; null stays null', async () => {
    const names = Object.keys(constants);
    const given = (value: unknown): Row => Object.fromEntries(names.map((name) => [name, value]));
    await throughStages(
      [schema],
      (batch) => {
        void batch.insert('defaults', { id: 1 });
        void batch.insert('defaults', { id: 2, ...given(undefined) });
        void batch.insert('defaults', { id: 3, ...given(null) });
        void batch.upsert('defaults', { id: 4 });
      },
      async ({ query }) => {
        expect(await query('defaults').execute()).toEqual([
          { id: 1, ...constants },
          { id: 2, ...constants },
          { id: 3, ...given(null) },
          { id: 4, ...constants },
        ]);
      },
    );
  });

  it('is not put in by an update', async () => {
    const db = await openDatabase([schema]);
    await flushed(db, (batch) => void batch.insert('defaults', { id: 1, varchar: 'mine', uint8: null }));
    await flushed(db, (batch) => void batch.update('defaults', { id: 1, int8: 1, uint16: undefined }));
    expect(await db.get('defaults', 1)).toMatchObject({ varchar: 'mine', uint8: null, int8: 1, uint16: 700 });
  });

  it('is the value at the time of the registration, and each row has a copy of its own', async () => {
    const raw = Buffer.from([1, 2]);
    const time = new Date(5);
    const json = { list: [1] };
    const own = defineSchema({
      name: 'own',
      version: 1,
      fields: {
        id: { typeId: Types.uint8 },
        raw: { typeId: Types.bytes, default: raw },
        time: { typeId: Types.timestamp, default: time },
        json: { typeId: Types.json, default: json },
      },
      primaryKey: 'id',
    });
    const db = await openDatabase([own]);
    raw.fill(9);
    time.setTime(9);
    json.list.push(2);
    const expected = { raw: Buffer.from([1, 2]), time: new Date(5), json: { list: [1] } };
    for (const id of [1, 2]) {
      await flushed(db, (batch) => void batch.insert(own, { id }));
      const row = (await db.get(own, id)) as Row;
      expect(row).toEqual({ id, ...expected });
      (row['raw'] as Buffer).fill(7);
      (row['json'] as { list: number[] }).list.push(7);
    }
    expect(await db.get(own, 1)).toEqual({ id: 1, ...expected });
  });
});

describe("the default 'uuidv7'", () => {
  const ids = defineSchema({
    name: 'ids',
    version: 1,
    fields: {
      id: { typeId: Types.uuid, default: 'uuidv7' },
      text: { typeId: Types.varchar, default: 'uuidv7' },
      // Of another type it is a constant like any other, if it fits at all.
      constant: { typeId: Types.json, default: 'uuidv7' },
      n: { typeId: Types.uint32 },
    },
    primaryKey: 'id',
  });

  it('gives a new id to every row, by the time of its insertion', async () => {
    const count = 2000;
    await throughStages(
      [ids],
      (batch) => {
        for (let n = 0; n < count; n++) void batch.insert(ids, { n });
      },
      async ({ query }) => {
        const rows = await query('ids').execute();
        expect(new Set(column(rows, 'id')).size).toBe(count);
        expect(new Set(column(rows, 'text')).size).toBe(count);
        expect(rows.every((row) => uuidv7.test(row['id'] as string) && uuidv7.test(row['text'] as string))).toBe(true);
        expect(rows[0]).toMatchObject({ constant: 'uuidv7' });
        // Time-ordered to the millisecond.
        const times = column(await query('ids').orderBy('n').execute(), 'id').map((id) => (id as string).slice(0, 13));
        expect(times).toEqual(times.toSorted());
        const first = Number.parseInt(String(rows[0]?.['id']).replace('-', '').slice(0, 12), 16);
        expect(Math.abs(Date.now() - first)).toBeLessThan(60_000);
      },
    );
  });

  it('does not replace an id that was given, nor one of null', async () => {
    const db = await openDatabase([ids]);
    await flushed(db, (batch) => void batch.insert(ids, { id: uuid, text: null, n: 1 }));
    expect(await db.get(ids, uuid)).toEqual({ id: uuid, text: null, constant: 'uuidv7', n: 1 });
    expect(await failure(db.batch().insert('ids', { id: null }))).toMatchObject({ code: 'ENCODE', field: 'id' });
    expect(await failure(db.batch().update('ids', { n: 1 }))).toMatchObject({ code: 'ENCODE', field: 'id' });
  });
});
