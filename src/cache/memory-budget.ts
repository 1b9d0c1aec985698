/** A budget of memory as users make it, to be given to several instances. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/describe-value.ts';
import { defaultBlockBytes } from './block-queues.ts';
import { SharedMemory } from './memory-shares.ts';

/** How a budget that instances share is used at the moment: by all of them together. */
export interface SharedMemoryStats {
  /** The budget. */
  readonly maxBytes: number;
  /** Running instances that draw from it. */
  readonly instances: number;
  /** Bytes of cached leaves: rows, and entries of indexes. */
  readonly leafBytes: number;
  /** Bytes of cached inner nodes. */
  readonly innerBytes: number;
  /** Bytes of commits that are shown and not merged yet. */
  readonly committedBytes: number;
  /** Bytes that queries under way have collected. */
  readonly scratchBytes: number;
  /** Bytes that cached blocks may take beside those. */
  readonly cacheLimitBytes: number;
}

/**
 * By this a budget is known, whichever copy of the package it is of: a program may have two, one as ES modules and one as
 * CommonJS. The number changes whenever what stands behind it does.
 */
const brand: unique symbol = Symbol.for('store-db/memory-budget/1');

const leastBytes = 1024 * 1024;

/**
 * Memory that several instances share: given to each of them as the option `memory`, it bounds what they take together. Blocks
 * that were not used for the longest time go first, of whichever instance they are, so that idle databases make room for
 * those in use. What an instance takes it gives back with `db.stop()`.
 */
export class MemoryBudget {
  /** The budget, in bytes. */
  readonly maxBytes: number;
  /** @internal */
  readonly [brand]: SharedMemory;

  /** `maxBytes`: at least 1 MiB; 256 MiB do for thousands of databases. Throws `InvalidOptionError`. */
  constructor(maxBytes: number) {
    if (!Number.isSafeInteger(maxBytes) || maxBytes < leastBytes) {
      throw new InvalidOptionError(
        'maxBytes',
        `new MemoryBudget() was given ${describeValue(maxBytes)}; it must be a number of bytes, an integer of at least ` +
          `${leastBytes} (1 MiB), such as 256 * 1024 * 1024.`,
      );
    }
    this.maxBytes = maxBytes;
    this[brand] = new SharedMemory(maxBytes, defaultBlockBytes);
  }

  /** How it is used at the moment. `db.stats().memory` tells the part of one instance. */
  stats(): SharedMemoryStats {
    return budgetStats(this[brand]);
  }
}

/** What stands behind a budget; undefined for whatever is none. */
export function sharedMemoryOf(value: unknown): SharedMemory | undefined {
  return typeof value === 'object' && value !== null ? (value as Partial<MemoryBudget>)[brand] : undefined;
}

export function budgetStats(memory: SharedMemory): SharedMemoryStats {
  const { leafBytes, innerBytes } = memory.queues;
  const { maxBytes, count: instances, committedBytes, scratchBytes, cacheLimitBytes } = memory;
  return { maxBytes, instances, leafBytes, innerBytes, committedBytes, scratchBytes, cacheLimitBytes };
}
