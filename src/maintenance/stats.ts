/** Figures about an instance, for people and dashboards. */
import type { MemoryStats } from '../cache/split-pool.ts';
import type { Role } from '../coordination/membership.ts';
import type { Engine } from '../engine/engine.ts';
import type { MergeStats } from '../merge/merge-policy.ts';
import { costOf } from '../storage/prices.ts';
import type { PriceTable } from '../storage/prices.ts';
import type { RequestCounts } from '../storage/wrap/observed-driver.ts';

/** What `db.stats()` tells of the blocks that the instance works with. */
export interface CacheStats {
  /** Blocks in memory. Zero while stopped. */
  readonly blocks: number;
  /** Bytes that they take. */
  readonly sizeBytes: number;
  /** How often a block was asked for since `start()` and was in memory. */
  readonly hits: number;
  /** How often it was not in memory, but the `cacheDriver` had it. */
  readonly driverHits: number;
  /** How often it had to be read from the store. */
  readonly misses: number;
}

/** The log as an instance sees it. */
export interface LogStats {
  /** Id of this node; with `nodeId: 'auto'` the one that it goes by at the moment. Of replicas it says nothing. */
  readonly nodeId: number;
  /**
   * Milliseconds since what this instance shows was known to be the newest: its staleness. Commits of others since then are not
   * in it. `Infinity` where that is not known: with polling `'onDemand'`, until the log is looked at after `start()`.
   */
  readonly ageMs: number;
  /** Counts the merges of the database, by any instance: the generation that `db.at()` knows the present state by. */
  readonly generation: number;
  /** Counts the writes of Block 0, by any instance: what `expectAtLeast` of `db.start()` takes. */
  readonly revision: number;
  /** The last commit that the instance shows: `db.position`. */
  readonly tail: number;
  /** The last commit that is merged into blocks. */
  readonly appliedSeq: number;
  /** How many commits are between the two: shown, and not merged yet. */
  readonly pendingCommits: number;
  /** Size of the commits between the two. */
  readonly pendingBytes: number;
  /** Ids of the nodes that share write authority, as far as this instance knows: those that Block 0 lists. */
  readonly nodes: readonly number[];
}

/** What `db.stats()` tells. */
export interface DatabaseStats {
  /** What the instance is. */
  readonly role: Role;
  /** Milliseconds since the instance was created: the time that `requests` and `dollars` are of. */
  readonly uptimeMs: number;
  /** Requests to the driver since the instance was created, by kind, and the bytes that they moved. */
  readonly requests: RequestCounts;
  /** What those requests cost by the price table of the options. */
  readonly dollars: number;
  /** Blocks in memory, and how often they spared a request. Roots that are part of Block 0 are not counted. */
  readonly cache: CacheStats;
  /** How `maxMemoryBytes` is split at the moment, and what all take of a budget that is shared; undefined while stopped. */
  readonly memory: MemoryStats | undefined;
  /** The log as this instance sees it; undefined while stopped. */
  readonly log: LogStats | undefined;
  /** What merging has done since `start()`. */
  readonly merges: MergeStats | undefined;
  /** What became of transactions since the instance was created. */
  readonly transactions: Readonly<TransactionStats>;
}

export function readStats(
  role: Role,
  requests: RequestCounts,
  prices: PriceTable,
  uptimeMs: number,
  engine: Engine | undefined,
  transactions: TransactionStats,
): DatabaseStats {
  const view = engine?.view;
  const cache = engine?.pool.cache;
  const { hits = 0, driverHits = 0, misses = 0 } = cache?.counters ?? {};
  return {
    role,
    uptimeMs,
    requests,
    dollars: costOf(requests, prices),
    cache: { blocks: cache?.count ?? 0, sizeBytes: cache?.sizeBytes ?? 0, hits, driverHits, misses },
    memory: engine?.pool.stats(),
    log: view && {
      nodeId: engine?.node.id ?? 0,
      ageMs: Math.max(0, engine?.viewAgeMs ?? 0),
      generation: view.block0.generation,
      revision: view.block0.revision,
      tail: view.tail,
      appliedSeq: view.block0.appliedSeq,
      pendingCommits: view.pending.length,
      pendingBytes: view.pendingBytes,
      nodes: [...view.block0.nodes],
    },
    merges: engine && { ...engine.merger.counters },
    transactions: { ...transactions },
  };
}

/** What became of transactions, for `db.stats()`. */
export interface TransactionStats {
  /** Transactions that succeeded, those that only read included. */
  committed: number;
  /** Attempts that had to be given up because others had changed what was read. */
  conflicts: number;
  /** Transactions that failed, whatever the reason. */
  failed: number;
}
