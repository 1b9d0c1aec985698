/** Counting what a query would return, with as little reading as can be. */
import { isPromise } from '../base/brands.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { Tree } from '../tree/tree.ts';
import { filterOf } from './conditions/condition.ts';
import type { Execution } from './operators/executor.ts';
import { HitList } from './operators/row-batch.ts';
import { openTable } from './operators/open-operator.ts';
import type { TableAccess } from './planner/access-paths.ts';
import { countMerged, countRange } from './operators/range-count.ts';

/** How many rows the query gives, offset and limit applied. */
export async function countRows(execution: Execution): Promise<number> {
  const { offset, limit } = execution.query;
  const total = await countMatches(execution);
  return Math.max(0, Math.min(total - offset, limit ?? Number.POSITIVE_INFINITY));
}

/** Matching rows, at least until as many are found as are of use. */
async function countMatches(execution: Execution): Promise<number> {
  const { state, plan } = execution;
  const { access, residual } = plan;
  const exact = residual.length === 0;
  if (exact && access.kind === 'table') {
    return sumOf(execution, access.ranges, (range) => countMerged(state, range, () => execution.breathe()));
  }
  if (exact && access.kind === 'index' && state.layers.length === 0) {
    const tree = state.treeOf(access.index) as Tree;
    return sumOf(execution, access.ranges, (range) => countRange(tree, range));
  }
  if (access.kind === 'table') return countSelected(execution, access);
  return countHits(execution);
}

/** So many ranges are counted at the same time: each may hold a block at both of its ends. */
const rangesAtOnce = 16;

/** What the ranges come to together. */
async function sumOf(
  execution: Execution,
  ranges: readonly KeyRange[],
  count: (range: KeyRange) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (let i = 0; i < ranges.length; i += rangesAtOnce) {
    const counts = await Promise.all(ranges.slice(i, i + rangesAtOnce).map(count));
    for (const one of counts) total += one;
    await execution.breathe();
  }
  return total;
}

async function countSelected(execution: Execution, access: TableAccess): Promise<number> {
  const { state, plan, work } = execution;
  const breathe = (): void | Promise<void> => execution.breathe();
  const stream = openTable({ state, filter: filterOf(plan.residual), work, breathe }, access);
  const { needed } = execution;
  let total = 0;
  while (total < needed) {
    let more = stream.count();
    if (isPromise(more)) more = await more;
    if (more === undefined) break;
    total += more;
    await execution.breathe();
  }
  return total;
}

async function countHits(execution: Execution): Promise<number> {
  const stream = execution.open();
  const { needed } = execution;
  const hits = new HitList(needed);
  let total = 0;
  while (total < needed) {
    let more = stream.next(hits);
    if (isPromise(more)) more = await more;
    total += hits.count;
    hits.clear();
    if (!more) break;
    await execution.breathe();
  }
  return total;
}
