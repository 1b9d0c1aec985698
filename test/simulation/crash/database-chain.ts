/** The conventions of the killed processes and their parent. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Types } from '../../../src/format/types.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import type { CrashStore } from './crash-store.ts';
import type { WorkloadOptions } from './database-workload.ts';

export const workload: WorkloadOptions = { seed: 1, rows: 150, batchSize: 10 };

/** Small blocks and the shortest interval: a merge is nearly always under way, and writes several blocks. */
export const databaseOptions: Omit<StoreDbOptions, 'driver'> = {
  dbPrefix: 'db',
  nodeId: 0,
  writeForwardInterval: 10,
  polling: 'interval',
  mergePolicy: { minCommits: 1 },
  blockSizeBytes: 512,
  logLevel: 'silent',
};

/** A table of the parent's: a commit of its own tells that what was sent before has landed, or never will. */
export const fences = defineSchema({
  name: 'fences',
  version: 1,
  fields: { id: { typeId: Types.int32 } },
  primaryKey: 'id',
});

/** What a process is to do. */
export interface ChildTask {
  readonly store: CrashStore;
  readonly dbPrefix: string;
  /** Number of the first batch. */
  readonly first: number;
}

/** What the store may make of a call; anything else is a defect. */
const passing = new Set(['STORAGE', 'COMMIT_OUTCOME_UNKNOWN', 'DEADLINE_EXCEEDED', 'ABORTED', 'CONTENTION']);

/** Calls again for as long as the store fails, and tells of every failure. */
export async function persistently<T>(call: () => Promise<T>, onFailure: (code: string) => void): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const { code = '' } = error as { code?: string };
      if (!passing.has(code)) throw error;
      onFailure(code);
      await sleep(20);
    }
  }
}
