/** A blob of 1 GiB goes through in little memory, in both directions. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { newFolder } from '../values/open-database.ts';

const run = promisify(execFile);
const gibibyte = 1024 ** 3;

it('1 GiB is streamed into a folder and back in less than 100 MB', { timeout: 120_000 }, async () => {
  const child = fileURLToPath(new URL('gibibyte-child.ts', import.meta.url));
  const { stdout } = await run(process.execPath, ['--import', 'tsx', child, newFolder(), String(gibibyte)]);
  const { written, read, readBytes, grownBytes } = JSON.parse(stdout) as Record<string, number>;
  expect(readBytes).toBe(gibibyte);
  expect(read).toBe(written);
  expect(grownBytes).toBeLessThan(100_000_000);
});
