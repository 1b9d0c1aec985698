/** With a small budget, the runtime looks for blocks that nobody uses any more before there is much more of them than the budget. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

async function looksWith(budgetMib: number): Promise<number> {
  const child = fileURLToPath(new URL('collection-child.ts', import.meta.url));
  const { stdout } = await run(process.execPath, ['--import', 'tsx', child, `${budgetMib}`]);
  return Number(stdout);
}

it('the runtime looks for unused blocks at each hint', { timeout: 60_000 }, async () => {
  // 400 MiB go, and a hint is given for each 16 of them. A hint that comes while the runtime looks is answered by that look.
  // Without hints Node 20 looks two to seven times. Node 24 looks as often as with them on a busy machine, so nothing is compared.
  expect(await looksWith(64)).toBeGreaterThanOrEqual(20);
});
