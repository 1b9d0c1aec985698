/**
 * Four processes on Ceph, each behind a network of its own, under kills, stops, cuts and wrong clocks. It lasts for five
 * minutes, or as long as CHAOS_SECONDS says. For hours there is `npm run chaos`.
 */
import { expect, it } from 'vitest';
import { expectNoAnomalies, runChaos } from '../../simulation/chaos/chaos-run.ts';
import { laneFaults } from '../../simulation/chaos/conductor.ts';
import { bucketUnderTest } from './bucket.ts';

const SECONDS = Number(process.env['CHAOS_SECONDS'] ?? 300);

it('a database on Ceph keeps all acknowledged writes under all faults of processes and networks', {
  timeout: SECONDS * 1000 + 400_000,
}, async () => {
  const seed = `${Date.now()}`;
  const result = await runChaos({ store: bucketUnderTest(), dbPrefix: `chaos-${seed}`, seconds: SECONDS, seed });
  process.stdout.write(`${result.summary}\n`);
  expectNoAnomalies(result);
  const { faultCounts, merges, commits, history } = result;
  // In a short run not everything gets its turn.
  for (const fault of SECONDS < 120 ? (['kill', 'stop'] as const) : laneFaults)
    expect(faultCounts[fault], fault).toBeGreaterThan(0);
  // Far less than on a machine that has nothing else to do.
  expect(merges).toBeGreaterThan(SECONDS / 10);
  expect(commits).toBeGreaterThan(SECONDS / 3);
  expect(history.operations.length).toBeGreaterThan(2 * SECONDS);
});
