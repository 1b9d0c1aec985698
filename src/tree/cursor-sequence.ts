/** Cursors in a row. */
import { isPromise } from '../base/brands.ts';
import type { Node } from '../format/node.ts';
import type { ReadMemory } from '../cache/query-memory.ts';
import type { RunCursor } from './cursor.ts';

/** How many of the next cursors are begun ahead: at first, and at most. */
const firstWindow = 2;
const widestWindow = 32;
/** Empty cursors that are passed without a pause. */
const emptyAtOnce = 256;

/** A cursor that has been moved to its first run before its turn. */
interface Begun {
  readonly cursor: RunCursor;
  readonly moved: Promise<boolean>;
}

/**
 * Several cursors, one after the other; each is made when its turn comes. With `memory`, the next ones are begun ahead as soon as
 * a second one had to be waited for: ranges of keys that lie apart are then read at the same time.
 */
export class CursorSequence implements RunCursor {
  readonly #count: number;
  readonly #make: (i: number) => RunCursor;
  readonly #memory: ReadMemory | undefined;
  readonly #breathe: (() => void | Promise<void>) | undefined;
  #at = -1;
  #expected = 0;
  #together = 0;
  #current: RunCursor | undefined;
  /** What came of moving the present cursor ahead, until that is taken. */
  #moved: Promise<boolean> | undefined;
  /** Those after the present one, in their order. */
  readonly #begun: Begun[] = [];
  #window = 0;

  /** `breathe`: called again and again while cursors have nothing. */
  constructor(
    count: number,
    make: (i: number) => RunCursor,
    memory?: ReadMemory,
    breathe?: () => void | Promise<void>,
  ) {
    this.#breathe = breathe;
    this.#count = count;
    this.#make = make;
    this.#memory = memory;
    this.#step();
  }

  #step(): void {
    this.#at++;
    const begun = this.#begun.shift();
    this.#moved = begun?.moved;
    this.#current = begun?.cursor ?? (this.#at < this.#count ? this.#make(this.#at) : undefined);
    this.#current?.expect?.(this.#expected);
  }

  expect(entries: number, together: number = entries): void {
    this.#expected = entries;
    this.#together = together;
    this.#current?.expect?.(entries);
  }

  get node(): Node {
    return (this.#current as RunCursor).node;
  }

  get from(): number {
    return (this.#current as RunCursor).from;
  }

  get to(): number {
    return (this.#current as RunCursor).to;
  }

  next(): boolean | Promise<boolean> {
    for (let cursor = this.#current; cursor !== undefined; cursor = this.#current) {
      const moved = this.#moved ?? cursor.next();
      this.#moved = undefined;
      if (isPromise(moved)) {
        this.#readAhead();
        return moved.then((more) => more || this.#nextCursor());
      }
      if (moved) return true;
      this.#step();
      const waiting = this.#at % emptyAtOnce === 0 ? this.#breathe?.() : undefined;
      if (waiting !== undefined) return waiting.then(() => this.next());
    }
    return false;
  }

  #nextCursor(): boolean | Promise<boolean> {
    this.#step();
    return this.next();
  }

  /** Begins some of the next cursors, more each time: the present one must be waited for. The first is often all it takes. */
  #readAhead(): void {
    if (this.#memory === undefined || this.#at === 0) return;
    this.#window = Math.min(widestWindow, Math.max(firstWindow, this.#window * 2));
    const { aheadBytes, blockBytes } = this.#memory;
    // Each has one entry at least, mostly. And each holds a block until its turn comes.
    const useful = Math.min(this.#expected, this.#together, Math.max(1, Math.floor(aheadBytes / blockBytes))) - 1;
    const most = Math.min(this.#window, useful, this.#count - this.#at - 1);
    while (this.#begun.length < most) {
      const begun = this.#begin(this.#at + this.#begun.length + 1, this.#memory);
      if (begun === undefined) return;
      this.#begun.push(begun);
    }
  }

  /** Moves a cursor to its first run; undefined if there is no room for what that reads. */
  #begin(i: number, memory: ReadMemory): Begun | undefined {
    const { blockBytes } = memory;
    if (!memory.beginAhead(blockBytes)) return undefined;
    const cursor = this.#make(i);
    // Also what it throws at once is told to whoever comes to it.
    const moved = (async (): Promise<boolean> => cursor.next())();
    const end = (): void => memory.endAhead(blockBytes);
    moved.then(end, end);
    return { cursor, moved };
  }
}
