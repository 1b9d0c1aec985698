/** Opens the access of a plan as a stream of rows, including those of unmerged commits. */
import type { Pacer } from '../../base/pacer.ts';
import { haveEntries } from '../../view/layer-indexes.ts';
import { isTextField } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import { CursorSequence } from '../../tree/cursor-sequence.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import type { RowRef, Tree } from '../../tree/tree.ts';
import { AllRows, TopRows, collect } from './sort-and-top-n.ts';
import type { Keep } from './sort-and-top-n.ts';
import { filterOf } from '../conditions/condition.ts';
import type { EntryUse } from '../planner/covering-index.ts';
import { EntryStream } from './index-only-scan.ts';
import { ConcatenatedStream } from './row-batch.ts';
import type { RowStream, QueryWork } from './row-batch.ts';
import { indexCursor } from './index-cursor.ts';
import { IndexStream } from './index-lookup.ts';
import { IntersectionStream, UnionStream, MergedStream, PreparedStream } from './merge-sorted.ts';
import type { KeyProbe } from './key-probe.ts';
import { KeyStream, SortedLookups } from './lookups.ts';
import { LayerStream, TableStream } from './table-scan.ts';
import { LongValueStream } from './long-value-sort.ts';
import { residualOf } from '../planner/access-paths.ts';
import type { CompiledQuery, IndexAccess, IntersectionAccess, Plan, TableAccess } from '../planner/access-paths.ts';
import { RowOrder } from '../conditions/row-order.ts';
import type { Filter } from '../conditions/filter.ts';

/** The arguments for opening the access of a plan. */
export interface OpenOptions {
  readonly state: TableState;
  readonly query: CompiledQuery;
  readonly plan: Plan;
  /** The residual conditions. */
  readonly filter: Filter;
  /** The number of rows wanted. */
  readonly needed: number;
  readonly pacer: Pacer;
  /** Lets the event loop run if it is time to. Throws if the query was given up. */
  readonly breathe: () => void | Promise<void>;
  readonly work: QueryWork;
}

/** Opens a stream of the matching rows, in the order of the plan if its access has the order. */
export function openAccess(options: OpenOptions): RowStream {
  const { state, plan, filter, work } = options;
  const { access } = plan;
  switch (access.kind) {
    case 'nothing':
      return new ConcatenatedStream([]);
    case 'keys':
      return new KeyStream(state, access.keys, filter, work);
    case 'table':
      return openTable(options, access);
    case 'search':
      return access.open(state, filter, work) as RowStream;
    case 'index':
    case 'intersection':
      return openIndex(options, access);
    case 'union':
      return new UnionStream(
        access.parts.map((part) => {
          return openAccess({
            ...options,
            ...part,
            filter: filterOf(part.plan.residual),
            needed: Number.POSITIVE_INFINITY,
          });
        }),
      );
  }
}

/** Opens a stream of a table's rows in some ranges. */
export function openTable(
  { state, filter, work, breathe }: Pick<OpenOptions, 'state' | 'filter' | 'work' | 'breathe'>,
  { ranges, descending }: TableAccess,
): TableStream {
  const scan = (i: number): RunCursor => state.scan(ranges[descending ? ranges.length - 1 - i : i], descending);
  const cursor =
    ranges.length === 1 ? scan(0) : new CursorSequence(ranges.length, scan, state.tree.source.memory, breathe);
  return new TableStream(state.shape.layout, cursor, descending, filter, work);
}

/** More ranges are not looked for in each layer: its rows are tested instead. */
const maxLayerRanges = 1024;

/** Where more of a table is in memory, its rows are found as fast in any order. */
const mostlyCached = 0.9;

/** Opens a stream of the rows of index entries, without rows changed by unmerged commits. `use`: the use of entries without rows. */
function openEntries(
  { state, query, plan, needed, pacer, breathe, work }: OpenOptions,
  access: IndexAccess,
  filter: Filter,
  use?: EntryUse,
  probes: readonly KeyProbe[] = [],
): RowStream {
  const cursor = indexCursor(state.treeOf(access.index) as Tree, access, breathe);
  if (use === undefined && probes.length === 0) {
    // Where rows are not sorted afterwards, it may be over soon.
    const mayStop = plan.ordered || (query.unordered === true && Number.isFinite(needed));
    return access.oneValue || mayStop || state.tree.estimate().cachedFraction > mostlyCached
      ? new IndexStream(state, access, cursor, filter, work)
      : new SortedLookups({ state, access, cursor, filter, work, pacer, breathe });
  }
  return new EntryStream({ state, access, cursor, filter, work, use, probes });
}

function openIntersection(options: OpenOptions, access: IntersectionAccess): RowStream {
  const { state, query, plan, filter, breathe, work } = options;
  const { first, firstCovers } = access;
  const open = (probes: readonly KeyProbe[]): RowStream => openEntries(options, first, filter, plan.use, probes);
  const openFirst = (): RowStream => openEntries(options, first, filterOf(residualOf(query, firstCovers)));
  return new IntersectionStream({ state, access, breathe, work, open, openFirst });
}

function openIndex(options: OpenOptions, access: IndexAccess | IntersectionAccess): RowStream {
  const { state, plan, filter } = options;
  let stream =
    access.kind === 'index' ? openEntries(options, access, filter, plan.use) : openIntersection(options, access);
  const changes = changedRows(options, access.kind === 'index' ? access : access.first);
  if (!plan.ordered) return changes === undefined ? stream : new ConcatenatedStream([...changes.streams, stream]);
  // The entries differ only in the fields of the order: the other fields are the same in all of them.
  const long = plan.order.some(({ field }) => isTextField(field) && !state.shape.keyFields.includes(field));
  if (!long && changes === undefined) return stream;
  const order = new RowOrder(state.shape, plan.order);
  const { needed, breathe } = options;
  const sorted = { order, needed, holdsBlocks: true, memory: state.tree.source.memory, breathe };
  if (long) stream = new LongValueStream(stream, sorted);
  if (changes === undefined) return stream;
  const { streams, isOrdered } = changes;
  if (!isOrdered) return new MergedStream(stream, [sortedStream(streams, order, options)], order);
  const others = long ? streams.map((one) => new LongValueStream(one, { ...sorted, holdsBlocks: false })) : streams;
  return new MergedStream(stream, others, order);
}

/**
 * Returns streams of the matching rows of unmerged commits. The index does not have them, so they are tested for all conditions.
 * Undefined if there are no such commits. `isOrdered`: whether each stream comes in the order of the access.
 */
function changedRows(
  { state, query, work, pacer }: OpenOptions,
  access: IndexAccess,
): { readonly streams: readonly RowStream[]; readonly isOrdered: boolean } | undefined {
  const { layers } = state;
  if (layers.length === 0) return undefined;
  const filter = filterOf(query.conditions);
  if (access.ranges.length <= maxLayerRanges && haveEntries(state, access.index)) {
    const streams = layers.map((_, position) => new LayerStream({ state, position, access, filter, work, pacer }));
    return { streams, isOrdered: true };
  }
  return { streams: [new TableStream(state.shape.layout, state.scanLayers(), false, filter, work)], isOrdered: false };
}

/** Returns a stream of the first rows of some streams, as many as are needed, in order. */
function sortedStream(streams: readonly RowStream[], order: RowOrder, { needed, pacer }: OpenOptions): RowStream {
  const keep: Keep<RowRef> = (source, base) => ({ source, base });
  const collector = Number.isFinite(needed) ? new TopRows(order, needed, keep) : new AllRows(order, keep);
  return new PreparedStream(() => collect(new ConcatenatedStream(streams), collector, pacer));
}
