/** Two versions of an application on one folder, from the first to the last: some 15 seconds, more with ROLLOUT_SECONDS. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { expectNoAnomalies, runRollout } from './rollout-run.ts';

const SECONDS = Number(process.env['ROLLOUT_SECONDS'] ?? 8);

it('two versions on one folder lose nothing of each other, while their processes are killed and the table migrates', {
  timeout: SECONDS * 1000 + 300_000,
}, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-rollout-folder-'));
  try {
    const timing = { seconds: SECONDS, intervalMs: 200, pauseMs: 60, rowsPerSecond: 100 };
    const result = await runRollout({ store: { folder }, dbPrefix: 'rollout', seed: `${Date.now()}`, ...timing });
    process.stdout.write(`${result.summary}\n`);
    expectNoAnomalies(result);
    expect(result.kills).toBeGreaterThan(2);
    for (const version of [1, 2] as const) {
      const ok = result.operations.filter((operation) => operation.version === version && operation.outcome === 'ok');
      expect(ok.length).toBeGreaterThan(SECONDS);
    }
    expect(new Set(result.states.map(({ state }) => state))).toContain('switched');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
