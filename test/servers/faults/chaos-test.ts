/** Four processes on a store, each behind a network of its own, under kills, stops, cuts and wrong clocks. */
import { expect, it } from 'vitest';
import { expectNoAnomalies, runChaos } from '../../simulation/chaos/chaos-run.ts';
import { laneFaults } from '../../simulation/chaos/conductor.ts';
import type { RemoteStore } from '../../simulation/crash/crash-store.ts';

/** Defines the test for a store. It lasts for so many seconds, and until all processes have finished. */
export function testChaos(storeName: string, seconds: number, storeUnderTest: () => RemoteStore): void {
  it(`a database on ${storeName} keeps all acknowledged writes under all faults of processes and networks`, {
    timeout: seconds * 1000 + 400_000,
  }, async () => {
    const seed = `${Date.now()}`;
    const result = await runChaos({
      store: storeUnderTest(),
      dbPrefix: `chaos-${seed}`,
      seconds,
      seed,
      leastMerges: seconds / 5,
    });
    process.stdout.write(`${result.summary}\n`);
    expectNoAnomalies(result);
    const { faultCounts, merges, commits, history } = result;
    expect(faultCounts.kill + faultCounts.stop).toBeGreaterThan(0);
    // In a short run not everything gets its turn.
    const missing = laneFaults.filter((fault) => seconds >= 120 && faultCounts[fault] === 0);
    expect(missing).toEqual([]);
    // Far less than on a machine that has nothing else to do.
    expect(merges).toBeGreaterThan(seconds / 10);
    expect(commits).toBeGreaterThan(seconds / 3);
    expect(history.operations.length).toBeGreaterThan(2 * seconds);
  });
}
