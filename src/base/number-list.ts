/**
 * A list of places in memory, and other integers of 32 bits, that grows: in one typed array, so that none of them is an object
 * and ranges are copied at once. Integers they are to the runtime, too: what has once been given a float counts with floats
 * from then on, which makes reading a row a third slower.
 */
import { invariant } from './invariant.ts';

/** A small one is allocated on the heap of the runtime, which costs next to nothing. */
const firstCapacity = 8;
const mostNumber = 0xffff_ffff;

export class NumberList {
  /** The numbers up to {@link length}; replaced as the list grows. */
  values: Uint32Array;
  #length = 0;

  /** `capacity`: of how many numbers it has room before it must grow. */
  constructor(capacity: number = firstCapacity) {
    this.values = new Uint32Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** Shortens the list. */
  set length(length: number) {
    this.#length = length;
  }

  push(value: number): void {
    if (this.#length === this.values.length) this.ensure(1);
    if (value > mostNumber) fail(value);
    this.values[this.#length++] = value;
  }

  /** Appends the numbers `from` to `to` of another list, each of them more by `shift`. */
  addFrom(other: NumberList, from: number, to: number, shift: number): void {
    this.ensure(to - from);
    const { values } = this;
    const source = other.values;
    let at = this.#length;
    let most = 0;
    for (let i = from; i < to; i++) {
      const value = (source[i] as number) + shift;
      if (value > most) most = value;
      values[at++] = value;
    }
    if (most > mostNumber) fail(most);
    this.#length = at;
  }

  /** Makes room for `extra` more. */
  ensure(extra: number): void {
    const needed = this.#length + extra;
    if (needed <= this.values.length) return;
    const grown = new Uint32Array(Math.max(needed, this.values.length * 2));
    grown.set(this.values.subarray(0, this.#length));
    this.values = grown;
  }
}

function fail(value: number): never {
  invariant(false, `${value} is no place in memory`);
}
