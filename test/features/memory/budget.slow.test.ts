/** A table twenty times as large as the budget is scanned, sorted and read row by row within it. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { newFolder } from '../values/driver-under-test.ts';

const run = promisify(execFile);
const budgetBytes = 4 * 1024 * 1024;
/** Of some 4 KB each: 20 times the budget. */
const rows = 21_000;

interface Report {
  readonly readBytes: number;
  readonly grownBytes: number;
  readonly messages: readonly string[];
  readonly memory: Readonly<Record<string, number>>;
}

it('resident memory grows by no more than 1.5 times the budget', { timeout: 300_000 }, async () => {
  const child = fileURLToPath(new URL('budget-child.ts', import.meta.url));
  const folder = newFolder();
  const start = async (mode: string): Promise<string> => {
    // For the collection of garbage before memory is measured.
    const flags = ['--expose-gc', '--import', 'tsx'];
    const { stdout } = await run(process.execPath, [...flags, child, mode, folder, `${budgetBytes}`, `${rows}`]);
    return stdout;
  };
  await start('load');
  const { readBytes, grownBytes, messages, memory } = JSON.parse(await start('read')) as Report;
  expect(readBytes).toBeLessThanOrEqual(budgetBytes * 1.5);
  expect(messages).toHaveLength(2);
  for (const message of messages) expect(message).toContain('maxMemoryBytes (4194304)');
  // What is refused is refused before it has taken what it may not.
  expect(grownBytes).toBeLessThanOrEqual(budgetBytes * 1.5);
  expect(memory).toMatchObject({ maxBytes: budgetBytes, scratchBytes: 0 });
  expect(memory['innerBytes']).toBeGreaterThan(0);
});
