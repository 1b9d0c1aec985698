/** Live queries as collections of TanStack DB: what they hold, what they tell of changes, and optimistic writes. */
import { createCollection } from '@tanstack/db';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Database } from '../../../src/index.ts';
import { liveClient, liveStore } from '../../../src/live-client.ts';
import { liveHandler } from '../../../src/live-server.ts';
import { storeDbCollectionOptions } from '../../../src/tanstack.ts';
import { LiveKit, origin, put, queriesOf, todos } from '../live-server/live-kit.ts';

let kit: LiveKit;
let db: Database;
beforeEach(async () => {
  kit = new LiveKit();
  db = await kit.open();
  await put(db, { id: 1, list: 1, text: 'one' }, { id: 2, list: 1, text: 'two' });
});
afterEach(async () => {
  await kit[Symbol.asyncDispose]();
});

const watched = () => liveStore(() => db.query(todos).where('list', '=', 1).watch());

it('a collection has the rows, and tells of those that changed only', async () => {
  const collection = createCollection(storeDbCollectionOptions({ query: watched(), getKey: ({ id }) => id }));
  await collection.preload();
  expect(collection.toArray.map(({ text }) => text)).toEqual(['one', 'two']);
  const changes: string[] = [];
  const subscription = collection.subscribeChanges(
    (some) => {
      changes.push(...some.map(({ type, key }) => `${type} ${key}`));
    },
    { includeInitialState: true },
  );
  changes.length = 0;
  await put(db, { id: 2, list: 1, text: 'TWO' }, { id: 3, list: 1, text: 'three' }, { id: 1, list: 2 });
  await expect.poll(() => collection.size === 2 && collection.has(3)).toBe(true);
  expect(changes.toSorted()).toEqual(['delete 1', 'insert 3', 'update 2']);
  expect(collection.get(2)).toMatchObject({ text: 'TWO', list: 1 });
  subscription.unsubscribe();
  await collection.cleanup();
});

it('an optimistic row stays until the row of the database has come', async () => {
  const query = watched();
  const collection = createCollection(
    storeDbCollectionOptions({
      query,
      getKey: ({ id }) => id,
      onInsert: async ({ transaction, collection: { utils } }) => {
        for (const { modified } of transaction.mutations)
          await put(db, { id: modified.id, list: modified.list, text: 'stored' });
        expect(await utils.awaitPosition(db.position)).toBe(true);
      },
    }),
  );
  await collection.preload();
  const sizes = new Set<number>();
  const subscription = collection.subscribeChanges(() => sizes.add(collection.size));
  const row = { id: 7, list: 1, text: 'sent', due: null, hash: null, size: null, weight: null, tags: null };
  const written = collection.insert(row);
  expect(collection.get(7)).toMatchObject({ text: 'sent' });
  await written.when('settled');
  expect(collection.get(7)).toMatchObject({ text: 'stored' });
  expect([...sizes]).toEqual([3]);
  expect(await collection.utils.awaitPosition(db.position + 1, 10)).toBe(false);
  subscription.unsubscribe();
  await collection.cleanup();
});

it('a refused query makes the collection fail', async () => {
  const handler = liveHandler(db, { queries: queriesOf(db), authorize: () => false });
  const client = liveClient(`${origin}/`, { fetch: (url, init) => handler.fetch(new Request(url, init)) });
  const query = client.query('list', { list: 1 }) as ReturnType<typeof watched>;
  const collection = createCollection(storeDbCollectionOptions({ query, getKey: ({ id }) => id }));
  await expect(collection.preload()).rejects.toMatchObject({ code: 'FORBIDDEN' });
  expect(collection.status).toBe('error');
  handler.close();
});
