/** Figures about an instance, for people and dashboards. */
import type { MemoryStats } from '../cache/instance-memory.ts';
import { authorityAt } from '../coordination/merge-rotation.ts';
import type { Polling } from '../coordination/polling-pace.ts';
import type { Role } from '../coordination/membership.ts';
import type { Engine } from '../engine/engine.ts';
import type { MergeStats } from '../merge/merge-policy.ts';
import { costOf } from '../storage/prices.ts';
import type { PriceTable } from '../storage/prices.ts';
import type { RequestCounts } from '../storage/wrap/observed-driver.ts';
import type { TableRequests } from './table-requests.ts';

/** The cache of blocks of an instance, as `db.stats()` reports it. */
export interface CacheStats {
  /** Number of blocks in memory. Zero while stopped. */
  readonly blocks: number;
  /** Their size in bytes. */
  readonly sizeBytes: number;
  /** How often, since `start()`, a block that was asked for was in memory. */
  readonly hits: number;
  /** How often a block was not in memory, but in the `cacheDriver`. */
  readonly driverHits: number;
  /** How often a block had to be read from the store. */
  readonly misses: number;
}

/** The log as an instance sees it. */
export interface LogStats {
  /** Id of this node; with `nodeId: 'auto'`, its present id. Without meaning for replicas. */
  readonly nodeId: number;
  /**
   * Staleness: milliseconds since this instance last knew that it shows the newest state. It does not show commits that others
   * made after that. `Infinity` if it never knew: with polling `'onDemand'`, until the log is read after `start()`.
   */
  readonly ageMs: number;
  /** The generation, which counts merges of the database by any instance: the value to give `db.at()` for the present state. */
  readonly generation: number;
  /** The revision, which counts the writes of Block 0 by any instance: the value for `expectAtLeast` of `db.start()`. */
  readonly revision: number;
  /** Slot of the last commit that the instance shows: `db.position`. */
  readonly tail: number;
  /** Slot of the last commit that is merged into blocks. */
  readonly appliedSeq: number;
  /** Number of commits that are shown and not merged yet: those after `appliedSeq`, up to `tail`. */
  readonly pendingCommits: number;
  /** Size of these commits, in bytes. */
  readonly pendingBytes: number;
  /** Ids of the nodes that share write authority, as the newest Block 0 that this instance knows lists them. */
  readonly nodes: readonly number[];
  /**
   * Id of the node whose turn it is to merge, by the clock and the interval of this instance; null if no node is registered. The turn of a
   * node that is gone goes to another one, which this does not show.
   */
  readonly turnOf: number | null;
}

/** The result of `db.stats()`. */
export interface DatabaseStats {
  /** Role of the instance. */
  readonly role: Role;
  /** Milliseconds since the instance was created: the time in which `requests` and `dollars` were counted. */
  readonly uptimeMs: number;
  /** Requests to the driver since the instance was created, by kind, and the bytes that they moved. */
  readonly requests: RequestCounts;
  /**
   * The reads and writes of blocks among them, by table, the tables with the most first. Further attempts of a request are not counted here.
   * Commits, blobs and Block 0 belong to no table.
   */
  readonly tables: readonly TableRequests[];
  /** Cost of those requests, by the price table of the options. */
  readonly dollars: number;
  /** Blocks in memory, and how often they saved a request. Roots that are part of Block 0 are not counted. */
  readonly cache: CacheStats;
  /** How `maxMemoryBytes` is split at the moment, and how much all instances take of a shared budget; undefined while stopped. */
  readonly memory: MemoryStats | undefined;
  /** The log as this instance sees it; undefined while stopped. */
  readonly log: LogStats | undefined;
  /** Counts of the merges since `start()`. */
  readonly merges: MergeStats | undefined;
  /** Outcomes of transactions since the instance was created. */
  readonly transactions: Readonly<TransactionStats>;
  /** How often the instance looks at the store by itself, as it was set. */
  readonly polling: PollingStats;
}

/** The polling of an instance, as `db.stats()` reports it. */
export interface PollingStats {
  /** Option `polling`. */
  readonly mode: Polling;
  /** Option `writeForwardInterval`, in milliseconds. With `'adaptive'` the pauses may be longer. */
  readonly intervalMs: number;
}

export function readStats(
  role: Role,
  requests: RequestCounts,
  tables: readonly TableRequests[],
  prices: PriceTable,
  uptimeMs: number,
  engine: Engine | undefined,
  transactions: TransactionStats,
  polling: PollingStats,
  nowMs: number,
): DatabaseStats {
  const view = engine?.view;
  const cache = engine?.memory.cache;
  const { hits = 0, driverHits = 0, misses = 0 } = cache?.counters ?? {};
  return {
    role,
    uptimeMs,
    requests,
    tables,
    dollars: costOf(requests, prices),
    cache: { blocks: cache?.count ?? 0, sizeBytes: cache?.sizeBytes ?? 0, hits, driverHits, misses },
    memory: engine?.memory.stats(),
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
      turnOf: view.block0.nodes.length === 0 ? null : authorityAt(nowMs, polling.intervalMs, view.block0.nodes),
    },
    merges: engine && { ...engine.merger.counters },
    transactions: { ...transactions },
    polling,
  };
}

/** Outcomes of transactions, for `db.stats()`. */
export interface TransactionStats {
  /** Number of transactions that succeeded, including read-only ones. */
  committed: number;
  /** Number of attempts that were given up because other commits had changed data that they had read. */
  conflicts: number;
  /** Number of transactions that failed, for any reason. */
  failed: number;
}
