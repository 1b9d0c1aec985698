/**
 * Names of the objects that an instance wrote since it last saw Block 0. If Block 0 then turns out to be gone, these are what
 * it made after the database was deleted, and nobody else.
 */

/** Names that are remembered. What an instance writes beyond that is not known to be its own. */
const mostKeys = 10_000;

export class OwnWrites {
  /** By name, the number of the write. In ascending order. */
  readonly #keys = new Map<string, number>();
  #count = 0;

  /** A write is about to be made, or was made just now. */
  note(key: string): void {
    this.#count++;
    this.#keys.delete(key);
    if (this.#keys.size < mostKeys) this.#keys.set(key, this.#count);
  }

  /** What to tell {@link seen} about a look that begins now. */
  get mark(): number {
    return this.#count;
  }

  /** Block 0 was there in a look that began when the mark was taken: what was written before that was no leftover. */
  seen(mark: number): void {
    for (const [key, number] of this.#keys) {
      if (number > mark) return;
      this.#keys.delete(key);
    }
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  get keys(): readonly string[] {
    return [...this.#keys.keys()];
  }
}
