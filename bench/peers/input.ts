/** The random choices of a measurement, made before it begins, and the same for all contenders. */

/** A small seeded generator. */
export function seeded(seed: number): () => number {
  let state = Math.imul(seed + 1, 0x9e3779b1);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

/** So many choices are made; then they come again. */
const choices = 1 << 18;

/** Numbers below `count`, small ones more often: the distribution of YCSB, with its constant of 0.99. */
function zipfian(count: number, random: () => number): () => number {
  const theta = 0.99;
  let zeta = 0;
  for (let i = 1; i <= count; i++) zeta += 1 / i ** theta;
  const alpha = 1 / (1 - theta);
  const eta = (1 - (2 / count) ** (1 - theta)) / (1 - (1 + 0.5 ** theta) / zeta);
  return () => {
    const u = random();
    if (u * zeta < 1) return 0;
    if (u * zeta < 1 + 0.5 ** theta) return 1;
    return Math.min(count - 1, Math.floor(count * (eta * u - eta + 1) ** alpha));
  };
}

export class Input {
  readonly rows: number;
  readonly #uniform = new Uint32Array(choices);
  readonly #zipfian = new Uint32Array(choices);
  readonly #fractions = new Float64Array(choices);

  constructor(rows: number, seed: number) {
    this.rows = rows;
    const random = seeded(seed);
    const rank = zipfian(rows, random);
    for (let i = 0; i < choices; i++) {
      this.#uniform[i] = Math.floor(random() * rows);
      // What is asked for often is spread over all keys.
      this.#zipfian[i] = (rank() * 7_368_787 + 12_345) % rows;
      this.#fractions[i] = random();
    }
  }

  /** A key, all of them as likely as each other. */
  key(i: number): number {
    return this.#uniform[i & (choices - 1)] as number;
  }

  /** A key, some of them much more often than others. */
  popularKey(i: number): number {
    return this.#zipfian[i & (choices - 1)] as number;
  }

  /** From 0 to 1. */
  fraction(i: number): number {
    return this.#fractions[i & (choices - 1)] as number;
  }
}
