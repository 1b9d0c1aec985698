/** What a query works with beside blocks, as it is counted while the query runs: rows that it collects, and their keys. */

/** The memory that queries read with. */
export interface ReadMemory {
  /** Bytes of blocks that one reader may have ahead of what it works on, or hold on to. */
  readonly aheadBytes: number;
  /** Size of a block, as an estimate. */
  readonly blockBytes: number;
  /** Says that a block is read ahead. False if as much is read ahead as may be: then it should not be. */
  beginAhead(bytes: number): boolean;
  /** It was read. */
  endAhead(bytes: number): void;
  /** Counts `bytes` more, or fewer. Throws `MemoryBudgetError` where there is no room for them. */
  take(bytes: number): void;
}

/** Memory of those who need no bound: tests, and readers that hold nothing. */
export const unboundedMemory: ReadMemory = {
  aheadBytes: 16 * 1024 * 1024,
  blockBytes: 65_536,
  beginAhead: () => true,
  endAhead: () => undefined,
  take: () => undefined,
};

/** Bytes that are asked of the pool at once. */
const stepBytes = 64 * 1024;

/** What one query has taken. */
export class Scratch {
  readonly #memory: ReadMemory;
  #used = 0;
  #taken = 0;

  constructor(memory: ReadMemory) {
    this.#memory = memory;
  }

  /** Counts bytes. Throws `MemoryBudgetError` if that is more than there is room for. */
  add(bytes: number): void {
    this.#used += bytes;
    if (this.#used <= this.#taken) return;
    // Estimates may be fractions, of which sums do not cancel out.
    const more = Math.ceil(Math.max(this.#used - this.#taken, Math.min(stepBytes, this.#used)));
    this.#memory.take(more);
    this.#taken += more;
  }

  /** Gives everything back. */
  release(): void {
    if (this.#taken > 0) this.#memory.take(-this.#taken);
    this.#taken = 0;
    this.#used = 0;
  }
}
