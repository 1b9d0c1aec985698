/** What the entries of an index come to, in whatever order they are met: so two lots are compared without keeping either. */

const seeds = [0x811c9dc5, 0x2545f491, 0x6a09e667] as const;
const multipliers = [0x01000193, 0x9e3779b1, 0x85ebca77] as const;

function stirred(hash: number): number {
  let stirring = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  stirring = Math.imul(stirring ^ (stirring >>> 13), 0xc2b2ae35);
  return (stirring ^ (stirring >>> 16)) | 0;
}

/** Lots that differ by accident have the same digest once in 2^96. It is no defence against those who look for such lots. */
export class EntryDigest {
  count = 0;
  /** Sums of three hashes of each entry. */
  #a = 0;
  #b = 0;
  #c = 0;

  add(entry: Uint8Array, length: number = entry.length): void {
    let a: number = seeds[0];
    let b: number = seeds[1];
    let c: number = seeds[2];
    for (let i = 0; i < length; i++) {
      const byte = entry[i] as number;
      a = Math.imul(a ^ byte, multipliers[0]);
      b = Math.imul((b ^ byte) + (b >>> 15), multipliers[1]);
      c = Math.imul((c ^ byte) + (c >>> 13), multipliers[2]);
    }
    this.count++;
    this.#a = (this.#a + stirred(a)) | 0;
    this.#b = (this.#b + stirred(b)) | 0;
    this.#c = (this.#c + stirred(c)) | 0;
  }

  isSame(other: EntryDigest): boolean {
    return this.count === other.count && this.#a === other.#a && this.#b === other.#b && this.#c === other.#c;
  }
}
