/** Nodes that come and go: how soon they are registered, and how long commits wait for those that died. */
import { Cluster, intervalMs } from './cluster.ts';
import { trafficSince } from './network.ts';
import type { Spread } from './observer.ts';

export interface Arrival {
  readonly nodes: number;
  /** Until every node had started, and until Block 0 listed all of them. */
  readonly startedMs: number;
  readonly registeredMs: number;
  readonly roots: number;
  readonly rootsLost: number;
  readonly busiestSecond: number;
}

/** All nodes start in the same moment. */
export async function arrive(nodes: number): Promise<Arrival> {
  const cluster = await Cluster.make({ nodes, polling: 'interval', seed: `${nodes} arrive` });
  const beganMs = cluster.nowMs;
  await cluster.startAll();
  const startedMs = cluster.nowMs - beganMs;
  while ((await cluster.block0()).nodes.length < nodes) await cluster.advance(100);
  const { roots, rootsLost } = cluster.network.traffic;
  const { busiestSecond } = cluster.network;
  return { nodes, startedMs, registeredMs: cluster.nowMs - beganMs, roots, rootsLost, busiestSecond };
}

export interface Disturbance {
  readonly nodes: number;
  readonly what: string;
  /** Commits and how long they waited to be merged, while it went on. */
  readonly merging: Spread;
  readonly lostMerges: number;
  /** Writes of Block 0 for the list of nodes, and those of lost merges. */
  readonly roots: number;
  readonly tookMs: number;
}

/** Every node is stopped and started again, one after the other, while a commit comes every three seconds. */
export async function restart(nodes: number): Promise<Disturbance> {
  const cluster = await Cluster.started({ nodes, polling: 'interval', seed: `${nodes} restart` });
  cluster.observer.watch();
  const before = { ...cluster.network.traffic };
  const [startedMs, { merges, lostMerges }] = [cluster.nowMs, cluster];
  let goesOn = true;
  const commit = async (): Promise<void> => {
    if (!goesOn) return;
    await cluster.commit(cluster.random.pick(cluster.live));
    cluster.after(3000, commit);
  };
  cluster.after(0, commit);
  const counts = { merges: 0, lost: 0 };
  for (const node of cluster.nodes) {
    counts.merges += node.db.stats().merges?.merges ?? 0;
    counts.lost += node.db.stats().merges?.lostMerges ?? 0;
    await cluster.environment.run(node.db.stop());
    await cluster.environment.run(cluster.start(node));
    await cluster.advance(1000);
  }
  const tookMs = cluster.nowMs - startedMs;
  goesOn = false;
  while ((await cluster.block0()).nodes.length < nodes) await cluster.advance(100);
  await cluster.advance(3 * intervalMs);
  const traffic = trafficSince(before, cluster.network.traffic);
  return {
    nodes,
    what: 'all are restarted, one after the other',
    merging: cluster.observer.merging(),
    lostMerges: cluster.lostMerges + counts.lost - lostMerges,
    roots: traffic.roots + traffic.rootsLost - (cluster.merges + counts.merges - merges),
    tookMs,
  };
}

/** Some nodes die in the same moment, just before the first of them would have its turn. */
export async function die(nodes: number, dead: number, which: 'neighbours' | 'random'): Promise<Disturbance> {
  const cluster = await Cluster.started({ nodes, polling: 'interval', seed: `${dead} ${which} of ${nodes} die` });
  const roundMs = nodes * intervalMs;
  await cluster.advance(roundMs - (cluster.environment.now() % roundMs) - 1000);
  const ids = cluster.nodes.map(({ nodeId }) => nodeId);
  const order = which === 'neighbours' ? ids : ids.toSorted(() => cluster.random.next() - 0.5);
  for (const id of order.slice(0, dead)) cluster.nodes[id]?.process.freeze();
  cluster.observer.watch();
  const before = { ...cluster.network.traffic };
  const { merges, lostMerges } = cluster;
  const forMs = Math.min(2 * roundMs, 240_000);
  cluster.spread(forMs / 3000, forMs);
  await cluster.advance(forMs + 60_000);
  const traffic = trafficSince(before, cluster.network.traffic);
  return {
    nodes,
    what: dead === 1 ? 'one dies' : `${dead} ${which === 'random' ? 'at random' : 'neighbours'} die at once`,
    merging: cluster.observer.merging(),
    lostMerges: cluster.lostMerges - lostMerges,
    roots: traffic.roots + traffic.rootsLost - (cluster.merges - merges),
    tookMs: forMs,
  };
}
