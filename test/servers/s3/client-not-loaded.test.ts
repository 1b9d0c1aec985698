/** Where a module of the S3 client cannot be loaded, every call says so: nothing reads as an object or a database that is missing. */
import { Readable } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { ObjectStoreDriver } from '../../../src/storage/index.ts';

const loading = vi.hoisted(() => ({ fails: true }));
vi.mock('aws4', async (original) => {
  // As in a bundle that has no `require`.
  if (loading.fails) throw new Error('Dynamic require of "crypto" is not supported');
  return await original();
});

it('rejects every call with a StorageError that says what to do', async () => {
  const driver = new ObjectStoreDriver({ bucket: 'photos', endpoint: 'http://127.0.0.1:9' });
  const range = { start: 0, end: 0 };
  const stream = (): Readable => Readable.from([Buffer.from('a')]);
  const calls: readonly [string, () => Promise<unknown>][] = [
    ['get', () => driver.get('key')],
    ['get of nothing', () => driver.get('key', { range })],
    ['get of a range', () => driver.get('key', { range: { start: 3, end: 9 } })],
    ['list', () => driver.list('key')],
    ['put', () => driver.put('key', new Uint8Array(1), { if: 'absent' })],
    ['put with an ETag', () => driver.put('key', new Uint8Array(1), { if: { etag: '"a"' } })],
    ['put of a stream', () => driver.put('key', stream(), { if: 'absent' })],
    ['delete', () => driver.delete(['key'])],
    ['delete of many', () => driver.delete(['key', 'other'])],
    ['copy', () => driver.copy('key', 'other')],
    ['presign', () => driver.presign('key', { expiresInSeconds: 60 })],
    ['removeUploads', () => driver.removeUploads('key', { startedBeforeMs: async () => 0 })],
  ];
  for (const [what, call] of calls) {
    await expect(call(), what).rejects.toMatchObject({
      name: 'StorageError',
      code: 'STORAGE',
      outcome: 'none',
      message: expect.stringContaining('The S3 client for bucket photos could not be made') as unknown,
    });
  }
  for (const role of ['writer', 'replica'] as const) {
    const db = StoreDb({ dbPrefix: 'shop', nodeId: 0, role, driver, logLevel: 'silent' });
    await expect(db.start(), role).rejects.toMatchObject({ code: 'STORAGE' });
    await db.stop();
  }
  await driver.close();
});
