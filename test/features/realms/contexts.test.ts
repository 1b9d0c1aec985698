/** Values of other realms, as contexts of node:vm and test environments make them, and the database within such a realm. */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext, runInNewContext } from 'node:vm';
import { rolldown } from 'rolldown';
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import { openDatabase } from '../values/open-database.ts';
import type { Row } from '../values/open-database.ts';

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- what a text gives is known to its writer
function foreign<T>(text: string): T {
  return runInNewContext(text) as T;
}

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

describe('values of a context of node:vm', () => {
  it('come from another realm', () => {
    expect(foreign<unknown>('new Date()') instanceof Date).toBe(false);
    expect(foreign<unknown>('new Uint8Array(1)') instanceof Uint8Array).toBe(false);
    expect(foreign<unknown>('({})') instanceof Object).toBe(false);
  });

  it('are written, compared and read like values of this one', async () => {
    const db = await openDatabase([foreign<typeof schema>(JSON.stringify(schema).replace(/^/, '(').replace(/$/, ')'))]);
    const batch = db.batch();
    const row = foreign<Row>(
      `({ id: 1, at: new Date(5), bytes: Uint8Array.of(1, 2), json: { a: [{ b: null }], c: Object.create(null) } })`,
    );
    await batch.insert('t', Object.assign(row, { blob: db.Blob(foreign<Uint8Array>('Uint8Array.of(7, 8)')) }));
    await batch.insert('t', { id: 2, at: new Date(6), bytes: Buffer.from([3]), json: [] });
    await batch.flush();
    for (const isMerged of [false, true]) {
      if (isMerged) await db.checkpoint();
      const query = db.query('t');
      const [read] = await query
        .where('at', '=', foreign('new Date(5)'))
        .where('bytes', 'IN', foreign('[Uint8Array.of(1, 2)]'))
        .where('json', '!=', null)
        .execute();
      expect(read).toEqual({
        id: 1,
        at: new Date(5),
        bytes: Buffer.from([1, 2]),
        json: { a: [{ b: null }], c: {} },
        blob: read?.['blob'],
      });
      expect(await db.getBlob(read?.['blob'] as string).getBuffer()).toEqual(Buffer.from([7, 8]));
      expect(await db.query('t').where('at', '>', foreign('new Date(5)')).execute()).toHaveLength(1);
      expect(await db.query('t').where('bytes', '<', foreign('Uint8Array.of(3)')).execute()).toHaveLength(1);
    }
  });

  it('may be a default, a stream of bytes, an earlier state', async () => {
    const driver = new MemoryDriver();
    const at = { typeId: Types.timestamp, default: foreign<Date>('new Date(9)') };
    const bytes = { typeId: Types.bytes, maxLength: 10, default: foreign<Uint8Array>('Uint8Array.of(4)') };
    const db = await openDatabase([{ ...schema, fields: { ...schema.fields, at, bytes } }], driver, { history: '1h' });
    const batch = db.batch();
    const stream = foreign<AsyncIterable<Uint8Array>>('(async function* () { yield Uint8Array.of(5); })()');
    await batch.insert('t', { id: 1, blob: db.Blob(stream) });
    await batch.flush();
    await db.checkpoint();
    const [read] = await db.query('t').execute();
    expect(read).toMatchObject({ at: new Date(9), bytes: Buffer.from([4]) });
    expect(await db.getBlob(read?.['blob'] as string).getBuffer()).toEqual(Buffer.from([5]));
    const snapshot = await db.at(foreign<Date>(`new Date(${Date.now() + 1})`));
    expect(await snapshot.query('t').count()).toBe(1);
    await snapshot.release();
  });

  it.each([
    ['a Map', 'new Map()'],
    ['an instance of a class', 'new (class A {})()'],
    ['an object that another is the prototype of', 'Object.create({ a: 1 })'],
    ['bytes', 'Uint8Array.of(1)'],
    ['an invalid Date', 'new Date(NaN)'],
  ])('are refused as json like values of this one: %s', async (_what, text) => {
    const db = await openDatabase([schema]);
    const batch = db.batch();
    await expect(batch.insert('t', { id: 1, json: foreign(text) })).rejects.toMatchObject({ code: 'ENCODE' });
    await expect(batch.insert('t', { id: 1, at: foreign(text) })).rejects.toMatchObject({ code: 'ENCODE' });
    batch.clear();
  });

  it('are named in messages: the reason of an error, a Date', async () => {
    const db = await openDatabase([schema]);
    db.registerFunction('broken', foreign('() => { throw new Error("as it happens"); }'));
    db.registerFunction('late', foreign('async () => { throw new Error("nobody waits"); }'));
    const batch = db.batch();
    await batch.insert('t', { id: 1 });
    await expect(batch.insert('t', { id: foreign('new Date(0)') })).rejects.toThrow('1970-01-01T00:00:00.000Z');
    batch.clear();
    await batch.insert('t', { id: 1 });
    await batch.flush();
    await expect(db.query('t').where('broken', '=', 1).execute()).rejects.toThrow('as it happens');
    await expect(db.query('t').where('late', '=', 1).execute()).rejects.toThrow('returned a promise');
  });
});

describe('the database within a context of node:vm', () => {
  it("works with the runtime's objects, which come from another realm", async () => {
    const entry = fileURLToPath(new URL('./within.ts', import.meta.url));
    const source = (file: string): string => fileURLToPath(new URL(`../../../src/${file}`, import.meta.url));
    const bundle = await rolldown({
      input: entry,
      platform: 'node',
      external: [/^node:/, /^@aws-sdk/],
      tsconfig: false,
      resolve: {
        alias: {
          '#platform': source('platform/node.ts'),
          '#environment-driver': source('storage/environment-driver.ts'),
          // From sources, the code of a thread is made by an await, which CommonJS does not have at the top of a module.
          '#load-thread': source('platform/load-thread-web.ts'),
        },
      },
    });
    const { output } = await bundle.generate({ format: 'cjs', codeSplitting: false });
    await bundle.close();
    const globals = {
      Buffer,
      TextEncoder,
      TextDecoder,
      AbortController,
      AbortSignal,
      URL,
      console,
      process,
      performance,
    };
    const context = createContext({ ...globals, setTimeout, setImmediate, clearTimeout, DOMException });
    const module = { exports: {} as { exercise(): Promise<unknown> } };
    const run = runInContext(`(function (require, module, exports) {${output[0].code}\n})`, context) as (
      ...given: unknown[]
    ) => void;
    run(createRequire(import.meta.url), module, module.exports);
    expect(JSON.parse(JSON.stringify(await module.exports.exercise()))).toEqual({
      isBufferBytes: false,
      rows: [{ id: 1, time: 5, bytes: '0102', json: { a: [] }, blob: 'hello' }],
      files: [{ id: 1, time: 5, bytes: '0102', json: { a: [] }, blob: 'hello' }],
      problems: 0,
    });
  });
});
