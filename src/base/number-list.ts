/** A list of numbers that grows: in one typed array, so that none of them is an object and ranges are copied at once. */

/** A small one is allocated on the heap of the runtime, which costs next to nothing. */
const firstCapacity = 8;

export class NumberList {
  /** The numbers up to {@link length}; replaced as the list grows. */
  values: Float64Array;
  #length = 0;

  /** `capacity`: of how many numbers it has room before it must grow. */
  constructor(capacity: number = firstCapacity) {
    this.values = new Float64Array(capacity);
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
    this.values[this.#length++] = value;
  }

  /** Appends the numbers `from` to `to` of another list, each of them more by `shift`. */
  addFrom(other: NumberList, from: number, to: number, shift: number): void {
    this.ensure(to - from);
    const { values } = this;
    const source = other.values;
    let at = this.#length;
    for (let i = from; i < to; i++) values[at++] = (source[i] as number) + shift;
    this.#length = at;
  }

  /** Makes room for `extra` more. */
  ensure(extra: number): void {
    const needed = this.#length + extra;
    if (needed <= this.values.length) return;
    const grown = new Float64Array(Math.max(needed, this.values.length * 2));
    grown.set(this.values.subarray(0, this.#length));
    this.values = grown;
  }
}
