/** What the killed processes and their parent agree on. */
import type { StoreDbOptions } from '../../src/options.ts';
import type { WorkloadOptions } from './database-workload.ts';

export const workload: WorkloadOptions = { seed: 1, rows: 150, batchSize: 10 };

/** Small blocks and the shortest interval: a merge is nearly always under way, and writes several blocks. */
export const databaseOptions: Omit<StoreDbOptions, 'driver'> = {
  dbPrefix: 'db',
  nodeId: 0,
  writeForwardInterval: 10,
  blockSizeBytes: 512,
  logLevel: 'silent',
};
