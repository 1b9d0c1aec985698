/** What merging has done, for statistics and tests. */
import type { WriteCounters } from '../tree/level-writer.ts';

export interface MergeCounters extends WriteCounters {
  merges: number;
  lostMerges: number;
  blocksWritten: number;
}
