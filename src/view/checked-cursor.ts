/** A cursor over rows of which some could not be made: it ends with the error of the first of them that would be shown. */
import { isPromise } from '../base/brands.ts';
import type { Node } from '../format/node.ts';
import type { RunCursor } from '../tree/cursor.ts';
import { brokenIn } from '../tree/partial-node.ts';

export class CheckedCursor implements RunCursor {
  readonly #cursor: RunCursor;

  constructor(cursor: RunCursor) {
    this.#cursor = cursor;
  }

  get node(): Node {
    return this.#cursor.node;
  }

  get from(): number {
    return this.#cursor.from;
  }

  get to(): number {
    return this.#cursor.to;
  }

  expect(entries: number): void {
    this.#cursor.expect?.(entries);
  }

  next(): boolean | Promise<boolean> {
    const moved = this.#cursor.next();
    return isPromise(moved) ? moved.then((more) => this.#checked(more)) : this.#checked(moved);
  }

  #checked(more: boolean): boolean {
    if (!more) return false;
    for (const [at, error] of brokenIn(this.node) ?? []) if (at >= this.from && at < this.to) throw error;
    return true;
  }
}
