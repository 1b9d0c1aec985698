/** Two versions of an application on a store, each process behind a network of its own, from the first version to the last. */
import { expect, it } from 'vitest';
import type { RemoteStore } from '../../simulation/crash/crash-store.ts';
import { expectNoAnomalies, runRollout } from '../../simulation/rollout/rollout-run.ts';

/** Defines the test for a store. It lasts for more than so many seconds, until the old version is retired. */
export function testRollout(storeName: string, seconds: number, storeUnderTest: () => RemoteStore): void {
  it(`two versions on ${storeName} lose nothing of each other, while their processes are killed and the table migrates`, {
    timeout: seconds * 1000 + 400_000,
  }, async () => {
    const seed = `${Date.now()}`;
    const timing = { seconds, intervalMs: 400, pauseMs: 100, rowsPerSecond: 60 };
    const result = await runRollout({ store: storeUnderTest(), dbPrefix: `rollout-${seed}`, seed, ...timing });
    process.stdout.write(`${result.summary}\n`);
    expectNoAnomalies(result);
    expect(result.kills).toBeGreaterThan(4);
    for (const version of [1, 2] as const) {
      const ok = result.operations.filter((operation) => operation.version === version && operation.outcome === 'ok');
      expect(ok.length).toBeGreaterThan(seconds / 2);
    }
    expect(new Set(result.states.map(({ state }) => state))).toContain('switched');
  });
}
