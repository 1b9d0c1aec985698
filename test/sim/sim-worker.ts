/** Runs seeds one after the other, in a thread of its own: see seed-pool.ts. */
import { parentPort } from 'node:worker_threads';
import { simulate, simulateTwice } from './simulation.ts';
import type { SeedTask } from './seed-pool.ts';

parentPort?.on('message', ({ seed, options, twice }: SeedTask) => {
  void (twice === true ? simulateTwice : simulate)(seed, options).then((result) => parentPort?.postMessage(result));
});
