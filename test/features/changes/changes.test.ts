/** db.changes(): the contents of commits, the positions to begin at, and the end of a loop. */
import { beforeEach, describe, expect, it } from 'vitest';
import { StorageError } from '../../../src/base/errors.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { Types } from '../../../src/format/types.ts';
import { Cluster, items, prefix, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { quietIntervalMs } from '../protocol/nodes.ts';
import { before, refused } from '../protocol/scripted-driver.ts';
import { FeedReader } from './feed-reader.ts';

const second = 1000;
const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };

const events = {
  name: 'events',
  version: 1,
  fields: { at: { typeId: Types.timestamp }, what: { typeId: Types.json }, n: { typeId: Types.uint64 } },
  primaryKey: 'at',
} as const;

let cluster: Cluster;

beforeEach(() => {
  cluster = new Cluster();
});

/** Commits of one row each, which is told apart by its id. */
async function commit(node: ClusterNode, ids: readonly number[]): Promise<void> {
  for (const id of ids) await cluster.run(cluster.put(node, [id], 'row'));
}

/** What is committed after a position, until now. */
async function changesAfter({ db }: ClusterNode, position: number): Promise<FeedReader> {
  const controller = new AbortController();
  const reader = new FeedReader(db.changes({ after: position, signal: controller.signal }));
  await cluster.advance(10);
  controller.abort();
  await cluster.run(reader.ended);
  if ((reader.error as { code?: string }).code === 'ABORTED') reader.error = undefined;
  return reader;
}

describe('a commit in the feed', () => {
  it('gives change, place, time and author, row by row in the order of keys', async () => {
    const node = await cluster.start(3);
    node.db.registerSchema(events);
    const reader = new FeedReader(node.db.changes());
    const seen: unknown[] = [];
    const feed = node.db.changes();
    const first = feed[Symbol.asyncIterator]().next();
    await cluster.run(
      cluster.flush(node, (batch) => {
        void batch.insert(items, { id: 7, text: 'seven' });
        void batch.insert(events, { at: new Date(5), what: { a: [1] }, n: 12 });
        void batch.insert(items, { id: -2, text: null });
      }),
    );
    await cluster.run(cluster.flush(node, (batch) => void batch.update(items, { id: 7, group: 9 })));
    await cluster.run(cluster.flush(node, (batch) => void batch.delete(events, new Date(5))));
    await cluster.run(node.db.stop());
    const { value } = await cluster.run(first);
    seen.push(value?.position, value?.nodeId, value?.at.getTime(), value?.commitId);
    expect(seen).toEqual([1, 3, 1_700_000_000_000, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    const seven = { id: 7, text: 'seven', group: null, file: null };
    expect(reader.told).toEqual([
      {
        position: 1,
        changes: [
          { table: 'items', version: 1, operation: 'upsert', key: -2, row: { ...seven, id: -2, text: null } },
          { table: 'items', version: 1, operation: 'upsert', key: 7, row: seven },
          {
            table: 'events',
            version: 1,
            operation: 'upsert',
            key: new Date(5),
            row: { at: new Date(5), what: { a: [1] }, n: 12n },
          },
        ],
      },
      {
        position: 2,
        changes: [{ table: 'items', version: 1, operation: 'upsert', key: 7, row: { ...seven, group: 9 } }],
      },
      { position: 3, changes: [{ table: 'events', version: 1, operation: 'delete', key: new Date(5) }] },
    ]);
  });

  it('is one for several flushes that share it, one after the other', async () => {
    const node = await cluster.start(0);
    const reader = new FeedReader(node.db.changes());
    const flushes = [1, 2, 3].map((n) => cluster.put(node, [5, 5 + n], `flush ${n}`));
    await cluster.run(Promise.all(flushes));
    await cluster.advance(0);
    const told = reader.told.flatMap(({ changes }) => changes.map(({ key, row }) => [key, row?.['text']]));
    expect(told).toEqual(
      [1, 2, 3].flatMap((n) => [
        [5, `flush ${n} 5`],
        [5 + n, `flush ${n} ${5 + n}`],
      ]),
    );
    expect(reader.told.length).toBeLessThan(3);
  });

  it('shows blobs as references, and nothing of the tables that are the database’s own', async () => {
    const node = await cluster.start(0);
    const reader = new FeedReader(node.db.changes());
    await cluster.run(
      cluster.flush(node, (batch) => void batch.insert(items, { id: 1, file: node.db.Blob('some bytes') })),
    );
    await cluster.run(cluster.flush(node, (batch) => void batch.update(items, { id: 1, file: null })));
    await cluster.advance(0);
    const changes = reader.told.flatMap((told) => told.changes);
    expect(changes.map(({ table, row }) => [table, typeof row?.['file']])).toEqual([
      ['items', 'string'],
      ['items', 'object'],
    ]);
  });

  it('is left out where it is about nothing else', async () => {
    const node = await cluster.withRows(1);
    const reader = new FeedReader(node.db.changes());
    await cluster.store.put(`${prefix}/blobs/0e0c1b1e-0000-4000-8000-000000000000`, Buffer.from('lost'), { if: 'any' });
    await cluster.advance(10);
    expect(await cluster.run(node.db.gc(quick))).toMatchObject({ condemnedBlobs: 1 });
    expect(node.db.position).toBe(2);
    await commit(node, [5]);
    await cluster.advance(0);
    expect(reader.positions).toEqual([3]);
  });

  it('can be read again, and in part', async () => {
    const node = await cluster.start(0);
    const feed = node.db.changes()[Symbol.asyncIterator]();
    await cluster.run(cluster.put(node, range(0, 500), 'row'));
    const { value } = await cluster.run(feed.next());
    const keys = async (most: number): Promise<unknown[]> => {
      const found: unknown[] = [];
      for await (const { key } of value ?? []) if (found.push(key) === most) break;
      return found;
    };
    expect(await cluster.run(keys(3))).toEqual([0, 1, 2]);
    expect(await cluster.run(keys(Infinity))).toEqual(range(0, 500));
  });
});

describe('positions', () => {
  it('are where it is taken up again, wherever that is: no commit twice, and none left out', async () => {
    const node = await cluster.start(0);
    await commit(node, range(1, 21));
    for (const merged of [0, 12]) {
      if (merged > 0) {
        await cluster.run(node.db.checkpoint());
        await commit(node, range(21, 31));
      }
      const last = node.db.position;
      for (const position of range(0, last + 1)) {
        const reader = await changesAfter(node, position);
        expect([position, reader.error]).toEqual([position, undefined]);
        expect(reader.positions).toEqual(range(position + 1, last + 1));
        expect(reader.keys).toEqual(range(position + 1, last + 1).map((id) => [id]));
      }
    }
  });

  it('by default are those that the instance does not show yet', async () => {
    const writer = await cluster.withRows(1);
    const other = await cluster.start(1);
    await commit(writer, [1, 2]);
    const reader = new FeedReader(other.db.changes());
    await commit(writer, [3]);
    await cluster.run(other.db.refresh());
    await cluster.advance(0);
    expect(reader.keys).toEqual([[1], [2], [3]]);
  });

  it('before the beginning of the log are gone, and the error says what to do', async () => {
    const node = await cluster.start(0);
    await commit(node, range(1, 6));
    await cluster.run(node.db.checkpoint());
    await cluster.advance(10);
    await cluster.run(node.db.gc(quick));
    await commit(node, [6]);
    node.driver.takeLines();
    for (const position of [0, 4]) {
      const { error, told } = await changesAfter(node, position);
      expect(told).toEqual([]);
      expect(error).toMatchObject({ code: 'CHANGES_EXPIRED', position, floor: 5 });
      expect((error as Error).message).toMatch(/read the tables again.*logRetentionMs/);
    }
    // It is known without asking.
    expect(node.driver.takeLines()).toEqual([]);
    expect((await changesAfter(node, 5)).positions).toEqual([6]);
  });

  it('follow the retention given to gc', async () => {
    const node = await cluster.start(0);
    await commit(node, range(1, 6));
    await cluster.run(node.db.checkpoint());
    await cluster.advance(7200 * second);
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 86_400_000 }));
    expect((await changesAfter(node, 0)).positions).toEqual([1, 2, 3, 4, 5]);
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect((await changesAfter(node, 0)).error).toMatchObject({ code: 'CHANGES_EXPIRED' });
  });

  it('ahead of the instance are looked for, and refused where nobody has them', async () => {
    const writer = await cluster.withRows(1);
    const replica = await cluster.start(1, { role: 'replica' });
    await commit(writer, [1, 2]);
    const reader = new FeedReader(replica.db.changes({ after: writer.db.position }));
    await cluster.advance(0);
    await commit(writer, [3]);
    await cluster.run(replica.db.refresh());
    await cluster.advance(0);
    expect(reader.keys).toEqual([[3]]);
    const { error } = await changesAfter(writer, 99);
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'after' });
    expect((error as Error).message).toContain('the newest commit has position 4');
  });

  it('are whole numbers', async () => {
    const { db } = await cluster.start(0);
    for (const position of [-1, 0.5, '1', null, Number.NaN]) {
      const call = (): unknown => db.changes({ after: position as number });
      expect(call).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'after' }));
    }
  });
});

describe('a slot', () => {
  /** A node that has merged three commits, of which the log has none any more, and does not know that. */
  async function behind(): Promise<{ node: ClusterNode; other: ClusterNode }> {
    const other = await cluster.start(1);
    await commit(other, [1, 2, 3]);
    await cluster.run(other.db.checkpoint());
    const node = await cluster.start(0);
    return { node, other };
  }

  it('counts only with a Block 0 that was asked for after it was read', async () => {
    const { node, other } = await behind();
    await cluster.advance(10);
    node.driver.onGet(
      /^committed\/1$/,
      before(() => other.db.gc(quick)),
    );
    expect((await changesAfter(node, 0)).error).toMatchObject({ code: 'CHANGES_EXPIRED', floor: 3 });
  });

  it('that was trimmed and won once more gives nothing', async () => {
    const { node, other } = await behind();
    const zombie = await cluster.store.get(`${prefix}/${commitName(1)}`);
    await cluster.advance(10);
    await cluster.run(other.db.gc(quick));
    if (zombie.status !== 'found') throw new Error('there is no commit 1');
    await cluster.store.put(`${prefix}/${commitName(1)}`, zombie.bytes, { if: 'absent' });
    const { told, error } = await changesAfter(node, 0);
    expect(told).toEqual([]);
    expect(error).toMatchObject({ code: 'CHANGES_EXPIRED', position: 0, floor: 3 });
  });

  it('that was trimmed and won once more gives nothing to a waiting reader either', async () => {
    const node = await cluster.start(0);
    const reader = new FeedReader(node.db.changes());
    const other = await cluster.start(1);
    await commit(other, [1, 2, 3]);
    const zombie = await cluster.store.get(`${prefix}/${commitName(1)}`);
    await cluster.run(other.db.checkpoint());
    await cluster.advance(10);
    await cluster.run(other.db.gc(quick));
    if (zombie.status !== 'found') throw new Error('there is no commit 1');
    await cluster.store.put(`${prefix}/${commitName(1)}`, zombie.bytes, { if: 'absent' });
    await cluster.run(node.db.refresh());
    await cluster.advance(10);
    expect(node.driver.takeLines()).toContain('get committed/1 found');
    expect(reader.told).toEqual([]);
    expect(reader.error).toMatchObject({ code: 'CHANGES_EXPIRED', position: 0, floor: 3 });
  });

  it('that is missing above the floor is damage', async () => {
    const { node } = await behind();
    await cluster.remove(commitName(2));
    expect((await changesAfter(node, 0)).error).toMatchObject({ code: 'CORRUPTION', key: commitName(2) });
    expect((await changesAfter(node, 2)).positions).toEqual([3]);
  });
});

describe('the end', () => {
  it('by break, or return(), leaves nothing behind, also while a commit is waited for', async () => {
    const node = await cluster.start(0, { polling: 'onDemand', writeForwardInterval: 5 * second });
    await commit(node, [1]);
    await cluster.run(node.db.checkpoint());
    const timers = node.environment.timerCount;
    for await (const { position } of node.db.changes({ after: 0 })) {
      expect(position).toBe(1);
      break;
    }
    expect(node.environment.timerCount).toBe(timers);
    const loop = node.db.changes()[Symbol.asyncIterator]();
    const next = loop.next();
    await cluster.advance(12 * second);
    expect(node.environment.timerCount).toBe(timers + 1);
    expect(await cluster.run(loop.return?.() ?? Promise.reject(new Error('no return')))).toMatchObject({ done: true });
    expect(await cluster.run(next)).toEqual({ done: true, value: undefined });
    expect(await cluster.run(loop.next())).toEqual({ done: true, value: undefined });
    expect(node.environment.timerCount).toBe(timers);
    node.driver.takeLines();
    await cluster.advance(60 * second);
    expect(node.driver.takeLines()).toEqual([]);
  });

  it('comes with the signal', async () => {
    const node = await cluster.withRows(1);
    const controller = new AbortController();
    const reader = new FeedReader(node.db.changes({ signal: controller.signal }));
    await cluster.advance(second);
    expect(reader.hasEnded).toBe(false);
    controller.abort(new Error('enough'));
    await cluster.run(reader.ended);
    expect(reader.error).toMatchObject({ code: 'ABORTED', cause: { message: 'enough' } });
    const late = new FeedReader(node.db.changes({ signal: AbortSignal.abort() }));
    await cluster.run(late.ended);
    expect(late.error).toMatchObject({ code: 'ABORTED' });
  });

  it('comes when the instance is stopped, which leaves no timer', async () => {
    const node = await cluster.withRows(1);
    const feed = node.db.changes();
    const readers = [new FeedReader(feed), new FeedReader(node.db.changes({ after: 0 }))];
    const first = await cluster.run(node.db.changes({ after: 0 })[Symbol.asyncIterator]().next());
    await cluster.advance(second);
    await cluster.run(node.db.stop());
    for (const reader of readers) {
      await cluster.run(reader.ended);
      expect(reader.error).toMatchObject({ code: 'NOT_STARTED' });
    }
    expect(node.environment.timerCount).toBe(0);
    const { value } = first;
    expect(await cluster.failure(value?.toArray() ?? Promise.resolve())).toMatchObject({ code: 'NOT_STARTED' });
    expect(() => node.db.changes()).toThrow(expect.objectContaining({ code: 'NOT_STARTED' }));
    await cluster.run(node.db.start());
    const again = new FeedReader(feed);
    await cluster.run(again.ended);
    expect(again.error).toMatchObject({ code: 'NOT_STARTED' });
    await cluster.run(node.db.stop());
  });

  it('comes when the database is replaced or set back: while waiting, and while reading', async () => {
    for (const polling of ['interval', 'adaptive', 'onDemand'] as const) {
      cluster = new Cluster();
      const writer = await cluster.withRows(1);
      const early = await cluster.block0();
      await commit(writer, [1, 2]);
      await cluster.run(writer.db.checkpoint());
      const node = await cluster.start(1, { polling, writeForwardInterval: 5 * second, nodes: [9] });
      const reader = new FeedReader(node.db.changes());
      await cluster.advance(30 * second);
      await cluster.store.put(`${prefix}/block0`, encodeBlock0(early), { if: 'any' });
      const reading = await changesAfter(node, 0);
      expect([polling, reading.error]).toMatchObject([polling, { code: 'DATABASE_REPLACED' }]);
      await cluster.advance(30 * second);
      expect([polling, reader.error]).toMatchObject([polling, { code: 'DATABASE_REPLACED' }]);
    }
  });

  it('comes where the credentials do not allow to read, and not where the store fails for a while', async () => {
    const node = await cluster.withRows(3);
    node.driver.onGet(/^committed/, refused, Infinity);
    const reader = new FeedReader(node.db.changes({ after: 0 }));
    await cluster.advance(2 * quietIntervalMs);
    expect(reader.hasEnded).toBe(false);
    node.driver.heal();
    await cluster.advance(2 * quietIntervalMs);
    expect(reader.positions).toEqual([1]);
    node.driver.onGet(
      /^committed/,
      (_, { key }) => Promise.reject(new StorageError(key, 'none', 'No.', { reason: 'forbidden' })),
      Infinity,
    );
    expect((await changesAfter(node, 0)).error).toMatchObject({ code: 'STORAGE', reason: 'forbidden' });
  });

  it('answers calls in their order', async () => {
    const node = await cluster.start(0);
    const loop = node.db.changes()[Symbol.asyncIterator]();
    const nexts = [loop.next(), loop.next(), loop.next()];
    await commit(node, [1, 2, 3]);
    const told = await cluster.run(Promise.all(nexts));
    expect(told.map(({ value }) => value?.position)).toEqual([1, 2, 3]);
    await cluster.run(node.db.checkpoint());
    node.driver.takeLines();
    const past = node.db.changes({ after: 0 })[Symbol.asyncIterator]();
    const again = await cluster.run(Promise.all([past.next(), past.next(), past.next()]));
    expect(again.map(({ value }) => value?.position)).toEqual([1, 2, 3]);
    expect(node.driver.takeLines()).toHaveLength(4);
  });
});
