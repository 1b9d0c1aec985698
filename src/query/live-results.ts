/** The results of a watched query, as applications get them: one after the other in a loop, or by calls. */
import { describeValue } from '../base/messages.ts';
import { InvalidOptionError } from '../base/errors.ts';

/** The rows of a watched query in one state of the database, and their differences from the result before. */
export interface LiveRows<R> {
  /** The rows, in order. A row that did not change is the same object as in the result before. Do not modify them. */
  readonly rows: readonly R[];
  /** Rows that were not in the result before: all rows, in the first one. */
  readonly added: readonly R[];
  /** Rows that were in the result before with other values: as they are now. */
  readonly changed: readonly R[];
  /** Rows that are not in the result any more, as they were in the result before. */
  readonly removed: readonly R[];
  /** The state of the database: the position of its last commit, as {@link Database.position} gives it. */
  readonly position: number;
}

/** A number or other value that a watched query computes, in one state of the database. */
export interface LiveValue<T> {
  /** The count, or an object with the aggregates. */
  readonly value: T;
  /** The state of the database: the position of its last commit, as {@link Database.position} gives it. */
  readonly position: number;
}

/** A loop over the results of a watched query. */
export interface LiveCursor<T> {
  /** Resolves to the next result; to undefined after the end. */
  next(): Promise<T | undefined>;
  /** Ends the loop. */
  end(): void;
}

/** A loop whose code may have to be loaded first. */
class Loop<T> {
  readonly #cursor: Promise<LiveCursor<T>>;
  isOver = false;

  constructor(cursor: Promise<LiveCursor<T>>) {
    this.#cursor = cursor;
    // The next call gets the failure.
    cursor.catch(() => undefined);
  }

  async next(): Promise<T | undefined> {
    const cursor = await this.#cursor;
    return this.isOver ? undefined : cursor.next();
  }

  end(): void {
    this.isOver = true;
    void this.#cursor.then(
      (cursor) => cursor.end(),
      () => undefined,
    );
  }
}

/** The results of a watched query, for `for await` or {@link subscribe}. Each loop and each subscription begins with the present result. */
export class LiveResults<T extends object> implements AsyncIterable<T> {
  readonly #open: () => Promise<LiveCursor<T>>;

  /** @internal Use `query.watch()`. */
  constructor(open: () => Promise<LiveCursor<T>>) {
    this.#open = open;
  }

  /** Begins a loop. It ends by `break`, or when the signal is aborted, with `AbortedError`. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> {
    const loop = new Loop(this.#open());
    const iterator: AsyncIterableIterator<T, undefined> = {
      [Symbol.asyncIterator]: () => iterator,
      async next(): Promise<IteratorResult<T, undefined>> {
        const value = await loop.next();
        return value === undefined ? { done: true, value } : { done: false, value };
      },
      return(): Promise<IteratorResult<T, undefined>> {
        loop.end();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    return iterator;
  }

  /**
   * Calls `callback` with the present result, and with each one after it, until the returned function is called. `onError` is called
   * at most once, after the last result: with the reason why there are no more, or with the error that `callback` threw. Without it
   * the error is an unhandled rejection. Throws `InvalidOptionError` if `callback` is no function.
   */
  subscribe(callback: (result: T) => void, onError?: (error: unknown) => void): () => void {
    for (const [name, given] of Object.entries({ callback, onError: onError ?? callback })) {
      if (typeof given === 'function') continue;
      throw new InvalidOptionError(name, `subscribe() takes functions; \`${name}\` is ${describeValue(given)}.`);
    }
    const loop = new Loop(this.#open());
    const follow = async (): Promise<void> => {
      try {
        for (let result = await loop.next(); result !== undefined && !loop.isOver; result = await loop.next()) {
          callback(result);
        }
      } catch (error) {
        if (loop.isOver) return;
        if (onError === undefined) throw error;
        onError(error);
      } finally {
        loop.end();
      }
    };
    void follow();
    return () => loop.end();
  }
}
