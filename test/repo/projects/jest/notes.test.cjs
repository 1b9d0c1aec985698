const { MemoryDriver } = require('store-db/lib/storage');
const { openNotes } = require('./notes.cjs');

// A database of this file's own, in memory.
let notes;
beforeAll(async () => {
  notes = await openNotes(new MemoryDriver());
});
afterEach(() => {
  jest.useRealTimers();
});
afterAll(() => notes.close());

test('shows a note that was added', async () => {
  await notes.add(1, 'water the plants');
  expect(await notes.recent()).toEqual(['water the plants']);
});

test('refuses a second one of the same number', async () => {
  await expect(notes.add(1, 'again')).rejects.toMatchObject({ code: 'DUPLICATE_KEY' });
});

test('shows it no more after a day', async () => {
  jest.useFakeTimers();
  await jest.advanceTimersByTimeAsync(25 * 60 * 60 * 1000);
  await notes.add(2, 'feed the cat');
  expect(await notes.recent()).toEqual(['feed the cat']);
});
