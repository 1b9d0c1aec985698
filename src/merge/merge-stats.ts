/** What merging has done, for statistics and tests. */
import type { WriteCounters } from '../tree/level-writer.ts';

/** What merging has done since `start()`. */
export interface MergeStats extends WriteCounters {
  /** Merges that replaced Block 0. */
  merges: number;
  /** Merges that another instance was faster with: their work was thrown away. */
  lostMerges: number;
  /** Blocks that were written. */
  blocksWritten: number;
}
