/** Cursors one after the other: over lists of key ranges, and over trees of two parts. */
import { isPromise } from '../base/brands.ts';
import type { ReadMemory } from '../cache/memory-budget.ts';
import type { Node } from '../format/node.ts';
import { TreeCursor } from './cursor.ts';
import type { KeyRange, RunCursor } from './cursor.ts';
import type { Tree } from './tree.ts';
import { splitRange, TwoPartTree } from './two-part-tree.ts';

/** Returns a cursor over any tree. */
export function openCursor(tree: Tree, range: KeyRange = {}, descending = false): RunCursor {
  if (!(tree instanceof TwoPartTree)) return new TreeCursor(tree, range, descending);
  const { lower, upper, bound } = tree;
  const [under, above] = splitRange(range, bound);
  const cursors = [
    ...(lower === undefined || under === undefined ? [] : [new TreeCursor(lower, under, descending)]),
    ...(above === undefined ? [] : [new TreeCursor(upper, above, descending)]),
  ];
  if (descending) cursors.reverse();
  return new CursorSequence(cursors.length, (i) => cursors[i] as RunCursor);
}

/** The number of cursors read ahead: at first, and at most. */
const firstWindow = 2;
const widestWindow = 32;
/** Empty cursors skipped without a pause. */
const emptyAtOnce = 256;

/** A cursor that is read ahead: it moves to its first run before its turn. */
interface Begun {
  readonly cursor: RunCursor;
  readonly moved: Promise<boolean>;
}

/**
 * A sequence of cursors; each is made when it is reached. With `memory`, the next cursors are read ahead once a cursor after
 * the first had to be waited for, so that separate ranges of keys are read at the same time.
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
  /** The result of reading the current cursor ahead, until it is used. */
  #moved: Promise<boolean> | undefined;
  /** The cursors read ahead, in order. */
  readonly #begun: Begun[] = [];
  #window = 0;

  /** `breathe`: called regularly while cursors are empty. */
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

  /**
   * Starts some of the next cursors, more each time, because the current one must be waited for. It does nothing for the first
   * cursor, which often is the only one needed.
   */
  #readAhead(): void {
    if (this.#memory === undefined || this.#at === 0) return;
    this.#window = Math.min(widestWindow, Math.max(firstWindow, this.#window * 2));
    const { readAheadBytes, blockBytes } = this.#memory;
    // Most cursors have at least one entry, and each holds a block until it is reached.
    const useful = Math.min(this.#expected, this.#together, Math.max(1, Math.floor(readAheadBytes / blockBytes))) - 1;
    const most = Math.min(this.#window, useful, this.#count - this.#at - 1);
    while (this.#begun.length < most) {
      const begun = this.#begin(this.#at + this.#begun.length + 1, this.#memory);
      if (begun === undefined) return;
      this.#begun.push(begun);
    }
  }

  /** Moves a cursor to its first run; undefined if there is no memory for the blocks that this reads. */
  #begin(i: number, memory: ReadMemory): Begun | undefined {
    const { blockBytes } = memory;
    if (!memory.beginReadAhead(blockBytes)) return undefined;
    const cursor = this.#make(i);
    // The async function also delivers errors thrown at once to the reader that reaches the cursor.
    const moved = (async (): Promise<boolean> => cursor.next())();
    const end = (): void => memory.endReadAhead(blockBytes);
    moved.then(end, end);
    return { cursor, moved };
  }
}
