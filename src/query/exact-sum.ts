/**
 * Sums of numbers that do not depend on the order in which they are added: plans differ in that, and answers must not.
 * A sum is held as parts whose bits do not overlap, so that nothing is lost on the way, and is rounded once, at the end.
 */

/** From here on numbers are held apart, scaled down: their sum must not overflow on the way. */
const huge = 2 ** 960;
const scale = 2 ** 100;

/** Adds a number to parts that do not overlap, ascending by size. */
function add(parts: number[], value: number): void {
  let x = value;
  let kept = 0;
  for (let i = 0; i < parts.length; i++) {
    let y = parts[i] as number;
    if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
    const high = x + y;
    const low = y - (high - x);
    if (low !== 0) parts[kept++] = low;
    x = high;
  }
  parts.length = kept;
  parts.push(x);
}

/** The number that is nearest to the sum of the parts. */
function rounded(parts: readonly number[]): number {
  let i = parts.length - 1;
  let high = parts[i] ?? 0;
  let low = 0;
  while (i > 0 && low === 0) {
    const x = high;
    const y = parts[--i] as number;
    high = x + y;
    low = y - (high - x);
  }
  // Halfway between two numbers: what is left of the parts decides.
  const next = i > 0 ? (parts[i - 1] as number) : 0;
  if ((low < 0 && next < 0) || (low > 0 && next > 0)) {
    const twice = low * 2;
    const other = high + twice;
    if (twice === other - high) high = other;
  }
  return high;
}

export class ExactSum {
  readonly #parts: number[] = [];
  readonly #hugeParts: number[] = [];
  /** The sum of the infinities among them. */
  #infinite = 0;

  add(value: number): void {
    if (!Number.isFinite(value)) this.#infinite += value;
    else if (Math.abs(value) >= huge) add(this.#hugeParts, value / scale);
    else add(this.#parts, value);
    // Many numbers that are not huge can have a sum that is.
    const last = this.#parts[this.#parts.length - 1];
    if (last !== undefined && Math.abs(last) >= huge) {
      this.#parts.pop();
      add(this.#hugeParts, last / scale);
    }
  }

  /** The sum, or the sum divided by how many numbers there were: NaN if there were infinities of both signs. */
  value(count = 1): number {
    if (this.#infinite !== 0) return this.#infinite;
    if (this.#hugeParts.length === 0) return rounded(this.#parts) / count;
    const all = [...this.#hugeParts];
    // What is too small to be scaled down can only decide between two numbers, and for that its sign is enough.
    for (const part of this.#parts) add(all, part / scale || Math.sign(part) * Number.MIN_VALUE);
    const total = rounded(all);
    if (Math.abs(total) < huge / scale) {
      // Those that are huge come to nothing, or nearly: nothing overflows, and the others are not to be scaled down.
      const plain = [...this.#parts];
      for (const part of this.#hugeParts) add(plain, part * scale);
      return rounded(plain) / count;
    }
    // Divided before it is scaled up: a mean may be a number where the sum is none.
    return (total / count) * scale;
  }
}
