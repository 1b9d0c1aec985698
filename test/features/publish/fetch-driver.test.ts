/** `FetchDriver`: a database in a bucket that answers plain GETs, read as a replica. */
import { describe, expect, it } from 'vitest';
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import { FetchDriver } from '../../../src/reader.ts';
import { BundleServer, prefix } from './published.ts';

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
  indexes: ['text'],
});

async function withDatabase(run: (server: BundleServer, insert: (id: number) => Promise<void>) => Promise<void>) {
  const server = new BundleServer();
  const db = StoreDb({ driver: server.store, dbPrefix: prefix, nodeId: 1 });
  db.registerSchema(notes);
  await db.start();
  await run(server, async (id) => {
    const batch = db.batch();
    void batch.insert(notes, { id, text: `text ${id}`, file: id === 1 ? db.Blob('a file') : null });
    await batch.flush();
  });
  await db.stop();
}

describe('a replica with plain GETs', () => {
  it('reads rows, blobs and new commits, and lists nothing', async () => {
    await withDatabase(async (server, insert) => {
      await insert(1);
      const driver = new FetchDriver({ url: 'https://example.test', fetch: server.fetch });
      const replica = StoreDb({ role: 'replica', nodeId: 0, driver, dbPrefix: prefix, polling: 'onDemand' });
      replica.registerSchema(notes);
      await replica.start();
      const row = await replica.get(notes, 1);
      expect(row).toMatchObject({ text: 'text 1' });
      expect(await replica.getBlob(row?.file as string).getString()).toBe('a file');
      await insert(2);
      await replica.refresh();
      expect(await replica.query(notes).where('text', '=', 'text 2').count()).toBe(1);
      await replica.stop();
    });
  });

  it('is what the reader of bundles advises where a database is', async () => {
    await withDatabase(async (server, insert) => {
      await insert(1);
      await expect(server.open()).rejects.toThrow('There is a database at https://example.test/site/');
    });
  });
});

describe('new FetchDriver()', () => {
  it('takes a URL', () => {
    for (const url of [
      'ftp://example.com',
      'nothing',
      'https://user:secret@example.com',
      'https://example.com#part',
      7,
    ]) {
      expect(() => new FetchDriver({ url: url as string })).toThrow(
        'must be the http or https URL that the names of objects follow',
      );
    }
    expect(() => new FetchDriver({ uri: 'https://example.com' } as never)).toThrow('uri');
    const driver = new FetchDriver({ url: new URL('https://example.com/a//?token=abc') });
    expect(driver.urlOf('x/y z')).toBe('https://example.com/a/x/y%20z?token=abc');
  });

  it('neither writes nor lists', async () => {
    const driver = new FetchDriver({ url: 'https://example.com' });
    for (const refused of [driver.put(), driver.delete(), driver.list()]) {
      await expect(refused).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    }
  });

  it('asks the server for what may change, and knows an object again that has not', async () => {
    const server = new BundleServer();
    const asked: unknown[] = [];
    const driver = new FetchDriver({
      url: server.url,
      fetch: (url, init) => {
        asked.push(init.cache);
        return server.fetch(url, init);
      },
    });
    await server.store.put('site/block0', Uint8Array.of(1), { if: 'any' });
    await server.store.put('site/data/t/000000000001-0123456789abcdef', Uint8Array.of(2), { if: 'any' });
    const found = await driver.get('block0');
    const etag = found.status === 'found' ? found.etag : '';
    expect(await driver.get('block0', { ifNoneMatch: etag })).toEqual({ status: 'unchanged' });
    await driver.get('data/t/000000000001-0123456789abcdef');
    await driver.get('committed/0000000000000001');
    expect(asked).toEqual(['no-cache', 'no-cache', undefined, 'no-cache']);
  });
});
