/** The objects that an instance has written lately, by name. */

/** Most names that are remembered. Further writes are not known to be of this instance. */
const maxKeys = 10_000;

/**
 * Names of the objects that an instance wrote since it last saw Block 0. If Block 0 turns out to be gone, the instance itself
 * wrote these objects after the database was deleted.
 */
export class OwnWrites {
  /** The number of each write by its name, in ascending order. */
  readonly #keys = new Map<string, number>();
  #count = 0;

  /** Notes a write, before it is made and again after it succeeded. */
  note(key: string): void {
    this.#count++;
    this.#keys.delete(key);
    if (this.#keys.size < maxKeys) this.#keys.set(key, this.#count);
  }

  /** The mark to pass to {@link seen} for a read of Block 0 that begins now. */
  get mark(): number {
    return this.#count;
  }

  /**
   * Notes that Block 0 existed in a read that began when the mark was taken: objects written before the mark are not leftovers.
   */
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
