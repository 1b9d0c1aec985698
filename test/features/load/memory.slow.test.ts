/** The memory of a load. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);
const mebibyte = 1024 * 1024;

interface Loaded {
  readonly found: number;
  /** The most that the thread which gives the rows took beyond what it had before, without garbage. */
  readonly grownBytes: number;
  /** The most that the process took from the system until the load was over: with what other threads took, and with garbage. */
  readonly processBytes: number;
}

async function loaded(count: number, mebibytes = 32, mode: 'plain' | 'thread' | 'merges' = 'plain'): Promise<Loaded> {
  const folder = await mkdtemp(join(tmpdir(), 'store-db-load-'));
  try {
    const child = fileURLToPath(new URL('memory-child.ts', import.meta.url));
    // V8 makes the room for new objects larger the longer it runs, up to some 50 MB in each thread.
    const flags = ['--expose-gc', '--max-semi-space-size=4', '--import', 'tsx'];
    const values = [folder, String(count), String(mebibytes), mode];
    const { stdout } = await run(process.execPath, [...flags, child, ...values]);
    return JSON.parse(stdout) as Loaded;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

it('takes no more memory for more rows', { timeout: 300_000 }, async () => {
  const few = await loaded(100_000);
  const many = await loaded(600_000);
  expect([few.found, many.found]).toEqual([100_000, 600_000]);
  // 140 MB of rows, and no more than the first load took, and some.
  expect(many.grownBytes).toBeLessThan(few.grownBytes + 24 * mebibyte);
});

it('takes no more memory for more runs, of which it merges some at a time', { timeout: 300_000 }, async () => {
  const few = await loaded(60_000, 4, 'merges');
  const many = await loaded(600_000, 4, 'merges');
  expect([few.found, many.found]).toEqual([60_000, 600_000]);
  // Leaves of all runs, of the rows and of the index, would take 90 MB more; some at a time take 9.
  expect(many.grownBytes).toBeLessThan(few.grownBytes + 24 * mebibyte);
});

it('takes no more memory for more rows with a thread, in both threads', { timeout: 300_000 }, async () => {
  const few = await loaded(100_000, 32, 'thread');
  const many = await loaded(600_000, 32, 'thread');
  expect([few.found, many.found]).toEqual([100_000, 600_000]);
  expect(many.grownBytes).toBeLessThan(few.grownBytes + 24 * mebibyte);
  // The rows of the second load beyond those of the first are some 120 MB.
  expect(many.processBytes).toBeLessThan(few.processBytes + 100 * mebibyte);
});
