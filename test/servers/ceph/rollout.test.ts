/**
 * Two versions of an application on Ceph, each process behind a network of its own, from the first version to the last. About a
 * minute, or more with ROLLOUT_SECONDS.
 */
import { expect, it } from 'vitest';
import { expectNoAnomalies, runRollout } from '../../simulation/rollout/rollout-run.ts';
import { bucketUnderTest } from './bucket.ts';

const SECONDS = Number(process.env['ROLLOUT_SECONDS'] ?? 30);

it('two versions on Ceph lose nothing of each other, while their processes are killed and the table migrates', {
  timeout: SECONDS * 1000 + 400_000,
}, async () => {
  const seed = `${Date.now()}`;
  const timing = { seconds: SECONDS, intervalMs: 400, pauseMs: 100, rowsPerSecond: 60 };
  const result = await runRollout({ store: bucketUnderTest(), dbPrefix: `rollout-${seed}`, seed, ...timing });
  process.stdout.write(`${result.summary}\n`);
  expectNoAnomalies(result);
  expect(result.kills).toBeGreaterThan(4);
  for (const version of [1, 2] as const) {
    const ok = result.operations.filter((operation) => operation.version === version && operation.outcome === 'ok');
    expect(ok.length).toBeGreaterThan(SECONDS / 2);
  }
  expect(new Set(result.states.map(({ state }) => state))).toContain('switched');
});
