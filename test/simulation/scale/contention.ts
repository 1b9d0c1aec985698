/** Many writers at once: flushes that want the same slot, and transactions that want the same rows. */
import { TransactionConflictError } from '../../../src/base/errors.ts';
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import { Cluster, items } from './cluster.ts';
import type { ScaleNode } from './cluster.ts';
import { trafficSince } from './network.ts';
import { spreadOf } from './observer.ts';
import type { Spread } from './observer.ts';
import { readsOf } from './steady.ts';

export interface Contention {
  readonly nodes: number;
  /** Milliseconds between a node's flushes; 0: one flush each, all in the same moment. */
  readonly everyMs: number;
  readonly commits: number;
  readonly commitsASecond: number;
  readonly latency: Spread;
  readonly contention: number;
  readonly backpressure: number;
  readonly lostSlotsPerCommit: number;
  readonly readsPerCommit: number;
  readonly lostMerges: number;
  readonly staleness: Spread;
  readonly merging: Spread;
  readonly mostPending: number;
  readonly mostPendingBytes: number;
  readonly busiestSecond: number;
}

/** Longer than any flush lasts. */
const drainMs = 61_000;

async function observed(cluster: Cluster, everyMs: number, load: () => Promise<void>): Promise<Contention> {
  cluster.observer.watch();
  cluster.network.busiestSecond = 0;
  const before = { ...cluster.network.traffic };
  const { lostMerges } = cluster;
  await load();
  const { latency, contention, backpressure, others } = cluster.outcomes;
  if (others.length > 0) throw new Error(others[0]);
  const traffic = trafficSince(before, cluster.network.traffic);
  const slots = Math.max(1, traffic.slotsWon);
  return {
    nodes: cluster.nodes.length,
    everyMs,
    commits: latency.count,
    commitsASecond: cluster.flushesASecond,
    latency,
    contention,
    backpressure,
    lostSlotsPerCommit: traffic.slotsLost / slots,
    readsPerCommit: readsOf(traffic) / slots,
    lostMerges: cluster.lostMerges - lostMerges,
    staleness: cluster.observer.staleness(),
    merging: cluster.observer.merging(),
    mostPending: cluster.observer.mostPending,
    mostPendingBytes: cluster.observer.mostPendingBytes,
    busiestSecond: cluster.network.busiestSecond,
  };
}

/** Has every node do something again and again for a while, each a fixed time after it began the last time. */
function keepDoing(cluster: Cluster, everyMs: number, forMs: number, what: (node: ScaleNode) => Promise<void>): void {
  const endMs = cluster.nowMs + forMs;
  for (const node of cluster.nodes) {
    const again = async (): Promise<void> => {
      if (cluster.nowMs >= endMs) return;
      const startedMs = cluster.nowMs;
      await what(node);
      cluster.after(Math.max(0, everyMs - (cluster.nowMs - startedMs)), again);
    };
    cluster.after(cluster.random.between(0, everyMs), again);
  }
}

/** Every node flushes every so often, or as often as it can, for a while. */
export async function contend(nodes: number, everyMs: number, forMs: number): Promise<Contention> {
  const cluster = await Cluster.started({ nodes, polling: 'interval', seed: `${nodes} every ${everyMs}` });
  return observed(cluster, everyMs, async () => {
    if (everyMs === 0) for (const node of cluster.nodes) cluster.after(0, () => cluster.commit(node));
    else keepDoing(cluster, everyMs, forMs, (node) => cluster.commit(node));
    await cluster.advance(forMs + drainMs);
  });
}

/** So many commits at random moments of a minute. */
export async function burst(nodes: number, commits: number, polling: Polling): Promise<Contention> {
  const cluster = await Cluster.started({ nodes, polling, seed: `burst of ${nodes} ${polling}` });
  return observed(cluster, 60_000, async () => {
    cluster.spread(commits, 60_000);
    await cluster.advance(60_000 + drainMs);
  });
}

export interface Counting {
  readonly nodes: number;
  readonly counters: number;
  readonly committed: number;
  readonly conflictsPerCommit: number;
  readonly givenUp: number;
  readonly latency: Spread;
}

/** Every node adds one to a random counter every second, in a transaction, for half a minute. */
export async function count(nodes: number, counters: number): Promise<Counting> {
  const cluster = await Cluster.started({ nodes, polling: 'interval', seed: `${counters} counters of ${nodes}` });
  const latencies: number[] = [];
  let [conflicts, givenUp] = [0, 0];
  keepDoing(cluster, 1000, 30_000, async ({ db }) => {
    const startedMs = cluster.nowMs;
    const id = cluster.random.integer(0, counters - 1);
    let attempts = 0;
    try {
      await db.transaction(async (tx) => {
        attempts++;
        const row = await tx.get(items, id);
        await tx.update(items, { id, count: (row?.count ?? 0) + 1 });
      });
      latencies.push(cluster.nowMs - startedMs);
    } catch (error) {
      if (!(error instanceof TransactionConflictError)) throw error;
      givenUp++;
    }
    conflicts += attempts - 1;
  });
  await cluster.advance(30_000 + 10 * drainMs);
  const latency = spreadOf(latencies);
  const committed = latency.count;
  return { nodes, counters, committed, conflictsPerCommit: conflicts / Math.max(1, committed), givenUp, latency };
}
