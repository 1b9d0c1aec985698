/**
 * Two trees as one, each for the keys on one side of a bound: what has been made of a tree so far, and what it is made of.
 * Leaves of either may hold keys of the other side, which are not shown.
 */
import { isPromise } from '../base/brands.ts';
import { compareBytes, compareRanges } from '../base/bytes.ts';
import type { ReadMemory } from '../cache/memory-budget.ts';
import type { Node } from '../format/node.ts';
import { TreeCursor } from './cursor.ts';
import type { KeyRange, RunCursor } from './cursor.ts';
import { Tree } from './tree.ts';
import type { RowRef } from './tree.ts';

export class SplitTree extends Tree {
  /** Has the keys under the bound; undefined: there are none. */
  readonly lower: Tree | undefined;
  /** Has the keys from the bound on. */
  readonly upper: Tree;
  readonly bound: Uint8Array;

  /** Its number of entries is that of `upper`, which counts as if it had all keys. */
  constructor(lower: Tree | undefined, upper: Tree, bound: Uint8Array) {
    super(upper.source, upper.ref);
    this.lower = lower;
    this.upper = upper;
    this.bound = bound;
  }

  override get identity(): undefined {
    return undefined;
  }

  override peekRoot(): Node | undefined {
    return this.upper.peekRoot();
  }

  override glanceRoot(): Node | undefined {
    return this.upper.glanceRoot();
  }

  override loadRoot(): Promise<Node> {
    return this.upper.loadRoot();
  }

  override get mayBreak(): boolean {
    return this.upper.mayBreak || this.lower?.mayBreak === true;
  }

  override lookup(key: Uint8Array, length: number = key.length): RowRef | undefined | Promise<RowRef | undefined> {
    const isUnder = compareRanges(key, 0, length, this.bound, 0, this.bound.length) < 0;
    return isUnder ? this.lower?.lookup(key, length) : this.upper.lookup(key, length);
  }

  /** Not known: keys of either side may lie in leaves of the other. */
  override holdsNone(): boolean {
    return false;
  }
}

/** The part of a range of keys that is under a bound, and the part from the bound on; undefined where it is empty. */
export function splitRange({ from, to }: KeyRange, bound: Uint8Array): [KeyRange | undefined, KeyRange | undefined] {
  const isUnder = (key: Uint8Array): boolean => compareBytes(key, bound) < 0;
  const [begins, ends] = [from === undefined || isUnder(from), to !== undefined && compareBytes(to, bound) <= 0];
  return [begins ? { from, to: ends ? to : bound } : undefined, ends ? undefined : { from: begins ? bound : from, to }];
}

/** A cursor over any tree. */
export function openCursor(tree: Tree, range: KeyRange = {}, descending = false): RunCursor {
  if (!(tree instanceof SplitTree)) return new TreeCursor(tree, range, descending);
  const { lower, upper, bound } = tree;
  const [under, above] = splitRange(range, bound);
  const cursors = [
    ...(lower === undefined || under === undefined ? [] : [new TreeCursor(lower, under, descending)]),
    ...(above === undefined ? [] : [new TreeCursor(upper, above, descending)]),
  ];
  if (descending) cursors.reverse();
  return new CursorSequence(cursors.length, (i) => cursors[i] as RunCursor);
}

// Cursors in a row.

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
    // Also what it throws at once reaches the reader that comes to it.
    const moved = (async (): Promise<boolean> => cursor.next())();
    const end = (): void => memory.endAhead(blockBytes);
    moved.then(end, end);
    return { cursor, moved };
  }
}
