/** The entries of several trees in the order of their keys, as changes that make one tree of them. */
import { isPromise } from '../base/brands.ts';
import { compareRanges } from '../base/bytes.ts';
import { BlockKind } from '../format/block.ts';
import type { Node } from '../format/node.ts';
import { readAll } from './cursor.ts';
import type { TreeCursor } from './cursor.ts';
import type { Tree } from './tree.ts';
import type { ChangeStream, RowRun } from './write.ts';

/** Fewer entries are added one by one. */
const shortestRun = 4;

/** The next entry of one tree. */
class Head {
  readonly #cursor: TreeCursor;
  node!: Node;
  at = 0;
  to = 0;
  /** The key of the entry is the first `keyEnd` bytes. */
  key = new Uint8Array(64);
  keyEnd = 0;

  constructor(tree: Tree) {
    this.#cursor = readAll(tree);
  }

  /** Moves to the entries of the next leaf. False at the end. */
  next(): boolean | Promise<boolean> {
    const moved = this.#cursor.next();
    return isPromise(moved) ? moved.then((more) => this.#enter(more)) : this.#enter(moved);
  }

  #enter(more: boolean): boolean {
    if (!more) return false;
    this.node = this.#cursor.node;
    this.at = this.#cursor.from;
    this.to = this.#cursor.to;
    this.read();
    return true;
  }

  /** Reads the key of the entry. */
  read(): void {
    this.keyEnd = this.node.keyLength(this.at);
    if (this.key.length < this.keyEnd) this.key = new Uint8Array(this.keyEnd * 2);
    this.node.copyKey(this.at, this.key, 0);
  }

  compare(other: Head): number {
    return compareRanges(this.key, 0, this.keyEnd, other.key, 0, other.keyEnd);
  }

  /** Whether it may have keys from `from` to `to`, inclusive: of later leaves, that is not known. */
  mayHave(from: Uint8Array, to: Uint8Array): boolean {
    const at = this.node.boundFrom(this.at, from, 0, from.length);
    return at === this.to || this.node.compareKey(at, to, to.length) <= 0;
  }

  /** The place behind the entries of the leaf that are below the next entry of another tree; the present entry is. */
  endBelow({ key, keyEnd }: Head): number {
    const next = this.at + 1;
    // In rows that came in no order, the next one mostly is in another tree.
    if (next >= this.to || this.node.compareKey(next, key, keyEnd) >= 0) return next;
    return Math.min(this.to, this.node.boundFrom(next + 1, key, 0, keyEnd));
  }
}

export class TreeEntries implements ChangeStream {
  /** The trees that have entries left, by their next keys. */
  readonly #heads: Head[] = [];
  readonly #refused: (key: Uint8Array) => Error;
  /** The first tree whose next entry has not been compared with those of the others. */
  #head!: Head;
  /** The place behind the entries of the leaf that come before those of all other trees. */
  #end = 0;
  done = false;
  readonly keyStart = 0;
  source: Node | undefined;
  base = 0;
  readonly remove = false;
  words?: number;

  private constructor(refused: (key: Uint8Array) => Error) {
    this.#refused = refused;
  }

  /** `refused`: makes the error for a key that two trees have, which is thrown when the entries get there. */
  static async of(trees: readonly Tree[], refused: (key: Uint8Array) => Error): Promise<TreeEntries> {
    const entries = new TreeEntries(refused);
    for (const tree of trees) {
      const head = new Head(tree);
      if (await head.next()) entries.#insert(head);
    }
    entries.#begin();
    return entries;
  }

  get key(): Uint8Array {
    return this.#head.key;
  }

  get keyEnd(): number {
    return this.#head.keyEnd;
  }

  /** Puts a tree in its place among the others. */
  #insert(head: Head): void {
    const heads = this.#heads;
    let low = 0;
    let high = heads.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = head.compare(heads[middle] as Head);
      if (order === 0) throw this.#refused(head.key.slice(0, head.keyEnd));
      if (order > 0) low = middle + 1;
      else high = middle;
    }
    heads.push(head);
    for (let i = heads.length - 1; i > low; i--) heads[i] = heads[i - 1] as Head;
    heads[low] = head;
  }

  /** Goes on with the tree whose entry comes first. */
  #begin(): void {
    const [head, second] = this.#heads;
    this.done = head === undefined;
    if (head === undefined) return;
    this.#head = head;
    this.#end = second === undefined ? head.to : head.endBelow(second);
    this.#take();
  }

  #take(): void {
    const { node, at } = this.#head;
    if (node.kind !== BlockKind.table) return;
    this.source = node;
    this.base = node.rowBase(at);
  }

  advance(): void | Promise<void> {
    const head = this.#head;
    if (++head.at < this.#end) {
      head.read();
      this.#take();
      return undefined;
    }
    const heads = this.#heads;
    for (let i = 1; i < heads.length; i++) heads[i - 1] = heads[i] as Head;
    heads.pop();
    if (head.at < head.to) head.read();
    else {
      const moved = head.next();
      if (isPromise(moved)) return moved.then((more) => this.#goOn(head, more));
      return this.#goOn(head, moved);
    }
    return this.#goOn(head, true);
  }

  #goOn(head: Head, more: boolean): void {
    if (more) this.#insert(head);
    this.#begin();
  }

  mayChange(from: Uint8Array, to: Uint8Array): boolean {
    return this.#heads.some((head) => head.mayHave(from, to));
  }

  run(limit: Uint8Array | undefined): RowRun | undefined {
    const { node, at } = this.#head;
    const end = limit === undefined ? this.#end : Math.min(this.#end, node.boundFrom(at, limit, 0, limit.length));
    return end - at < shortestRun ? undefined : { node, from: at, to: end };
  }

  advanceRun(count: number): void | Promise<void> {
    this.#head.at += count - 1;
    return this.advance();
  }
}
