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

/** Milliseconds until the first slot of `nodeId`, one of `nodes`, that begins later than `waitMs` from now. */
export function untilOwnSlot(
  nowMs: number,
  waitMs: number,
  intervalMs: number,
  nodeId: number,
  nodes: readonly number[],
): number {
  const sharing = [...new Set(nodes)];
  const turn = sharing.filter((id) => id < nodeId).length;
  const nextMs = waitMs + untilNextSlot(nowMs + waitMs, intervalMs);
  const slot = Math.floor((nowMs + nextMs) / intervalMs);
  const slotsLeft = (((turn - slot) % sharing.length) + sharing.length) % sharing.length;
  return nextMs + slotsLeft * intervalMs;
}
