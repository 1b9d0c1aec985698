/**
 * Reads a stream of the application with a limit on idle time: a client that stops sending must not block a flush or `stop()`.
 * When the reading ends, for any reason, the stream is ended too, without waiting for it.
 */
import { allowListeners } from '#platform';
import type { Environment } from '../base/env.ts';
import { DeadlineExceededError } from '../base/errors.ts';
import { abortedError } from '../base/abort.ts';

type Piece = Uint8Array | string;
export type Source = AsyncIterable<Piece>;

/** The limits within which a stream is read. */
export interface StreamLimits {
  readonly environment: Environment;
  /** Aborted when the database is being stopped: then an idle stream has less time. */
  readonly ending: AbortSignal;
  readonly signal?: AbortSignal | undefined;
}

/** Longest idle time of a stream while the database is being stopped, in milliseconds. */
const endingIdleMs = 5000;

interface Reader {
  next(): Promise<{ readonly done?: boolean; readonly value?: Piece | undefined }>;
  end(): void;
}

/**
 * Has `note` called with the error of a stream of Node.js. A stream may fail long before a flush reads it, and its error ends the
 * process where nobody listens. Other streams keep their errors until they are read.
 */
export function onStreamError(source: Source, note: (error: unknown) => void): void {
  const stream = source as unknown as { on?: unknown; pipe?: unknown };
  // An emitter that is no stream may mean something else by the event.
  if (typeof stream.on !== 'function' || typeof stream.pipe !== 'function') return;
  (source as unknown as { on(event: 'error', listener: typeof note): void }).on('error', note);
}

function readerOf(source: Source): Reader {
  const ignore = (ended: unknown): void => void Promise.resolve(ended).catch(() => undefined);
  const { getReader, destroy } = source as unknown as Partial<ReadableStream<Piece>> & { destroy?: unknown };
  if (typeof getReader === 'function') {
    const reader = (source as unknown as ReadableStream<Piece>).getReader();
    return { next: () => reader.read(), end: () => ignore(reader.cancel()) };
  }
  const iterator = source[Symbol.asyncIterator]();
  return {
    next: () => iterator.next() as ReturnType<Reader['next']>,
    end: () => {
      // `return()` cannot end a generator that is waiting; `destroy()` can end a stream of Node.js.
      if (typeof destroy === 'function') (source as unknown as { destroy(): void }).destroy();
      ignore(iterator.return?.());
    },
  };
}

/**
 * Reads a stream. Calls `failure` with the reason if it ends the stream, because the error that a driver makes of it says less.
 */
export async function* whileLive(
  source: Source,
  idleMs: number,
  { environment, ending, signal }: StreamLimits,
  failure: (error: Error) => void,
): AsyncGenerator<Piece, void, undefined> {
  // Many streams may listen to one signal: that is not a leak, and needs no warning.
  allowListeners(ending);
  const reader = readerOf(source);
  try {
    for (;;) {
      const result = await nextOf(reader);
      if (result.done === true) return;
      yield result.value as Piece;
    }
  } finally {
    reader.end();
  }

  function nextOf(from: Reader): ReturnType<Reader['next']> {
    return new Promise((resolve, reject) => {
      const startedMs = environment.monotonicMs();
      const stalled = (maxMs: number): void => {
        giveUp(
          new DeadlineExceededError(
            `The stream of a blob sent no data for ${maxMs} ms, and was ended. Nothing was committed: drop the batch with ` +
              'clear(), and give the field a new db.Blob(). Option idleMs of db.Blob() says how long a stream may wait.',
          ),
        );
      };
      let timer = environment.setTimer(() => stalled(idleMs), idleMs);
      const onEnding = (): void => {
        timer.cancel();
        const maxMs = Math.min(idleMs, endingIdleMs);
        const leftMs = Math.max(0, maxMs - (environment.monotonicMs() - startedMs));
        timer = environment.setTimer(() => stalled(maxMs), leftMs);
      };
      const onAbort = (): void => giveUp(abortedError('batch.flush()', signal?.reason));
      const settled = (): void => {
        timer.cancel();
        ending.removeEventListener('abort', onEnding);
        signal?.removeEventListener('abort', onAbort);
      };
      const giveUp = (error: Error): void => {
        settled();
        failure(error);
        reject(error);
      };
      if (ending.aborted) onEnding();
      else ending.addEventListener('abort', onEnding, { once: true });
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort, { once: true });
      from.next().finally(settled).then(resolve, reject);
    });
  }
}
