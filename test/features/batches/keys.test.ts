/** An insert and an upsert resolve to the key of their row: also where the document has none. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { TypeId } from '../../../src/index.ts';
import { makeDatabase } from '../values/open-database.ts';

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: {
    id: { typeId: Types.uuid, default: 'uuidv7' },
    text: { typeId: Types.varchar },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
});

const given: readonly (readonly [type: keyof typeof Types, key: unknown, expected: unknown])[] = [
  ['uint8', -0, 0],
  ['int64', 5, 5n],
  ['float64', 0.5, 0.5],
  ['float32', 0.1, Math.fround(0.1)],
  ['varchar', 'ä'.repeat(300), 'ä'.repeat(300)],
  ['boolean', false, false],
  ['timestamp', new Date(7), new Date(7)],
  ['uuid', 'AB9D1A2C-0000-7000-8000-00000000ABCD', 'ab9d1a2c-0000-7000-8000-00000000abcd'],
  ['bytes', new Uint8Array([1, 2]), Buffer.from([1, 2])],
];

describe('the key of a row', () => {
  it.each(given)('equals the key that is read back: %s', async (type, key, expected) => {
    const typeId: TypeId = Types[type];
    const db = makeDatabase([{ name: 't', version: 1, fields: { id: { typeId } }, primaryKey: 'id' }]);
    await db.start();
    const batch = db.batch();
    expect(await batch.insert('t', { id: key })).toEqual(expected);
    expect(await batch.upsert('t', { id: key })).toEqual(expected);
    batch.clear();
    await db.transaction(async (tx) => {
      expect(await tx.upsert('t', { id: key })).toEqual(expected);
    });
    expect((await db.query('t').first())?.['id']).toEqual(expected);
    await db.stop();
  });

  it('is the generated one, which finds the row once it is flushed', async () => {
    const db = makeDatabase([notes]);
    await db.start();
    const batch = db.batch();
    const keys = await Promise.all([
      batch.insert(notes, { text: '0' }),
      batch.insert(notes, { text: '1', photo: db.Blob('x') }),
      batch.upsert(notes, { text: '2' }),
    ]);
    const sub = batch.subBatch();
    keys.push(await sub.insert(notes, { text: '3' }));
    await sub.flush();
    await batch.flush();
    keys.push(await db.transaction((tx) => tx.insert(notes, { text: '4' })));
    for (const [i, key] of keys.entries()) expect(await db.get(notes, key)).toMatchObject({ text: `${i}` });
    // In the order in which they were made.
    expect(keys.toSorted()).toEqual(keys);
    await db.stop();
  });

  it('is returned after the triggers of the row, and not if one of them refuses it', async () => {
    const db = makeDatabase([notes]);
    await db.start();
    db.registerTrigger(notes, 'insert', async (row, batch) => {
      if (row.text === 'bad') throw new Error('refused');
      if (row.text !== 'more') await batch.insert(notes, { text: 'more' });
    });
    const batch = db.batch();
    const key = await batch.insert(notes, { text: 'good' });
    expect(batch.size).toBe(2);
    await expect(batch.insert(notes, { text: 'bad' })).rejects.toThrow('refused');
    await expect(batch.flush()).rejects.toThrow('refused');
    await batch.flush();
    expect(await db.get(notes, key)).toMatchObject({ text: 'good' });
    await db.stop();
  });

  it('may be ignored: the flush reports a refusal', async () => {
    const db = makeDatabase([notes]);
    await db.start();
    db.registerTrigger(notes, 'insert', () => {
      throw new Error('refused');
    });
    const batch = db.batch();
    void batch.insert(notes, { text: 'a' });
    await expect(batch.flush()).rejects.toThrow('refused');
    await db.stop();
  });
});
