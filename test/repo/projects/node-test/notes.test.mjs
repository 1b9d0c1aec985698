import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MemoryDriver } from 'store-db/lib/storage';
import { openNotes } from './notes.mjs';

// A database of this file's own, in memory.
let notes;
before(async () => {
  notes = await openNotes(new MemoryDriver());
});
after(() => notes.close());

test('shows a note that was added', async () => {
  await notes.add(1, 'water the plants');
  assert.deepEqual(await notes.recent(), ['water the plants']);
});

test('refuses a second one of the same number', async () => {
  await assert.rejects(notes.add(1, 'again'), { code: 'DUPLICATE_KEY' });
});

test('shows it no more after a day', async (context) => {
  context.mock.timers.enable({ now: Date.now() });
  context.mock.timers.tick(25 * 60 * 60 * 1000);
  await notes.add(2, 'feed the cat');
  assert.deepEqual(await notes.recent(), ['feed the cat']);
});
