/** How a query can come by its rows: the accesses that there are. Operators know nothing of planning but the plan. */
import type { LayoutField } from '../format/row-layout.ts';
import type { TableIndex } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { Condition } from './condition.ts';
import { intersectRanges, keyAccess, rangeOfComponent } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import type { OrderField } from './row-order.ts';

/** A compiled query. */
export interface CompiledQuery {
  readonly conditions: readonly Condition[];
  /** As asked for; the primary key, ascending, decides between rows that tie. */
  readonly order: readonly OrderField[];
  readonly limit: number | undefined;
  readonly offset: number;
  /** Whether only the number of rows is wanted. */
  readonly counts?: boolean;
}

/** The table's tree, or a range of it. */
export interface TableAccess {
  readonly kind: 'table';
  readonly range: KeyRange;
  readonly descending: boolean;
}

/** Entries of an index. */
export interface IndexAccess {
  readonly kind: 'index';
  readonly index: TableIndex;
  /** Whether all entries are of one value; they are then read by primary key, in the direction given. */
  readonly oneValue: boolean;
  /** Ascending, also where the access descends. */
  readonly ranges: readonly KeyRange[];
  readonly descending: boolean;
}

/** Where rows come from. `keys`: single rows, by primary key. */
export type Access =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'keys'; readonly keys: readonly Uint8Array[] }
  | TableAccess
  | IndexAccess;

/** A way to come by all rows that match. */
export interface Candidate {
  readonly access: Access;
  /** Conditions that the access fulfils by itself. */
  readonly covered: readonly Condition[];
  /** Whether its rows come in the order that is asked for. */
  readonly ordered: boolean;
}

export interface Plan extends Candidate {
  /** The order asked for, without the fields that decide nothing. */
  readonly order: readonly OrderField[];
  /** Conditions that rows must still be tested for. */
  readonly residual: readonly Condition[];
}

/** The order without the fields that decide nothing: those that a condition fixes, and all behind the primary key. */
export function effectiveOrder(primaryKey: LayoutField, { conditions, order }: CompiledQuery): readonly OrderField[] {
  if (order.length === 0) return order;
  const fixed = new Set<LayoutField>();
  for (const { on } of conditions) {
    if (on === undefined) continue;
    const { comparison } = on;
    if (comparison.kind === 'null' || (comparison.kind === 'value' && comparison.operator === '=')) fixed.add(on.field);
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

interface FieldAccess {
  /** Undefined if the conditions contradict each other. */
  readonly keys: KeyAccess | undefined;
  readonly covered: readonly Condition[];
}

/** The best that the conditions on a field give for an access by its keys; undefined if they give nothing. */
function accessByField(field: LayoutField, conditions: readonly Condition[]): FieldAccess | undefined {
  let values: FieldAccess | undefined;
  let count = Number.POSITIVE_INFINITY;
  let range: KeyRange | undefined;
  const covered: Condition[] = [];
  for (const condition of conditions) {
    if (condition.on?.field !== field) continue;
    const keys = keyAccess(field.typeId, condition.on.comparison);
    if (keys?.kind === 'values' && keys.components.length < count) {
      count = keys.components.length;
      values = { keys, covered: keys.exact ? [condition] : [] };
    }
    if (keys?.kind !== 'range') continue;
    const both = range === undefined ? keys.range : intersectRanges(range, keys.range);
    if (both === undefined) return { keys: undefined, covered: [] };
    range = both;
    if (keys.exact) covered.push(condition);
  }
  if (values !== undefined) return values;
  // Whether all of it is exact does not matter here: what is not covered is tested.
  return range === undefined ? undefined : { keys: { kind: 'range', range, exact: false }, covered };
}

type Direction = 'ascending' | 'descending';

/** The direction of an order by one field alone, if that is what is asked for. */
function directionOf(order: readonly OrderField[], field: LayoutField): Direction | undefined {
  const only = order[0];
  if (order.length !== 1 || only?.field !== field) return undefined;
  return only.descending ? 'descending' : 'ascending';
}

class Planner {
  readonly #state: TableState;
  readonly #query: CompiledQuery;
  readonly #order: readonly OrderField[];
  readonly #keyDirection: Direction | undefined;
  readonly candidates: Candidate[] = [];

  constructor(state: TableState, query: CompiledQuery, order: readonly OrderField[]) {
    this.#state = state;
    this.#query = query;
    this.#order = order;
    // Without any order, rows come by ascending primary key.
    this.#keyDirection = order.length === 0 ? 'ascending' : directionOf(order, state.shape.primaryKey);
    this.#addKeys();
    // Nothing is better than the row itself.
    if (isBest(this.candidates[0] as Candidate)) return;
    for (const index of state.shape.indexes) {
      // A version of the table that is still being built up may not have all of its indexes yet.
      if (state.indexes.has(index.name)) this.#addIndex(index);
    }
  }

  #add(access: Access, ordered: boolean, covered: readonly Condition[] = []): void {
    this.candidates.push({ access, ordered, covered });
  }

  #addKeys(): void {
    const found = accessByField(this.#state.shape.primaryKey, this.#query.conditions);
    const ordered = this.#keyDirection !== undefined;
    const descending = this.#keyDirection === 'descending';
    if (found === undefined) {
      this.#add({ kind: 'table', range: {}, descending }, ordered);
      return;
    }
    const { keys, covered } = found;
    if (keys === undefined) this.#add({ kind: 'nothing' }, true);
    else if (keys.kind === 'range') {
      this.#add({ kind: 'table', range: keys.range, descending }, ordered, covered);
    } else {
      const one = keys.components.length === 1;
      const list = descending ? keys.components.toReversed() : keys.components;
      this.#add({ kind: 'keys', keys: list }, ordered || one, covered);
    }
  }

  #addIndex(index: TableIndex): void {
    const found = accessByField(index.field, this.#query.conditions);
    const direction = directionOf(this.#order, index.field);
    const ordered = direction !== undefined;
    const descending = direction === 'descending';
    if (found === undefined) {
      if (!ordered || this.#query.limit === undefined) return;
      this.#add({ kind: 'index', index, oneValue: false, ranges: [{}], descending }, true);
      return;
    }
    const { keys, covered } = found;
    if (keys === undefined) this.#add({ kind: 'nothing' }, true);
    else if (keys.kind === 'range') {
      const access: Access = { kind: 'index', index, oneValue: false, ranges: [keys.range], descending };
      this.#add(access, ordered, covered);
    } else {
      const ranges = keys.components.map(rangeOfComponent);
      if (ranges.length > 1) {
        this.#add({ kind: 'index', index, oneValue: false, ranges, descending }, ordered, covered);
        return;
      }
      const byKey = this.#keyDirection;
      const access: Access = { kind: 'index', index, oneValue: true, ranges, descending: byKey === 'descending' };
      this.#add(access, byKey !== undefined, covered);
    }
  }
}

/** The accesses that a query could use. There is always one. `order` is the effective one. */
export function candidatesFor(state: TableState, query: CompiledQuery, order: readonly OrderField[]): Candidate[] {
  const impossible = query.conditions.some(({ on }) => on?.comparison.kind === 'none');
  if (impossible || query.limit === 0) {
    return [{ access: { kind: 'nothing' }, covered: [], ordered: true }];
  }
  return new Planner(state, query, order).candidates;
}

/** Whether nothing can be better: no rows at all, or the one row by its key. */
export function isBest({ access }: Candidate): boolean {
  return access.kind === 'nothing' || (access.kind === 'keys' && access.keys.length === 1);
}

/** The conditions that rows of an access must still be tested for. */
export function residualOf({ conditions }: CompiledQuery, covered: readonly Condition[]): readonly Condition[] {
  return conditions.filter((condition) => condition.on?.comparison.kind !== 'all' && !covered.includes(condition));
}
