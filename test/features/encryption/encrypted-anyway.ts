/** That tests with the other configuration do run on encrypted databases. */
import { expect, it } from 'vitest';
import { MemoryDriver } from '../../../src/storage/index.ts';
import { bare, fill, objectsOf, open } from './envelope-store.ts';

it('are encrypted, although nobody says so', async () => {
  const driver = new MemoryDriver();
  await using db = await open(driver);
  await fill(db, 100);
  expect(bare(await objectsOf(driver))).toEqual([]);
});
