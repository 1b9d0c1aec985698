/**
 * Damaged and hostile bytes for every decoder: the answer is what is stored, or an error that says that the bytes are
 * not, in bounded time and memory. To repeat one case: FUZZ_SEED=… FUZZ_CASE=… and the name of the test.
 */
import { getHeapStatistics } from 'node:v8';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { maxSampleBytes, targets } from './decoders.ts';

const CASES = Number(process.env['FUZZ_CASES'] ?? 988_000);
const SEED = process.env['FUZZ_SEED'] ?? '1';
const ONLY = process.env['FUZZ_CASE'];

const weights = Object.values(targets).reduce((sum, { weight }) => sum + weight, 0);
/** A case may take up this much: some hundred times what it is given. */
const maxAllocatedBytes = 32 * 1024 * 1024;
const maxMs = 2000;

function allocatedBytes(): number {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics();
  return heap + external;
}

let total = 0;

// Nearly every case ends in an error, and most of its cost is its stack: left out, unless one case is repeated.
const stackDepth = Error.stackTraceLimit;
beforeAll(() => {
  if (ONLY === undefined) Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackDepth;
});

describe('decoders, given damaged bytes', () => {
  for (const [name, { weight, run }] of Object.entries(targets)) {
    const cases = Math.ceil((CASES * weight) / weights);
    it(name, { timeout: 60_000 + cases * 10 }, () => {
      for (let i = ONLY === undefined ? 0 : Number(ONLY); i < (ONLY === undefined ? cases : Number(ONLY) + 1); i++) {
        const before = allocatedBytes();
        const started = process.cpuUsage();
        try {
          run(new SeededRandom(`${SEED} ${name} ${i}`));
        } catch (cause) {
          throw new Error(`FUZZ_SEED=${SEED} FUZZ_CASE=${i}: ${String(cause)}`, { cause });
        }
        // Memory that was freed meanwhile is not seen; what a hostile length would ask for is far more than that.
        const grownBytes = allocatedBytes() - before;
        const { user, system } = process.cpuUsage(started);
        // Of this process: others may have the processor for as long as they like.
        const tookMs = (user + system) / 1000;
        if (grownBytes > maxAllocatedBytes || tookMs > maxMs) {
          throw new Error(`FUZZ_SEED=${SEED} FUZZ_CASE=${i}: took ${grownBytes} bytes and ${Math.round(tookMs)} ms`);
        }
        total++;
      }
    });
  }

  it.skipIf(ONLY !== undefined)('are given as many cases as they should', () => {
    expect(total).toBeGreaterThanOrEqual(CASES);
    expect(maxSampleBytes * 1000).toBeLessThan(maxAllocatedBytes);
  });
});
