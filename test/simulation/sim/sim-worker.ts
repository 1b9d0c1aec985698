/** Runs seeds one after the other, in a thread of its own: see seed-pool.ts. */
import { parentPort } from 'node:worker_threads';
import { simulate, simulateTwice } from './simulation.ts';
import type { SeedTask } from './seed-pool.ts';

async function run({ seed, options, twice }: SeedTask): Promise<void> {
  const result = await (twice === true ? simulateTwice : simulate)(seed, options);
  // Not a window's: there is no origin to aim at.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  parentPort?.postMessage(result);
}

parentPort?.on('message', (task: SeedTask) => void run(task));
