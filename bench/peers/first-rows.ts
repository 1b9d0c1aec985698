/** The work that is left to the application where a database has keys and values only. */
import type { City } from './contender.ts';

/** Keeps the first rows in some order of all that it is shown, in a heap whose top is the last of them. */
export class FirstRows {
  readonly #limit: number;
  readonly #compare: (a: City, b: City) => number;
  readonly #heap: City[] = [];

  constructor(limit: number, compare: (a: City, b: City) => number) {
    this.#limit = limit;
    this.#compare = compare;
  }

  show(row: City): void {
    const heap = this.#heap;
    if (heap.length < this.#limit) {
      heap.push(row);
      if (heap.length === this.#limit) heap.sort((a, b) => this.#compare(b, a));
      return;
    }
    if (this.#compare(row, heap[0] as City) >= 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.#compare(heap[child + 1] as City, heap[child] as City) > 0) child++;
      if (this.#compare(heap[child] as City, row) <= 0) break;
      heap[at] = heap[child] as City;
      at = child;
    }
    heap[at] = row;
  }

  sorted(): City[] {
    return this.#heap.toSorted(this.#compare);
  }
}

export function bySouth(a: City, b: City): number {
  return a.lat - b.lat || a.id - b.id;
}

export function byPopulation(a: City, b: City): number {
  return a.population - b.population || a.id - b.id;
}
