/** Figures about an instance, for people and dashboards. */
import type { Engine } from '../cluster/engine.ts';
import type { MergeCounters } from '../cluster/merge-counters.ts';
import type { ObservedDriver, RequestCounts } from '../storage/observed.ts';

/** What `db.stats()` tells. */
export interface DatabaseStats {
  /** Requests to the driver since the instance was created, by kind, and the bytes that they moved. */
  readonly requests: RequestCounts;
  /** Blocks in memory. Zero while stopped. */
  readonly cache: { readonly blocks: number; readonly sizeBytes: number };
  /**
   * The log as this instance sees it; undefined while stopped. `tail` is the last commit that it knows, `appliedSeq` the
   * last that is merged into blocks, and `pendingBytes` the size of those between.
   */
  readonly log: { readonly tail: number; readonly appliedSeq: number; readonly pendingBytes: number } | undefined;
  /** What merging has done since `start()`. */
  readonly merges: MergeCounters | undefined;
}

export function readStats(observed: ObservedDriver, engine: Engine | undefined): DatabaseStats {
  const view = engine?.view;
  return {
    requests: observed.snapshot(),
    cache: { blocks: engine?.cache.count ?? 0, sizeBytes: engine?.cache.sizeBytes ?? 0 },
    log: view && { tail: view.tail, appliedSeq: view.block0.appliedSeq, pendingBytes: view.pendingBytes },
    merges: engine && { ...engine.merger.counters },
  };
}
