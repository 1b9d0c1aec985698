/** Calls between threads, here of one thread: the errors that they pass on, and the thread of a load as the other side. */
import { expect, it } from 'vitest';
import { CorruptionError, StorageError, UnknownFormatError } from '../base/errors.ts';
import { loadRunsShape } from '../catalog/unfinished-loads.ts';
import { BlockGone } from '../tree/block-source.ts';
import { serve } from './load-worker.ts';
import { KeyRefused, ownBytes, RemoteError, ThreadChannel } from './thread-channel.ts';
import type { Method } from './thread-channel.ts';

/** Two channels that are connected. Messages are copied, as those between threads are. */
function pair(
  ours: Readonly<Record<string, Method>>,
  theirs: Readonly<Record<string, Method>>,
): readonly [our: ThreadChannel, their: ThreadChannel] {
  const our: ThreadChannel = new ThreadChannel((message) => their.receive(structuredClone(message)), ours);
  const their: ThreadChannel = new ThreadChannel((message) => our.receive(structuredClone(message)), theirs);
  return [our, their];
}

function failing(error: Error): Method {
  return async () => {
    throw error;
  };
}

async function failureOf(work: Promise<unknown>): Promise<Error> {
  return work.then(
    () => new Error('It did not fail'),
    (error: unknown) => error as Error,
  );
}

function fieldsOf(error: Error): object {
  return Object.assign({ message: error.message }, error);
}

it('an error that comes back to the thread that made it is the very same', async () => {
  const error = new StorageError('key', 'none', 'Access was denied.');
  const [our, their] = pair({ put: failing(error) }, { work: () => their.call('put').then(() => ({})) });
  expect(await failureOf(their.call('put'))).toBeInstanceOf(RemoteError);
  expect(await failureOf(our.call('work'))).toBe(error);
});

it.each([
  [new BlockGone('tables/x')],
  [new CorruptionError('tables/x', 'The block is torn')],
  [new UnknownFormatError('tables/x', 'The block is of version 9')],
])('%o keeps its class and its fields', async (error) => {
  const [our] = pair({}, { work: failing(error) });
  const other = await failureOf(our.call('work'));
  expect(other.constructor).toBe(error.constructor);
  expect(fieldsOf(other)).toEqual(fieldsOf(error));
});

it('a key that is refused comes with the error', async () => {
  const [our] = pair({}, { work: failing(new KeyRefused(new Uint8Array([1, 2]))) });
  expect(await failureOf(our.call('work'))).toMatchObject({ key: new Uint8Array([1, 2]) });
});

it('calls of a channel that is closed reject, and so do those that are open', async () => {
  const [our] = pair({}, { work: () => new Promise(() => {}) });
  const open = failureOf(our.call('work'));
  const reason = new Error('The thread has ended');
  our.close(reason);
  our.close(new Error('It has ended before'));
  expect([await open, await failureOf(our.call('work'))]).toEqual([reason, reason]);
});

it('bytes are handed over whole only if nothing else is in their buffer', () => {
  const alone = new Uint8Array(8);
  expect(ownBytes(alone, 3)).toBe(alone);
  const shared = new Uint8Array(new Uint8Array(8).fill(7).buffer, 2, 4);
  const own = ownBytes(shared, 3);
  expect([own.length, own.buffer.byteLength]).toEqual([3, 3]);
});

it('the thread of a load says when it is ready, and ends its work with the source', async () => {
  let isReady = false;
  const start = {
    table: loadRunsShape.name,
    schema: JSON.stringify(loadRunsShape.schema),
    prefix: 'db',
    blockSizeBytes: 4096,
    storesRoots: false,
    memoryBytes: 1024 * 1024,
    blockBytes: 4096,
  };
  let receive: ((message: unknown) => void) | undefined;
  const channel = new ThreadChannel((message) => receive?.(structuredClone(message)), {
    ready: () => {
      isReady = true;
      return Promise.resolve({});
    },
    rows: () => Promise.resolve({}),
    get: () => Promise.resolve({}),
  });
  serve({ post: (message) => channel.receive(structuredClone(message)), listen: (to) => (receive = to) });
  expect(isReady).toBe(true);
  await channel.call('begin', start);
  expect(await channel.call('runs', { limits: undefined, names: ['a', 'b'] })).toBe(undefined);
  const root = { birth: 0, id: '0'.repeat(16), count: 1, sizeBytes: 100, level: 0 };
  const parts = [{ runs: ['0000000000000001-gone'], root }];
  expect(await failureOf(channel.call('merge', { parts, names: [] }))).toMatchObject({
    key: 'staged/0000000000000001-gone',
  });
});
