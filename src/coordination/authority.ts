/**
 * Whose turn it is. Time is cut into slots of `writeForwardInterval`, and in each slot one node has write authority.
 * Clocks only decide who tries: two nodes that both think it is their turn cost a lost race, never a commit.
 */

/** Nobody. */
const none: ReadonlySet<number> = new Set();

/** The slot that a time lies in. */
export function slotAt(nowMs: number, intervalMs: number): number {
  return Math.floor(nowMs / intervalMs);
}

/** Ids in the order in which they take turns, each once. */
export function sortedIds(nodes: readonly number[]): number[] {
  return [...new Set(nodes)].toSorted((a, b) => a - b);
}

/** Who has a slot: the node whose turn it is, or the next one that is not skipped. If all are, none is. */
function ownerOf(slot: number, sorted: readonly number[], skipped: ReadonlySet<number>): number {
  const turn = ((slot % sorted.length) + sorted.length) % sorted.length;
  for (let i = 0; i < sorted.length; i++) {
    const id = sorted[(turn + i) % sorted.length] as number;
    if (!skipped.has(id)) return id;
  }
  return sorted[turn] as number;
}

/**
 * Id of the node that has authority at a time. `nodes` need not be sorted; it is not empty. The turns of `skipped` ones go
 * to the node after them.
 */
export function authorityAt(
  nowMs: number,
  intervalMs: number,
  nodes: readonly number[],
  skipped: ReadonlySet<number> = none,
): number {
  return ownerOf(slotAt(nowMs, intervalMs), sortedIds(nodes), skipped);
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
  skipped: ReadonlySet<number> = none,
): number {
  const sorted = sortedIds(nodes);
  const nextMs = waitMs + untilNextSlot(nowMs + waitMs, intervalMs);
  // The beginning of a slot, whatever became of fractions.
  const slot = slotAt(nowMs + nextMs + intervalMs / 2, intervalMs);
  let slotsLeft = 0;
  while (slotsLeft < sorted.length && ownerOf(slot + slotsLeft, sorted, skipped) !== nodeId) slotsLeft++;
  return nextMs + slotsLeft * intervalMs;
}
