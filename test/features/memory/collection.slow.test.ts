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

it('the runtime looks for unused blocks more often than by itself', { timeout: 60_000 }, async () => {
  const byItself = await looksWith(1024);
  const hinted = await looksWith(64);
  // 400 MiB went, and a hint was given for each 16 of them. By itself it looks once in 64 or more, and some times at the start.
  expect(hinted).toBeGreaterThan(byItself + 8);
});
