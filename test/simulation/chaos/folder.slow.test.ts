/**
 * Four processes on one folder, under kills, stops and wrong clocks. It lasts for 20 seconds, or as long as
 * CHAOS_FOLDER_SECONDS says.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { expectNoAnomalies, runChaos } from './chaos-run.ts';

const SECONDS = Number(process.env['CHAOS_FOLDER_SECONDS'] ?? 20);

it('a database in a folder keeps all acknowledged writes under all faults of its processes', {
  timeout: SECONDS * 1000 + 400_000,
}, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-chaos-folder-'));
  try {
    const result = await runChaos({ store: { folder }, dbPrefix: 'chaos', seconds: SECONDS, seed: `${Date.now()}` });
    process.stdout.write(`${result.summary}\n`);
    expectNoAnomalies(result);
    const { faultCounts, merges, commits, history } = result;
    expect(faultCounts.kill + faultCounts.stop).toBeGreaterThan(0);
    // Far less than on a machine that has nothing else to do.
    expect(merges).toBeGreaterThan(SECONDS / 10);
    expect(commits).toBeGreaterThan(SECONDS / 3);
    expect(history.operations.length).toBeGreaterThan(2 * SECONDS);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
