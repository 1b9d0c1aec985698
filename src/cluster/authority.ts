/**
 * Whose turn it is. Time is cut into slots of `writeForwardInterval`, and in each slot one node has write authority.
 * Clocks only decide who tries: two nodes that both think it is their turn cost a lost race, never a commit.
 */

/** Id of the node that has authority at a time. `nodes` need not be sorted; it is not empty. */
export function authorityAt(nowMs: number, intervalMs: number, nodes: readonly number[]): number {
  const sorted = [...new Set(nodes)].toSorted((a, b) => a - b);
  const slot = Math.floor(nowMs / intervalMs);
  const turn = ((slot % sorted.length) + sorted.length) % sorted.length;
  return sorted[turn] as number;
}

/** Milliseconds until the next slot begins. */
export function untilNextSlot(nowMs: number, intervalMs: number): number {
  const into = ((nowMs % intervalMs) + intervalMs) % intervalMs;
  return intervalMs - into;
}
