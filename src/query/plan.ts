/**
 * How a query comes by its rows: which accesses there are, and by rule the one that looks best. Planning reads nothing;
 * operators know nothing of it but the plan.
 */
import type { LayoutField } from '../format/row-layout.ts';
import type { TableIndex } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { Condition } from './condition.ts';
import { intersectRanges, keyAccess } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import { RowOrder } from './row-order.ts';
import type { OrderField } from './row-order.ts';

/** A compiled query. */
export interface CompiledQuery {
  readonly conditions: readonly Condition[];
  /** As asked for; the primary key, ascending, decides between rows that tie. */
  readonly order: readonly OrderField[];
  readonly limit: number | undefined;
  readonly offset: number;
}

/** Where rows come from. */
export type Access =
  | { readonly kind: 'nothing' }
  /** Single rows, by primary key. */
  | { readonly kind: 'keys'; readonly keys: readonly Uint8Array[] }
  /** The table's tree, or a range of it. */
  | { readonly kind: 'table'; readonly range: KeyRange; readonly descending: boolean }
  /** Entries of an index. `oneValue`: all of the same value. Ranges ascend also where the access descends. */
  | {
      readonly kind: 'index';
      readonly index: TableIndex;
      readonly oneValue: boolean;
      readonly ranges: readonly KeyRange[];
      readonly descending: boolean;
    };

/** A way to come by all rows that match. The rank says how good it looks; the lowest is taken. */
export interface Candidate {
  readonly rank: number;
  readonly access: Access;
  /** Conditions that the access fulfils by itself. */
  readonly covered: readonly Condition[];
  /** Whether its rows come in the order that is asked for. */
  readonly ordered: boolean;
}

export interface Plan extends Candidate {
  readonly order: RowOrder;
  /** Conditions that rows must still be tested for. */
  readonly residual: readonly Condition[];
}

const Rank = {
  nothing: 0,
  primaryKey: 1,
  primaryKeyList: 2,
  indexEquality: 3,
  indexList: 4,
  primaryKeyRange: 5,
  indexRange: 6,
  indexOrder: 7,
  scan: 8,
} as const;

/** The order without the fields that decide nothing: those that a condition fixes, and all behind the primary key. */
function effectiveOrder(primaryKey: LayoutField, { conditions, order }: CompiledQuery): readonly OrderField[] {
  const fixed = new Set<LayoutField>();
  for (const { on } of conditions) {
    const kind = on?.comparison.kind;
    if (on !== undefined && (kind === 'null' || (kind === 'value' && on.operator === '='))) fixed.add(on.field);
  }
  const effective: OrderField[] = [];
  for (const by of order) {
    if (fixed.has(by.field)) continue;
    effective.push(by);
    if (by.field === primaryKey) break;
    fixed.add(by.field);
  }
  return effective;
}

interface FieldAccess extends KeyAccess {
  readonly covered: readonly Condition[];
}

/** The best that the conditions on a field give for an access by its keys; undefined if they give nothing. */
function accessByField(field: LayoutField, conditions: readonly Condition[]): FieldAccess | undefined {
  let best: FieldAccess | undefined;
  for (const condition of conditions) {
    const { on } = condition;
    if (on === undefined || on.field !== field) continue;
    const access = keyAccess(field.typeId, on.comparison);
    if (access === undefined) continue;
    const covered = access.exact ? [condition] : [];
    if (access.kind === 'equality') return { ...access, covered };
    if (best === undefined || (access.kind === 'list' && best.kind === 'range')) best = { ...access, covered };
    else if (access.kind === 'range' && best.kind === 'range') {
      const both = intersectRanges(access.ranges[0] as KeyRange, best.ranges[0] as KeyRange);
      best = { ...best, ranges: both === undefined ? [] : [both], covered: [...best.covered, ...covered] };
    }
  }
  return best;
}

/** The direction of an order by one field alone, if that is what is asked for. */
function directionOf(order: readonly OrderField[], field: LayoutField): 'ascending' | 'descending' | undefined {
  const only = order[0];
  if (order.length !== 1 || only?.field !== field) return undefined;
  return only.descending ? 'descending' : 'ascending';
}

class Planner {
  readonly #state: TableState;
  readonly #query: CompiledQuery;
  readonly #order: readonly OrderField[];
  readonly #byKey: boolean;
  readonly #keyDescending: boolean;
  readonly candidates: Candidate[] = [];

  constructor(state: TableState, query: CompiledQuery, order: readonly OrderField[]) {
    const { primaryKey } = state.shape;
    this.#state = state;
    this.#query = query;
    this.#order = order;
    const direction = directionOf(order, primaryKey);
    this.#byKey = order.length === 0 || direction !== undefined;
    this.#keyDescending = direction === 'descending';
  }

  add(): void {
    const { shape, indexes } = this.#state;
    this.#addKeys(shape.primaryKey);
    for (const index of shape.indexes) {
      // A version of the table that is still being built up may not have all of its indexes yet.
      if (indexes.has(index.name)) this.#addIndex(index);
    }
  }

  #addKeys(field: LayoutField): void {
    const found = accessByField(field, this.#query.conditions);
    const descending = this.#keyDescending;
    if (found === undefined || found.kind === 'range') {
      const range = found === undefined ? {} : found.ranges[0];
      const covered = found?.covered ?? [];
      if (range === undefined) this.#addNothing(covered);
      else {
        const access: Access = { kind: 'table', range, descending };
        const rank = found === undefined ? Rank.scan : Rank.primaryKeyRange;
        this.candidates.push({ rank, access, covered, ordered: this.#byKey });
      }
      return;
    }
    const keys = found.ranges.map(({ from }) => from as Uint8Array);
    if (descending) keys.reverse();
    const rank = found.kind === 'equality' ? Rank.primaryKey : Rank.primaryKeyList;
    const ordered = this.#byKey || keys.length === 1;
    this.candidates.push({ rank, access: { kind: 'keys', keys }, covered: found.covered, ordered });
  }

  #addIndex(index: TableIndex): void {
    const found = accessByField(index.field, this.#query.conditions);
    const direction = directionOf(this.#order, index.field);
    if (found === undefined) {
      if (direction === undefined || this.#query.limit === undefined) return;
      const descending = direction === 'descending';
      const access: Access = { kind: 'index', index, oneValue: false, ranges: [{}], descending };
      this.candidates.push({ rank: Rank.indexOrder, access, covered: [], ordered: true });
      return;
    }
    const { kind, ranges, covered } = found;
    if (ranges.length === 0) {
      this.#addNothing(covered);
      return;
    }
    const oneValue = kind === 'equality';
    const descending = oneValue ? this.#keyDescending : direction === 'descending';
    const rank = oneValue ? Rank.indexEquality : kind === 'list' ? Rank.indexList : Rank.indexRange;
    const ordered = oneValue ? this.#byKey : direction !== undefined;
    this.candidates.push({ rank, access: { kind: 'index', index, oneValue, ranges, descending }, covered, ordered });
  }

  #addNothing(covered: readonly Condition[]): void {
    this.candidates.push({ rank: Rank.nothing, access: { kind: 'nothing' }, covered, ordered: true });
  }
}

/** The accesses that a query could use. There is always one. */
export function candidatesFor(state: TableState, query: CompiledQuery): Candidate[] {
  const impossible = query.conditions.some(({ on }) => on?.comparison.kind === 'none');
  if (impossible || query.limit === 0) {
    return [{ rank: Rank.nothing, access: { kind: 'nothing' }, covered: [], ordered: true }];
  }
  const planner = new Planner(state, query, effectiveOrder(state.shape.primaryKey, query));
  planner.add();
  return planner.candidates;
}

/** The plan that the rules prefer. */
export function planQuery(state: TableState, query: CompiledQuery): Plan {
  const candidates = candidatesFor(state, query);
  let best = candidates[0] as Candidate;
  for (const candidate of candidates) if (candidate.rank < best.rank) best = candidate;
  const { covered } = best;
  const residual =
    covered.length === 0 ? query.conditions : query.conditions.filter((condition) => !covered.includes(condition));
  return { ...best, residual, order: new RowOrder(state.shape, effectiveOrder(state.shape.primaryKey, query)) };
}
