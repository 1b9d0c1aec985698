/** Cursors in a row. */
import type { Node } from '../format/node.ts';
import type { RunCursor } from './cursor.ts';

/** Several cursors, one after the other; each is made when its turn comes. */
export class CursorSequence implements RunCursor {
  readonly #count: number;
  readonly #make: (i: number) => RunCursor;
  #at = -1;
  #expected = 0;
  #current: RunCursor | undefined;

  constructor(count: number, make: (i: number) => RunCursor) {
    this.#count = count;
    this.#make = make;
    this.#step();
  }

  #step(): void {
    this.#at++;
    this.#current = this.#at < this.#count ? this.#make(this.#at) : undefined;
    this.#current?.expect?.(this.#expected);
  }

  expect(entries: number): void {
    this.#expected = entries;
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
      const moved = cursor.next();
      if (moved instanceof Promise) return moved.then((more) => more || this.#nextCursor());
      if (moved) return true;
      this.#step();
    }
    return false;
  }

  #nextCursor(): boolean | Promise<boolean> {
    this.#step();
    return this.next();
  }
}
