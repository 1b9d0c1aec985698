import { MemoryDriver } from 'store-db/lib/storage';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { openNotes } from './notes.ts';
import type { Notes } from './notes.ts';

// A database of this file's own, in memory.
let notes: Notes;
beforeAll(async () => {
  notes = await openNotes(new MemoryDriver());
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(() => notes.close());

it('shows a note that was added', async () => {
  await notes.add(1, 'water the plants');
  expect(await notes.recent()).toEqual(['water the plants']);
});

it('refuses a second one of the same number', async () => {
  await expect(notes.add(1, 'again')).rejects.toMatchObject({ code: 'DUPLICATE_KEY' });
});

it('shows it no more after a day', async () => {
  vi.useFakeTimers();
  await vi.advanceTimersByTimeAsync(25 * 60 * 60 * 1000);
  await notes.add(2, 'feed the cat');
  expect(await notes.recent()).toEqual(['feed the cat']);
});
