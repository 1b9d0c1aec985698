/** How the example service commits a batch if the outcome of a commit is unknown. */
import { StoreDb } from 'store-db';
import { ObjectStoreDriver } from 'store-db/lib/storage';
import { expect, it, vi } from 'vitest';
import { commit } from '../../../examples/notes-service/commit.ts';
import { notes } from '../../../examples/notes-service/tables.ts';
import { timeOrderedId } from '../../../examples/notes-service/time-ordered-id.ts';
import { startS3Server } from '../s3-server/server.ts';

it('flushes a batch again if the store went silent right after it took the commit, and applies it once', async () => {
  const server = await startS3Server();
  const client = server.client();
  const driver = new ObjectStoreDriver({ bucket: 'test-bucket', client });
  const db = StoreDb({ dbPrefix: 'notes', nodeId: 0, driver, logLevel: 'silent' });
  db.registerSchema(notes);
  await db.start();

  const batch = db.batch();
  const flush = vi.spyOn(batch, 'flush');
  const id = timeOrderedId();
  await batch.insert(notes, { id, topic: 'a', title: 'b' });
  let isSilent = false;
  server.intercept = ({ method, key }) => {
    if (isSilent) return 'reset';
    isSilent = method === 'PUT' && key.startsWith('notes/committed/');
    return isSilent ? 'reset-after' : undefined;
  };
  const committed = commit(batch, 500);
  await vi.waitFor(() => expect(flush).toHaveBeenCalledTimes(2), 5000);
  await expect(flush.mock.results[0]?.value).rejects.toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
  isSilent = false;
  server.intercept = undefined;
  await committed;

  expect(await db.query(notes).execute()).toMatchObject([{ id, topic: 'a', title: 'b' }]);
  expect(db.stats().log?.tail).toBe(1);
  await db.stop();
  await server.close();
});

it('makes ids that are UUIDs of version 7, each higher than ids of earlier milliseconds', () => {
  vi.useFakeTimers({ now: 0 });
  try {
    const ids = [0, 1, 255, 65_536, 1_800_000_000_000].map((now) => {
      vi.setSystemTime(now);
      return timeOrderedId();
    });
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(ids.toSorted()).toEqual(ids);
  } finally {
    vi.useRealTimers();
  }
});
