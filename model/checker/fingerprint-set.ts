/**
 * The states that were seen, as 64-bit fingerprints in an open hash table. Two states of n share a fingerprint by
 * chance with a probability of about n² / 2⁶⁵: one in a million for six million states, one in 4,000 for a hundred million.
 */
const firstCapacity = 1 << 16;
const maxLoad = 0.7;

export class FingerprintSet {
  size = 0;
  /** Pairs of words; a pair of zeroes is free. */
  #table = new Int32Array(firstCapacity * 2);
  #mask = firstCapacity - 1;

  /** Adds a state; false if it was there. */
  add(words: Int32Array): boolean {
    let low = 0x9e3779b9 | 0;
    let high = 0x7f4a7c15;
    for (let i = 0; i < words.length; i++) {
      const word = words[i] as number;
      low = Math.imul(low ^ word, 0x85ebca6b);
      low = (low << 13) | (low >>> 19);
      high = Math.imul(high ^ ((word << 16) | (word >>> 16)), 0xc2b2ae35);
      high = ((high << 17) | (high >>> 15)) + low;
    }
    low = scramble(low ^ Math.imul(high, 0x27d4eb2f));
    high = scramble(high + Math.imul(low, 0x165667b1));
    if (low === 0 && high === 0) low = 1;
    if (this.size >= (this.#mask + 1) * maxLoad) this.#grow();
    return this.#insert(low, high);
  }

  #insert(low: number, high: number): boolean {
    const table = this.#table;
    for (let at = (low ^ (high << 7)) & this.#mask; ; at = (at + 1) & this.#mask) {
      const there = table[at * 2] as number;
      const thereHigh = table[at * 2 + 1] as number;
      if (there === low && thereHigh === high) return false;
      if (there !== 0 || thereHigh !== 0) continue;
      table[at * 2] = low;
      table[at * 2 + 1] = high;
      this.size++;
      return true;
    }
  }

  #grow(): void {
    const old = this.#table;
    this.#table = new Int32Array(old.length * 2);
    this.#mask = this.#mask * 2 + 1;
    this.size = 0;
    for (let i = 0; i < old.length; i += 2) {
      const low = old[i] as number;
      const high = old[i + 1] as number;
      if (low !== 0 || high !== 0) this.#insert(low, high);
    }
  }
}

function scramble(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b | 0);
  return mixed ^ (mixed >>> 16);
}
