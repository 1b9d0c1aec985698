/** Nodes that write at an even rate: their requests, the cost, and the delay until others see the commits. */
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import { s3StandardPrices } from '../../../src/storage/prices.ts';
import { Cluster } from './cluster.ts';
import { noTraffic, trafficSince } from './network.ts';
import type { Traffic, TrafficKind } from './network.ts';
import type { Spread } from './observer.ts';

export const dayMs = 86_400_000;

export interface SteadyOptions {
  readonly nodes: number;
  readonly polling: Polling;
  /** How many of them write; the others are replicas. Default: all. */
  readonly writers?: number;
  /** Commits a day of all nodes together. */
  readonly commitsADay: number;
  readonly windowMs: number;
  /** Before anything is counted, with the same load. */
  readonly warmUpMs: number;
  /** Garbage is collected once a day by one node: long windows would fill the memory. */
  readonly collects?: boolean;
  /** Have each node asked for a row every so many milliseconds. */
  readonly queryEveryMs?: number;
  /** Clocks are wrong by up to so much in either direction. */
  readonly skewMs?: number;
}

export interface Steady {
  readonly nodes: number;
  readonly polling: Polling;
  readonly commitsADay: number;
  readonly windowMs: number;
  readonly traffic: Traffic;
  readonly merges: number;
  readonly lostMerges: number;
  readonly staleness: Spread;
  readonly merging: Spread;
  readonly latency: Spread;
  readonly failures: number;
  readonly mostPending: number;
  readonly mostPendingBytes: number;
  readonly busiestSecond: number;
}

export function readsOf(traffic: Traffic): number {
  return traffic.found + traffic.unchanged + traffic.missing;
}

export function writesOf(traffic: Traffic): number {
  return traffic.slotsWon + traffic.slotsLost + traffic.roots + traffic.rootsLost + traffic.blocks;
}

/** On S3. Listings and deletions, which are of gc alone, are left out, as in docs/costs.md. */
export function dollarsOf(traffic: Traffic): number {
  const { per1000Reads, per1000Writes } = s3StandardPrices;
  return (readsOf(traffic) * per1000Reads + writesOf(traffic) * per1000Writes) / 1000;
}

export function scaled(traffic: Traffic, factor: number): Traffic {
  const kinds = Object.keys(traffic) as TrafficKind[];
  return Object.fromEntries(kinds.map((kind) => [kind, traffic[kind] * factor])) as unknown as Traffic;
}

export function sumOf(...all: readonly Traffic[]): Traffic {
  const sum = noTraffic();
  for (const traffic of all) for (const kind of Object.keys(sum) as TrafficKind[]) sum[kind] += traffic[kind];
  return sum;
}

function ask(cluster: Cluster, everyMs: number): void {
  for (const { db } of cluster.nodes) {
    const again = async (): Promise<void> => {
      await db.get('items', cluster.random.integer(0, 999));
      cluster.after(everyMs, again);
    };
    cluster.after(cluster.random.between(0, everyMs), again);
  }
}

export async function steady(options: SteadyOptions): Promise<Steady> {
  const { nodes, polling, commitsADay, windowMs, warmUpMs, skewMs = 0 } = options;
  const { writers = nodes } = options;
  const cluster = await Cluster.started({ nodes, writers, polling, seed: JSON.stringify(options) });
  for (const { process } of cluster.nodes) process.skewMs = Math.round(cluster.random.between(-skewMs, skewMs));
  if (options.collects === true) {
    const collect = async (): Promise<void> => {
      await (cluster.nodes[0]?.db.gc({ loopGraceMs: 0 }) ?? Promise.resolve());
      cluster.after(dayMs, collect);
    };
    cluster.after(dayMs / 2, collect);
  }
  if (options.queryEveryMs !== undefined) ask(cluster, options.queryEveryMs);
  cluster.spread(Math.ceil((commitsADay * warmUpMs) / dayMs), warmUpMs);
  await cluster.advance(warmUpMs);
  cluster.forget();
  cluster.observer.watch();
  cluster.network.busiestSecond = 0;
  const before = { ...cluster.network.traffic };
  const [merges, lostMerges] = [cluster.merges, cluster.lostMerges];
  cluster.spread(Math.round((commitsADay * windowMs) / dayMs), windowMs);
  await cluster.advance(windowMs);
  const { latency, contention, backpressure, others } = cluster.outcomes;
  if (others.length > 0) throw new Error(others[0]);
  return {
    nodes,
    polling,
    commitsADay,
    windowMs,
    traffic: trafficSince(before, cluster.network.traffic),
    merges: cluster.merges - merges,
    lostMerges: cluster.lostMerges - lostMerges,
    staleness: cluster.observer.staleness(),
    merging: cluster.observer.merging(),
    latency,
    failures: contention + backpressure,
    mostPending: cluster.observer.mostPending,
    mostPendingBytes: cluster.observer.mostPendingBytes,
    busiestSecond: cluster.network.busiestSecond,
  };
}

/** A month of 30 days, made of a window or of parts of windows. */
export interface Month {
  readonly nodes: number;
  readonly polling: Polling;
  readonly commitsADay: number;
  /** Whether it is an idle window and a window of lone commits put together, since commits at this rate are too few. */
  readonly composed: boolean;
  readonly traffic: Traffic;
  readonly dollars: number;
}

export function monthOf({ nodes, polling, commitsADay, windowMs, traffic }: Steady): Month {
  const month = scaled(traffic, (30 * dayMs) / windowMs);
  return { nodes, polling, commitsADay, composed: false, traffic: month, dollars: dollarsOf(month) };
}

/** What a month costs at a low rate: an idle month, and for each commit what a lone commit adds to an idle window. */
export function composedMonth(idle: Steady, lone: Steady, commitsADay: number): Month {
  const commits = Math.max(1, lone.latency.count);
  const added = scaled(sumOf(lone.traffic, scaled(idle.traffic, -lone.windowMs / idle.windowMs)), 1 / commits);
  const traffic = sumOf(scaled(idle.traffic, (30 * dayMs) / idle.windowMs), scaled(added, 30 * commitsADay));
  const { nodes, polling } = idle;
  return { nodes, polling, commitsADay, composed: true, traffic, dollars: dollarsOf(traffic) };
}
