// @vitest-environment jsdom
/** The database in the environment that tests of web applications run in, whose globals are in part those of jsdom. */
import { expect, it } from 'vitest';
import { Types } from '../../../src/index.ts';
import { driversUnderTest } from '../values/driver-under-test.ts';
import { openDatabase } from '../values/open-database.ts';

const schema = {
  name: 't',
  version: 1,
  primaryKey: 'id',
  indexes: ['at', 'bytes'],
  fields: {
    id: { typeId: Types.uint8 },
    at: { typeId: Types.timestamp },
    bytes: { typeId: Types.bytes, maxLength: 10 },
    json: { typeId: Types.json },
    blob: { typeId: Types.blob },
  },
};

it('is jsdom that the tests run in, with signals of its own', () => {
  expect(globalThis).toHaveProperty('document.body.tagName', 'BODY');
  expect(Object.prototype.toString.call(new AbortController().signal)).toBe('[object AbortSignal]');
  expect(AbortController.toString()).not.toContain('native code');
});

it.each(driversUnderTest)('writes and reads values of every kind, on %s', async (_name, newDriver) => {
  const db = await openDatabase([schema], newDriver());
  const { signal } = new AbortController();
  const row = { id: 1, at: new Date(5), bytes: Buffer.from('abc'), json: { a: [{ b: 1 }] } };
  const batch = db.batch();
  await batch.insert('t', { ...row, blob: db.Blob(new TextEncoder().encode('hello')) });
  await batch.flush({ signal });
  await db.checkpoint({ signal });
  const [read] = await db.query('t').where('at', '=', new Date(5)).where('bytes', '=', row.bytes).execute({ signal });
  expect(read).toMatchObject({ id: 1, json: { a: [{ b: 1 }] } });
  expect(Number(read?.['at'])).toBe(5);
  expect(Buffer.from(read?.['bytes'] as Uint8Array).toString()).toBe('abc');
  expect(await db.getBlob(read?.['blob'] as string).getString()).toBe('hello');
  await db.transaction(async (tx) => {
    await tx.update('t', { id: 1, at: new Date(6) });
  });
  expect((await db.verify({ signal })).findings).toEqual([]);
  await db.gc({ signal });
});

it('gives a call up when a signal of jsdom says so', async () => {
  const db = await openDatabase([schema]);
  const controller = new AbortController();
  controller.abort(new Error('enough'));
  await expect(db.refresh({ signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
});
