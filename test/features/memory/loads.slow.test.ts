/** Blocks that were passed are garbage among the young objects, which is collected often, and not among the old ones. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

it('blocks that have arrived are not held by the readers that shared their request', { timeout: 60_000 }, async () => {
  const child = fileURLToPath(new URL('loads-child.ts', import.meta.url));
  // Marking that runs while blocks come and go keeps those that it has seen, for as long as a whole collection.
  const flags = ['--expose-gc', '--no-incremental-marking', '--import', 'tsx'];
  const { stdout } = await run(process.execPath, [...flags, child]);
  // Of 400 blocks of 64 KiB, a few.
  expect(Number(stdout)).toBeLessThan(6 * 1024 * 1024);
});
