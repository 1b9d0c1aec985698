/** A driver that is made with its first request. */
import { expect, it } from 'vitest';
import { MemoryDriver } from '../memory-driver.ts';
import { LaterDriver } from './later-driver.ts';
import type { LoadedDriver } from './later-driver.ts';

/** A driver in memory with the members that it lacks. */
function completeDriver(): LoadedDriver {
  const memory = new MemoryDriver();
  let isOpen = true;
  return Object.assign(memory, {
    identity: 'memory',
    presign: async (key: string) => `memory:${key}`,
    copy: async () => ({ status: 'unsupported' }) as never,
    storeTimeMs: () => 7,
    describe: () => ({ isOpen: String(isOpen) }),
    close: async () => void (isOpen = false),
  });
}

it('makes the driver once, with the first request, and tries again if that fails', async () => {
  let calls = 0;
  let fails = true;
  const driver = new LaterDriver({ name: 'later', identity: 'a place' }, async () => {
    calls++;
    if (fails) throw new Error('The code is not there');
    return completeDriver();
  });
  expect(driver).toMatchObject({ name: 'later', identity: 'a place' });
  expect(driver.storeTimeMs()).toBeUndefined();
  expect(driver.describe()).toEqual({});
  await driver.close();
  expect(calls).toBe(0);
  await expect(driver.get('a')).rejects.toThrow('The code is not there');
  fails = false;
  const bytes = new Uint8Array([1]);
  await Promise.all([driver.put('a', bytes, { if: 'absent' }), driver.put('b', bytes, { if: 'absent' })]);
  expect(calls).toBe(2);
  expect(await driver.get('a')).toMatchObject({ bytes });
  expect((await driver.list('')).entries.map(({ key }) => key)).toEqual(['a', 'b']);
  expect(await driver.presign('a', { expiresInSeconds: 1 })).toBe('memory:a');
  await driver.delete(['a']);
  expect((await driver.list('')).entries).toHaveLength(1);
  expect(driver.storeTimeMs()).toBe(7);
  await driver.close();
  expect(driver.describe()).toEqual({ isOpen: 'false' });
});
