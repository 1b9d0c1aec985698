import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../base/bytes.ts';
import { StorageError } from '../../base/errors.ts';
import { MemoryDriver } from '../memory-driver.ts';
import { ObservedDriver, type ObservedRequest } from './observed-driver.ts';

async function* twoChunks(): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(encodeUtf8('ab'));
  yield encodeUtf8('c');
}

describe('ObservedDriver', () => {
  it('counts requests by their outcomes, and the bytes', async () => {
    const driver = new ObservedDriver(new MemoryDriver());
    const put = await driver.put('a', encodeUtf8('12345'), { if: 'absent' });
    await driver.put('a', encodeUtf8('x'), { if: 'absent' });
    await driver.put('b', twoChunks(), { if: 'any' });
    await driver.get('a');
    await driver.get('a', { range: { start: 1, end: 3 } });
    await driver.get('a', { ifNoneMatch: put.status === 'written' ? put.etag : '' });
    await driver.get('missing');
    await driver.list('');
    await driver.copy?.('a', 'c');
    await driver.copy?.('missing', 'd');
    await driver.delete(['a', 'b', 'c']);
    await expect(driver.get('')).rejects.toThrow('at least one character');
    expect(driver.snapshot()).toEqual({
      get: 2,
      getUnchanged: 1,
      getMissing: 1,
      put: 2,
      putLost: 1,
      delete: 1,
      deletedKeys: 3,
      copy: 1,
      list: 1,
      presign: 0,
      errors: 1,
      getErrors: 1,
      putErrors: 0,
      copyErrors: 1,
      deleteErrors: 0,
      listErrors: 0,
      extraGets: 0,
      extraLists: 0,
      extraPuts: 0,
      extraCopies: 0,
      extraDeletes: 0,
      bytesRead: 7,
      bytesWritten: 8,
    });
    driver.reset();
    expect(Object.values(driver.snapshot()).every((count) => count === 0)).toBe(true);
  });

  it('counts failures by call, and calls that took more than one request', async () => {
    const inner = new MemoryDriver();
    const refused = (): Promise<never> => Promise.reject(new StorageError('k', 'none', 'Refused.'));
    const driver = new ObservedDriver({
      name: 'costly',
      get: refused,
      put: async (key, body, options) => {
        if (key === 'bad') return refused();
        return { ...(await inner.put(key, body, options)), requests: 5 };
      },
      delete: async (keys) => (keys.length > 1 ? { failed: [], requests: 3 } : refused()),
      list: refused,
      presign: refused,
    });
    await driver.put('k', encodeUtf8('1'), { if: 'absent' });
    await driver.put('k', encodeUtf8('1'), { if: 'absent' });
    await driver.delete(['a', 'b']);
    const failing: Promise<unknown>[] = [
      driver.get('k'),
      driver.put('bad', encodeUtf8('1'), { if: 'any' }),
      driver.put('bad', encodeUtf8('1'), { if: 'any' }),
      driver.delete(['k']),
      driver.list(''),
      driver.presign?.('k', { expiresInSeconds: 1 }) ?? Promise.resolve(),
    ];
    for (const { status } of await Promise.allSettled(failing)) expect(status).toBe('rejected');
    expect(driver.snapshot()).toMatchObject({
      put: 1,
      putLost: 1,
      extraPuts: 8,
      delete: 1,
      extraDeletes: 2,
      errors: 6,
      getErrors: 1,
      putErrors: 2,
      deleteErrors: 1,
      listErrors: 1,
    });
  });

  it('calls a hook for every request', async () => {
    const seen: ObservedRequest[] = [];
    const driver = new ObservedDriver(new MemoryDriver(), { onRequest: (request) => seen.push(request) });
    await driver.put('k', encodeUtf8('123'), { if: 'any' });
    await driver.get('k');
    await driver.list('p');
    await driver.delete(['k']);
    await expect(driver.get('k'.repeat(2000))).rejects.toThrow('longer');
    expect(seen.map(({ kind, key, status, bytes }) => [kind, key.slice(0, 3), status, bytes])).toEqual([
      ['put', 'k', 'written', 3],
      ['get', 'k', 'found', 3],
      ['list', 'p', 'done', 0],
      ['delete', 'k', 'done', 0],
      ['get', 'kkk', 'error', 0],
    ]);
    expect(seen.at(-1)?.error).toBeInstanceOf(Error);
    expect(seen.every(({ durationMs }) => durationMs >= 0)).toBe(true);
  });

  it('presigns only if the driver inside does', async () => {
    const plain = new MemoryDriver();
    expect(new ObservedDriver(plain).presign).toBeUndefined();
    const presigning = Object.assign(new MemoryDriver(), {
      presign: (key: string) => Promise.resolve(`url of ${key}`),
    });
    const driver = new ObservedDriver(presigning);
    expect(await driver.presign?.('k', { expiresInSeconds: 60 })).toBe('url of k');
    expect(driver.snapshot().presign).toBe(1);
    expect(driver.name).toBe('memory');
    await driver.close();
  });
});
