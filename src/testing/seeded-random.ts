/**
 * Random numbers from a seed: the same ones in every run and on every machine. For tests only, since they are predictable.
 */

import type { OptionKind } from '../base/options.ts';

/** Additive constant of the seeding sequence: 2^32 divided by the golden ratio, made odd. */
const weylStep = 0x9e3779b9;

/** The values of an option that is a seed. */
export const seedKind: OptionKind = {
  allowed: 'a number or a text',
  accepts: (value) => typeof value === 'string' || typeof value === 'number',
};

/** A stream of random numbers (the "small fast counting" generator with 128 bits of state). */
export class SeededRandom {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** Different seeds give unrelated streams. */
  constructor(seed: number | string) {
    let hash = 0x811c9dc5;
    const text = String(seed);
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    this.#a = hash | 0;
    this.#b = Math.imul(hash ^ (hash >>> 16), weylStep) | 0;
    this.#c = (text.length + weylStep) | 0;
    for (let i = 0; i < 15; i++) this.#word();
  }

  #word(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Returns a number in [0, 1). */
  next(): number {
    return this.#word() / 0x1_0000_0000;
  }

  /** Returns true with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Returns a number in [low, high). */
  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** Returns an integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /** Returns one of the items. There must be at least one. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('There is nothing to pick from.');
    return items[Math.floor(this.next() * items.length)] as T;
  }

  /** Returns the items in random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const left = [...items];
    for (let i = left.length - 1; i > 0; i--) {
      const other = this.integer(0, i);
      [left[i], left[other]] = [left[other] as T, left[i] as T];
    }
    return left;
  }

  /** Returns random bytes. */
  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.#word() & 0xff);
  }

  /** Returns an independent stream: using it does not change the numbers of this one. */
  fork(): SeededRandom {
    return new SeededRandom(`${this.#word()}.${this.#word()}`);
  }
}
