/**
 * How a query comes by its rows: which accesses there are, and by rule the one that looks best. Planning reads nothing;
 * operators know nothing of it but the plan.
 */
import type { LayoutField } from '../format/row-layout.ts';
import type { TableIndex } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { Condition } from './condition.ts';
import { directionOf, indexRanges } from './index-ranges.ts';
import type { FieldAccess } from './index-ranges.ts';
import { intersectRanges, keyAccess } from './key-ranges.ts';
import type { OrderField } from './row-order.ts';

/** A compiled query. */
export interface CompiledQuery {
  readonly conditions: readonly Condition[];
  /** As asked for; the primary key, ascending, decides between rows that tie. */
  readonly order: readonly OrderField[];
  readonly limit: number | undefined;
  readonly offset: number;
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
  /** Whether all entries are of one value in each field; they are then read by primary key, in the direction given. */
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
  /** The order asked for, without the fields that decide nothing. */
  readonly order: readonly OrderField[];
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

/** The fields that have one value, or null, in all rows that match. */
function fixedFields({ conditions }: CompiledQuery): Set<LayoutField> {
  const fixed = new Set<LayoutField>();
  for (const { on } of conditions) {
    if (on === undefined) continue;
    const { comparison } = on;
    if (comparison.kind === 'null' || (comparison.kind === 'value' && comparison.operator === '=')) fixed.add(on.field);
  }
  return fixed;
}

/** The order without the fields that decide nothing: those that a condition fixes, and all behind the primary key. */
function effectiveOrder(primaryKey: LayoutField, query: CompiledQuery): readonly OrderField[] {
  const { order } = query;
  const fixed = fixedFields(query);
  const effective: OrderField[] = [];
  for (const by of order) {
    if (fixed.has(by.field)) continue;
    effective.push(by);
    if (by.field === primaryKey) break;
    fixed.add(by.field);
  }
  return effective;
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

/** What an index is better for than its rank says: for each further field that it narrows down, and for its order. */
const Bonus = { field: 0.1, order: 0.07 } as const;
/** Of two indexes that narrow down alike, the one without further fields gives rows of a value by primary key. */
const furtherFields = 0.05;

class Planner {
  readonly #state: TableState;
  readonly #query: CompiledQuery;
  readonly #order: readonly OrderField[];
  readonly #fixed: ReadonlySet<LayoutField>;
  readonly #keyDirection: 'ascending' | 'descending' | undefined;
  readonly candidates: Candidate[] = [];

  constructor(state: TableState, query: CompiledQuery, order: readonly OrderField[]) {
    this.#state = state;
    this.#query = query;
    this.#order = order;
    this.#fixed = fixedFields(query);
    // Without any order, rows come by ascending primary key.
    const [first] = order;
    if (first === undefined) this.#keyDirection = 'ascending';
    else if (first.field === state.shape.primaryKey) {
      this.#keyDirection = first.descending ? 'descending' : 'ascending';
    }
    this.#addKeys();
    // Nothing is better than the row itself.
    if (this.candidates[0]?.rank === Rank.primaryKey) return;
    for (const index of state.shape.indexes) {
      // A version of the table that is still being built up may not have all of its indexes yet.
      if (state.indexes.has(index.name)) this.#addIndex(index);
    }
  }

  #add(rank: number, access: Access, ordered: boolean, covered: readonly Condition[] = []): void {
    this.candidates.push({ rank, access, ordered, covered });
  }

  #addKeys(): void {
    const found = accessByField(this.#state.shape.primaryKey, this.#query.conditions);
    const ordered = this.#keyDirection !== undefined;
    const descending = this.#keyDirection === 'descending';
    if (found === undefined) {
      this.#add(Rank.scan, { kind: 'table', range: {}, descending }, ordered);
      return;
    }
    const { keys, covered } = found;
    if (keys === undefined) this.#add(Rank.nothing, { kind: 'nothing' }, true);
    else if (keys.kind === 'range') {
      this.#add(Rank.primaryKeyRange, { kind: 'table', range: keys.range, descending }, ordered, covered);
    } else {
      const one = keys.components.length === 1;
      const list = descending ? keys.components.toReversed() : keys.components;
      this.#add(one ? Rank.primaryKey : Rank.primaryKeyList, { kind: 'keys', keys: list }, ordered || one, covered);
    }
  }

  #addIndex(index: TableIndex): void {
    const { conditions, limit } = this.#query;
    const byField = index.fields.map((field) => accessByField(field, conditions));
    const found = indexRanges(byField);
    if (found === undefined) {
      this.#add(Rank.nothing, { kind: 'nothing' }, true);
      return;
    }
    const { ranges, covered, used, oneValue } = found;
    const direction = oneValue ? this.#keyDirection : this.#directionOf(index);
    const ordered = direction !== undefined;
    const access: Access = { kind: 'index', index, oneValue, ranges, descending: direction === 'descending' };
    if (used === 0) {
      if (ordered && limit !== undefined) this.#add(Rank.indexOrder, access, true);
      return;
    }
    let rank: number = Rank.indexRange;
    const first = byField[0]?.keys;
    if (first?.kind === 'values') rank = first.components.length > 1 ? Rank.indexList : Rank.indexEquality;
    rank -= (used - 1) * Bonus.field;
    if (used < index.fields.length) rank += furtherFields;
    if (ordered && this.#order.length > 0) rank -= Bonus.order;
    this.#add(rank, access, ordered, covered);
  }

  /** The direction in which the index gives the order that is asked for, by the fields that no condition fixes. */
  #directionOf(index: TableIndex): 'ascending' | 'descending' | undefined {
    const open = index.fields.filter((field) => !this.#fixed.has(field));
    return directionOf(this.#order, open, this.#state.shape.primaryKey);
  }
}

/** The accesses that a query could use. There is always one. `order` is the effective one. */
export function candidatesFor(state: TableState, query: CompiledQuery, order: readonly OrderField[]): Candidate[] {
  const impossible = query.conditions.some(({ on }) => on?.comparison.kind === 'none');
  if (impossible || query.limit === 0) {
    return [{ rank: Rank.nothing, access: { kind: 'nothing' }, covered: [], ordered: true }];
  }
  return new Planner(state, query, order).candidates;
}

/** The plan that the rules prefer. */
export function planQuery(state: TableState, query: CompiledQuery): Plan {
  const order = query.order.length === 0 ? query.order : effectiveOrder(state.shape.primaryKey, query);
  const candidates = candidatesFor(state, query, order);
  let best = candidates[0] as Candidate;
  for (const candidate of candidates) if (candidate.rank < best.rank) best = candidate;
  const { rank, access, covered, ordered } = best;
  const residual = query.conditions.filter(
    (condition) => condition.on?.comparison.kind !== 'all' && !covered.includes(condition),
  );
  return { rank, access, covered, ordered, residual, order };
}
