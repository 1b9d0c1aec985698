/**
 * A cursor over layers that lie on each other: of entries with equal keys the newest counts, and entries marked as
 * deleted hide those below and are not shown. Where only the bottom has entries, whole runs of it pass through.
 */
import { isPromise } from '../base/brands.ts';
import type { Node } from '../format/node.ts';
import { rowDeletedFlag, rowMarks } from '../format/row-layout.ts';
import type { RunCursor } from '../tree/cursor.ts';

/** Whether the row of entry `i` only says that the row is gone. */
export function isDeleted(node: Node, i: number): boolean {
  return ((node.rows[node.rowBase(i)] as number) & rowDeletedFlag) !== 0;
}

/** Whether an entry of a commit is the deletion of a row that had expired. */
export function isExpiry(node: Node, i: number): boolean {
  return ((node.rows[node.rowBase(i)] as number) & rowMarks) === rowMarks;
}

const noKey = new Uint8Array(0);

/** One of the merged cursors, and the rest of its present run. */
class Input {
  readonly cursor: RunCursor;
  /** Whether its rows can be marked as deleted. */
  readonly marks: boolean;
  node!: Node;
  from = 0;
  to = 0;
  done = false;
  /** The key that was asked for last, and whose it is. */
  #key: Uint8Array = noKey;
  #keyNode: Node | undefined;
  #keyAt = 0;

  constructor(cursor: RunCursor, marks: boolean) {
    this.cursor = cursor;
    this.marks = marks;
  }

  /** The key of entry `i` of the run, which is asked for as long as the entry is next. */
  key(i: number): Uint8Array {
    const { node } = this;
    if (i !== this.#keyAt || node !== this.#keyNode) {
      this.#key = node.key(i);
      this.#keyNode = node;
      this.#keyAt = i;
    }
    return this.#key;
  }

  /** Moves on if the run is used up. */
  refill(): void | Promise<void> {
    if (this.done || this.from < this.to) return undefined;
    const moved = this.cursor.next();
    if (isPromise(moved)) return moved.then((more) => this.#take(more));
    this.#take(moved);
    return undefined;
  }

  #take(more: boolean): void {
    if (more) {
      this.node = this.cursor.node;
      this.from = this.cursor.from;
      this.to = this.cursor.to;
    } else this.done = true;
  }
}

export class MergedCursor implements RunCursor {
  readonly #inputs: Input[];
  readonly #descending: boolean;
  readonly #showDeleted: boolean;
  node!: Node;
  from = 0;
  to = 0;

  /** `layers` from the newest to the oldest, then the bottom, if there is one. `showDeleted`: for merging, not reading. */
  constructor(layers: readonly RunCursor[], bottom: RunCursor | undefined, descending: boolean, showDeleted = false) {
    this.#inputs = layers.map((layer) => new Input(layer, true));
    if (bottom !== undefined) this.#inputs.push(new Input(bottom, false));
    this.#descending = descending;
    this.#showDeleted = showDeleted;
  }

  expect(entries: number): void {
    for (const { cursor } of this.#inputs) cursor.expect?.(entries);
  }

  next(): boolean | Promise<boolean> {
    for (;;) {
      for (const input of this.#inputs) {
        const refilled = input.refill();
        if (refilled !== undefined) return refilled.then(() => this.next());
      }
      const winner = this.#pickWinner();
      if (winner === undefined) return false;
      if (this.#takeRun(winner)) return true;
    }
  }

  #head(input: Input): number {
    return this.#descending ? input.to - 1 : input.from;
  }

  #step(input: Input): void {
    if (this.#descending) input.to--;
    else input.from++;
  }

  /** Compares the next entries of two inputs in the direction of the cursor. */
  #compare(a: Input, b: Input): number {
    const key = b.key(this.#head(b));
    const order = a.node.compareKey(this.#head(a), key, key.length);
    return this.#descending ? -order : order;
  }

  /** The input whose entry comes first, the newest of equals. */
  #pickWinner(): Input | undefined {
    let winner: Input | undefined;
    for (const input of this.#inputs) {
      if (input.done) continue;
      if (winner === undefined || this.#compare(input, winner) < 0) winner = input;
    }
    return winner;
  }

  /** Takes as long a run from the winner as no other input interrupts. False if all of it is hidden. */
  #takeRun(winner: Input): boolean {
    let from = winner.from;
    let to = winner.to;
    for (const other of this.#inputs) {
      if (other === winner || other.done) continue;
      if (this.#compare(other, winner) === 0) {
        this.#step(other);
        // The other's next entry is not known yet: take this one alone.
        if (this.#descending) from = winner.to - 1;
        else to = winner.from + 1;
        continue;
      }
      const key = other.key(this.#head(other));
      const bound = winner.node.lowerBound(key);
      if (!this.#descending) to = Math.min(to, bound);
      else {
        const equal = bound < winner.node.count && winner.node.compareKey(bound, key, key.length) === 0;
        from = Math.max(from, equal ? bound + 1 : bound);
      }
    }
    if (winner.marks && !this.#showDeleted) {
      if (isDeleted(winner.node, this.#descending ? to - 1 : from)) {
        this.#step(winner);
        return false;
      }
      // Marks are few: the run ends before the next one.
      if (this.#descending) {
        let start = to - 1;
        while (start > from && !isDeleted(winner.node, start - 1)) start--;
        from = start;
      } else {
        let end = from + 1;
        while (end < to && !isDeleted(winner.node, end)) end++;
        to = end;
      }
    }
    this.node = winner.node;
    this.from = from;
    this.to = to;
    if (this.#descending) winner.to = from;
    else winner.from = to;
    return true;
  }
}
