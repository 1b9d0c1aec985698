/** Access paths: the ways in which a query can read its rows. Of the planner, operators know only the plan. */
import { concatBytes } from '../../base/bytes.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { isUsable } from '../../view/index-version.ts';
import { isOfElements } from '../../schema/table-shape.ts';
import type { TableIndex, TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { Condition } from '../conditions/condition.ts';
import { AnyCondition, opposedTo } from '../conditions/any-condition.ts';
import { entryUseOf, mayHoldAll } from './covering-index.ts';
import { insideOf, directionOf, indexRanges, keyDirectionOf, keyParts, rangesOf } from '../conditions/index-ranges.ts';
import type { FieldAccess, KeyDirection } from '../conditions/index-ranges.ts';
import type { EntryUse, TakenFields } from './covering-index.ts';
import { areFew, commonComponents, componentsIn, intersectAll } from '../conditions/key-ranges.ts';
import type { KeyAccess } from '../conditions/key-ranges.ts';
import { PositionCondition } from '../conditions/keyset-position.ts';
import type { RankedPlace } from '../conditions/search-options.ts';
import type { OrderField } from '../conditions/row-order.ts';
import { TupleCondition, TupleRangeCondition } from '../conditions/tuple-condition.ts';

/** A compiled query. */
export interface CompiledQuery {
  readonly conditions: readonly Condition[];
  /** The order asked for. The primary key, ascending, decides between rows that tie. */
  readonly order: readonly OrderField[];
  readonly limit: number | undefined;
  readonly offset: number;
  /** Whether only the number of rows is wanted. */
  readonly counts?: boolean;
  /** Whether rows may come in any order. */
  readonly unordered?: boolean;
  /** How many rows may be held for a sort if some access has the order: a few or none. Undefined: any number. */
  readonly sorts?: 'few' | 'none' | undefined;
  /** Undefined: whole rows. */
  readonly takes?: TakenFields | undefined;
  /**
   * The conditions that may be split into a union of accesses, one for each branch. Undefined: all. A part of a union splits only the
   * conditions of its own branch: if it split the others as well, the number of plans would multiply with each of them.
   */
  readonly splits?: readonly Condition[] | undefined;
}

/** The table's tree, or ranges of it. */
export interface TableAccess {
  readonly kind: 'table';
  /** Ascending and disjoint, also where the access descends. */
  readonly ranges: readonly KeyRange[];
  readonly descending: boolean;
}

/** Entries of an index. */
export interface IndexAccess {
  readonly kind: 'index';
  readonly index: TableIndex;
  /** Whether all entries have the same value in each field. They are then read by primary key, in the direction given. */
  readonly oneValue: boolean;
  /** Whether all entries of a range have the same value in the first field. */
  readonly ofValues: boolean;
  /** Ascending, also where the access descends. */
  readonly ranges: readonly KeyRange[];
  readonly descending: boolean;
}

/** Rows that several indexes have entries for. */
export interface IntersectionAccess {
  readonly kind: 'intersection';
  /** The index that is scanned. Rows come in its order. */
  readonly first: IndexAccess;
  readonly others: readonly IndexAccess[];
  /** Conditions that the first one fulfils by itself. */
  readonly firstCovers: readonly Condition[];
}

/** Several accesses. No row is in more than one of them, since each leaves out the rows of earlier ones. */
export interface UnionAccess {
  readonly kind: 'union';
  readonly parts: readonly { readonly query: CompiledQuery; readonly plan: Plan }[];
}

/** Rows that a search has found, the best ones first. */
export interface RankedAccess {
  readonly kind: 'search';
  readonly index: TableIndex;
  /** The number of rows that were found. */
  readonly total: number;
  /** Describes the steps in the index and in a table. */
  describe(table: string): readonly [index: string, table: string];
  /** Opens a `RowStream` of them. Only once. */
  open(state: TableState, filter: object, work: object): object;
  /** Returns the place of a row that was read, for pages. */
  placeOf?(key: Uint8Array): RankedPlace;
}

/** The source of rows. `keys`: single rows, by primary key. */
export type Access =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'keys'; readonly keys: readonly Uint8Array[] }
  | TableAccess
  | IndexAccess
  | IntersectionAccess
  | UnionAccess
  | RankedAccess;

/** Returns the names of the indexes that an access reads entries of. An intersection names one twice of which it reads two lists. */
export function indexesOf(access: Access): string[] {
  if (access.kind === 'intersection') return [access.first, ...access.others].map(({ index }) => index.name);
  if (access.kind === 'union') return [...new Set(access.parts.flatMap(({ plan }) => indexesOf(plan.access)))];
  return 'index' in access ? [access.index.name] : [];
}

/** A candidate plan: an access that gives all matching rows. */
export interface Candidate {
  readonly access: Access;
  /** Conditions that the access fulfils by itself. */
  readonly covered: readonly Condition[];
  /** The residual conditions, for which rows must still be tested. */
  readonly residual: readonly Condition[];
  /** Whether its rows come in the order asked for. */
  readonly ordered: boolean;
  /** The use of its index entries beyond their primary keys; undefined: none. */
  readonly use?: EntryUse | undefined;
}

/** Adds up the time that a plan without reads loses against one that reads an index first. */
export interface DeferredRead {
  /** Counts one more use. Returns true once the sum reaches the cost of the reads of the other plan. */
  use(): boolean;
}

export interface Plan extends Candidate {
  /** The effective order: the order asked for, without fields that decide nothing. */
  readonly order: readonly OrderField[];
  /** Counts the uses of a plan that defers the read of an index. */
  readonly deferred?: DeferredRead | undefined;
}

/** The most parts of a union, each of which tests for all earlier ones. More branches are tested row by row. */
const maxParts = 32;
/** The most parts of unions that are planned for one query. Conditions with the fewest branches come first. */
const maxPlannedParts = 64;
/** The most conditions in all these parts. Each part has the conditions of the whole query, and those of the parts before it. */
const maxPlannedConditions = 200_000;
/** The most conditions on elements for which an index is a candidate. Rows are tested for the others. */
const maxElements = 8;
const noBytes = new Uint8Array(0);
/** The number of conditions that a key range may come from. Rows are tested for the others. */
const mostHelpful = 1024;

/** Returns the fields that have one value, or null, in all matching rows. */
function fixedFields({ conditions }: CompiledQuery): Set<LayoutField> {
  const fixed = new Set<LayoutField>();
  for (const { on } of conditions) {
    if (on === undefined) continue;
    const { comparison } = on;
    if (comparison.kind === 'null' || (comparison.kind === 'value' && comparison.operator === '=')) fixed.add(on.field);
  }
  return fixed;
}

/** Returns the order without fields that decide nothing: fields that a condition fixes, and all fields after the primary key. */
export function effectiveOrder({ keyFields }: TableShape, query: CompiledQuery): readonly OrderField[] {
  const { order } = query;
  if (order.length === 0) return order;
  const fixed = fixedFields(query);
  const effective: OrderField[] = [];
  for (const by of order) {
    if (fixed.has(by.field)) continue;
    effective.push(by);
    fixed.add(by.field);
    if (keyFields.includes(by.field) && keyFields.every((field) => fixed.has(field))) break;
  }
  return effective;
}

/** Returns the direction in which a query orders rows by primary key; undefined if it asks for another order. */
export function keyOrderOf(shape: TableShape, query: CompiledQuery): KeyDirection {
  const fixed = fixedFields(query);
  return keyDirectionOf(effectiveOrder(shape, query), openOf(shape.keyFields, fixed));
}

/** Returns the fields that no condition fixes. */
function openOf(fields: readonly LayoutField[], fixed: ReadonlySet<LayoutField>): readonly LayoutField[] {
  return fixed.size === 0 ? fields : fields.filter((field) => !fixed.has(field));
}

/**
 * Returns the key access that the conditions allow for each field of a key, or undefined for fields that they do not narrow. A list of
 * tuples on the first fields is one access for all of them; other conditions on these fields are tested on rows.
 */
function accessesBy(
  fields: readonly LayoutField[],
  tree: 'table' | 'index',
  conditions: readonly Condition[],
): (FieldAccess | undefined)[] {
  // Most keys have one field.
  const [first] = fields as [LayoutField];
  if (fields.length === 1) return [accessBy((condition) => condition.keysBy(first, tree), conditions)];
  const tuples = tuplesOf(fields, conditions);
  if (tuples === undefined) return accessesSingly(fields, tree, conditions);
  const count = tuples.fields.length;
  const keys = tuples.keysOver(fields.slice(0, count));
  return [{ keys, covered: keys.exact ? [tuples] : [] }, ...accessesSingly(fields.slice(count), tree, conditions)];
}

/** Returns the accesses by single fields. A row comparison gives a range of its first field, or of the next one after its value. */
function accessesSingly(
  fields: readonly LayoutField[],
  tree: 'table' | 'index',
  conditions: readonly Condition[],
): (FieldAccess | undefined)[] {
  const hasRanges = conditions.some((condition) => condition instanceof TupleRangeCondition);
  /** The components of the fields before this one, if they have single values. */
  let values: readonly Uint8Array[] = [];
  return fields.map((field, i) => {
    const before = values;
    const keysOf = (condition: Condition): KeyAccess | undefined => {
      if (!(condition instanceof TupleRangeCondition)) return condition.keysBy(field, tree);
      const at = fields.indexOf(condition.fields[0] as LayoutField);
      const count = i - at;
      if (at < 0 || count < 0 || count > before.length) return undefined;
      if (count === 0) return condition.keysOver(fields.slice(i));
      const begin = before.slice(-count).reduce(concatBytes);
      return condition.keysBehind(begin, fields.slice(at));
    };
    const access = accessBy(keysOf, conditions);
    if (hasRanges) {
      const single = access?.keys?.kind === 'values' && access.keys.components.length === 1;
      values = single ? [...before, access.keys.components[0] as Uint8Array] : [];
    }
    return access;
  });
}

function tuplesOf(fields: readonly LayoutField[], conditions: readonly Condition[]): TupleCondition | undefined {
  return conditions.find(
    (condition): condition is TupleCondition =>
      condition instanceof TupleCondition && condition.isOf(fields.slice(0, condition.fields.length)),
  );
}

/** Returns the condition that rows come after a position; undefined if there is none. */
function positionIn(conditions: readonly Condition[]): PositionCondition | undefined {
  return conditions.find((condition) => condition instanceof PositionCondition);
}

/** Returns the access by the fields that the keys begin with. */
function accessBy(
  keysOf: (condition: Condition) => KeyAccess | undefined,
  conditions: readonly Condition[],
): FieldAccess | undefined {
  let components: readonly Uint8Array[] | undefined;
  /** The ranges of the components. */
  let componentRanges: readonly KeyRange[] | undefined;
  let ranges: readonly KeyRange[] | undefined;
  let covered: Condition[] = [];
  let coveredByRanges: Condition[] = [];
  let left = mostHelpful;
  for (const condition of conditions) {
    const keys = keysOf(condition);
    if (keys === undefined) continue;
    if (left-- === 0) break;
    if (keys.kind === 'values') {
      if (components === undefined || areFew(components, keys.components)) {
        componentRanges = components === undefined ? keys.ranges : undefined;
        components = components === undefined ? keys.components : commonComponents(components, keys.components);
      } else if (keys.components.length < components.length) {
        ({ components, ranges: componentRanges } = keys);
        covered = [];
      } else continue;
      if (keys.exact) covered.push(condition);
    } else {
      if (ranges === undefined || areFew(ranges, keys.ranges)) {
        ranges = ranges === undefined ? keys.ranges : intersectAll(ranges, keys.ranges);
      } else if (keys.ranges.length < ranges.length) {
        ({ ranges } = keys);
        coveredByRanges = [];
      } else continue;
      if (keys.exact) coveredByRanges.push(condition);
    }
  }
  // Exactness does not matter here: conditions that are not covered are tested.
  if (components === undefined) {
    if (ranges === undefined) return undefined;
    if (ranges.length === 0) return { keys: undefined, covered: [] };
    return { keys: { kind: 'ranges', ranges, exact: false }, covered: coveredByRanges };
  }
  const within = ranges === undefined || !areFew(components, ranges) ? components : componentsIn(components, ranges);
  if (within.length === 0) return { keys: undefined, covered: [] };
  const withinRanges = within === components ? componentRanges : undefined;
  return { keys: { kind: 'values', components: within, ranges: withinRanges, exact: false }, covered };
}

/** Plans a part of another query. */
export type PartPlanner = (state: TableState, query: CompiledQuery) => Plan;

function isWholeTable(access: Access): boolean {
  return access.kind === 'table' && access.ranges.some(({ from, to }) => from === undefined && to === undefined);
}

class Planner {
  readonly #state: TableState;
  readonly #query: CompiledQuery;
  readonly #order: readonly OrderField[];
  readonly #fixed: ReadonlySet<LayoutField>;
  readonly #keyFields: readonly LayoutField[];
  readonly #keyDirection: KeyDirection;
  readonly #planPart: PartPlanner;
  readonly candidates: Candidate[] = [];

  constructor(state: TableState, query: CompiledQuery, order: readonly OrderField[], planPart: PartPlanner) {
    this.#planPart = planPart;
    this.#state = state;
    this.#query = query;
    this.#order = order;
    this.#fixed = fixedFields(query);
    this.#keyFields = openOf(state.shape.keyFields, this.#fixed);
    this.#keyDirection = keyDirectionOf(order, this.#keyFields);
    this.#addKeys();
    // No access is better than the row itself.
    if (isBest(this.candidates[0] as Candidate)) return;
    this.#addUnions();
    for (const index of state.shape.indexes) {
      // A version of the table that is being built may not have all of its indexes yet.
      if (state.indexes.has(index.name)) this.#addIndexes(index);
    }
    for (const indexVersion of state.indexVersions) if (isUsable(indexVersion)) this.#addIndexes(indexVersion.index);
  }

  #add(access: Access, ordered: boolean, covered: readonly Condition[] = []): void {
    this.candidates.push({ access, ordered, covered, residual: residualOf(this.#query, covered) });
  }

  #addKeys(): void {
    const { keyFields } = this.#state.shape;
    const { conditions } = this.#query;
    const accesses = accessesBy(keyFields, 'table', conditions);
    const parts = keyParts(accesses);
    if (parts === undefined) {
      this.#add({ kind: 'nothing' }, true);
      return;
    }
    const ordered = this.#keyDirection !== undefined;
    const descending = this.#keyDirection === 'descending';
    const position = positionIn(conditions);
    const behind = position?.keysWithin(noBytes);
    const { values, covered } = parts;
    if (parts.valued === accesses.length) {
      // Conditions that are not covered are tested.
      const within = behind === undefined ? values : componentsIn(values, [behind]);
      const list = descending ? within.toReversed() : within;
      if (list.length === 0) this.#add({ kind: 'nothing' }, true);
      else this.#add({ kind: 'keys', keys: list }, ordered || list.length === 1, covered);
      return;
    }
    const all = rangesOf(parts);
    if (behind === undefined) this.#add({ kind: 'table', ranges: all, descending }, ordered, covered);
    else {
      const ranges = intersectAll(all, [behind]);
      if (ranges.length === 0) this.#add({ kind: 'nothing' }, true);
      else this.#add({ kind: 'table', ranges, descending }, ordered, [...covered, position as Condition]);
    }
  }

  /** Adds a union for each condition whose branches all have an access of their own. */
  #addUnions(): void {
    for (const condition of splitConditions(this.#query)) {
      const parts = this.#partsOf(condition);
      if (parts !== undefined) this.#add({ kind: 'union', parts }, false, this.#query.conditions);
    }
  }

  /** Plans each branch of a condition. Returns undefined if one scans the whole table, since that scan could test for all others. */
  #partsOf(condition: AnyCondition): UnionAccess['parts'] | undefined {
    const { branches } = condition;
    const others = this.#query.conditions.filter((other) => other !== condition);
    const takes = this.#takenFromParts();
    const parts: UnionAccess['parts'][number][] = [];
    for (const [i, branch] of branches.entries()) {
      const earlier = i === 0 ? [] : [opposedTo(branches.slice(0, i))];
      const conditions = [...branch, ...others, ...earlier];
      const splits = branch;
      const query: CompiledQuery = {
        conditions,
        order: [],
        limit: undefined,
        offset: 0,
        unordered: true,
        takes,
        splits,
      };
      const plan = this.#planPart(this.#state, query);
      if (isWholeTable(plan.access)) return undefined;
      parts.push({ query, plan });
    }
    return parts;
  }

  /** Returns the fields taken from the rows of a part, including the fields of the order. */
  #takenFromParts(): TakenFields | undefined {
    const { takes } = this.#query;
    return takes && { ...takes, fields: [...takes.fields, ...this.#order.map(({ field }) => field)] };
  }

  #useOf(index: TableIndex, residual: readonly Condition[]): EntryUse | undefined {
    return entryUseOf(this.#state, this.#query.takes, index, residual, this.#order);
  }

  /** Adds an index. One with entries for elements finds the rows that have one element: it is a candidate for each condition on one. */
  #addIndexes(index: TableIndex): void {
    if (!isOfElements(index)) {
      this.#addIndex(index);
      return;
    }
    const { conditions } = this.#query;
    const { each, result } = index;
    // Ranges of other elements, such as those of `HAS ANY`, have nothing in common with those of one, and rows may have both.
    const isOnElements = (condition: Condition): boolean =>
      (each !== undefined && condition.keysBy(each, 'index') !== undefined) ||
      (result !== undefined && condition.keysByResult(result) !== undefined);
    const elements = conditions.filter((condition) => condition.isElementIn(index));
    for (const element of elements.slice(0, maxElements)) {
      this.#addIndex(
        index,
        conditions.filter((condition) => condition === element || !isOnElements(condition)),
      );
    }
  }

  /** `asked`: the conditions that its ranges may come from. */
  #addIndex(index: TableIndex, asked: readonly Condition[] = this.#query.conditions): void {
    const { limit, counts } = this.#query;
    // In an index with several fields, a position in an order by one field and the primary key gives no range.
    const conditions =
      index.fields.length === 1 || !asked.some((condition) => condition instanceof PositionCondition)
        ? asked
        : asked.filter((condition) => !(condition instanceof PositionCondition));
    const { result } = index;
    const accesses =
      result === undefined
        ? accessesBy(index.fields, 'index', conditions)
        : [accessBy((condition) => condition.keysByResult(result), conditions)];
    const found = indexRanges(accesses);
    if (found === undefined) {
      this.#add({ kind: 'nothing' }, true);
      return;
    }
    const inside = index.where === undefined ? [] : insideOf(index.where, this.#query.conditions);
    // A row that matches may have no entry.
    if (inside === undefined) return;
    const { used, oneValue, ofValues } = found;
    // Without the element, a row has several entries in the ranges.
    if (index.each !== undefined && used <= index.fields.indexOf(index.each)) return;
    const direction = oneValue ? this.#keyDirection : this.#directionOf(index);
    const ordered = direction !== undefined;
    const descending = direction === 'descending';
    if (used === 0) {
      // No query orders rows by the result of a function.
      if (result !== undefined) return;
      // Reading all of an index pays where it is in order and few rows are wanted, or where it is read instead of the table.
      const isShort = ordered && (limit !== undefined || this.#query.sorts !== undefined);
      // A partial index has only the rows that its condition selects.
      const isPaying = isShort || index.where !== undefined;
      if (!isPaying && !mayHoldAll(this.#state.shape, this.#query.takes, index)) return;
      const residual = residualOf(this.#query, inside);
      const use = this.#useOf(index, residual);
      const isInstead = use?.only === true && (counts !== true || asked.length > 0);
      if (!isInstead && !isPaying) return;
      const access: Access = { kind: 'index', index, oneValue, ofValues, ranges: found.ranges, descending };
      this.candidates.push({ access, ordered, covered: inside, residual, use });
      return;
    }
    const position = positionIn(this.#query.conditions);
    // Rows of one value come by primary key, so the range can begin after a primary key.
    const behind = oneValue ? position?.keysWithin((found.ranges[0] as KeyRange).from as Uint8Array) : undefined;
    const ranges = behind === undefined ? found.ranges : intersectAll(found.ranges, [behind]);
    const byKeys = behind === undefined ? found.covered : [...found.covered, position as Condition];
    const covered = inside.length === 0 ? byKeys : [...new Set([...byKeys, ...inside])];
    const access: Access =
      ranges.length === 0 ? { kind: 'nothing' } : { kind: 'index', index, oneValue, ofValues, ranges, descending };
    const residual = residualOf(this.#query, covered);
    this.candidates.push({ access, ordered, covered, residual, use: this.#useOf(index, residual) });
  }

  /** Returns the direction in which the index has the order asked for, by the fields that no condition fixes. */
  #directionOf(index: TableIndex): 'ascending' | 'descending' | undefined {
    const fixed = index.each === undefined ? this.#fixed : new Set([...this.#fixed, index.each]);
    return directionOf(this.#order, openOf(index.fields, fixed), this.#keyFields);
  }
}

/** Returns the conditions to split into unions: the ones with the fewest branches, up to the limits. */
function splitConditions({ conditions, splits = conditions }: CompiledQuery): AnyCondition[] {
  const all = splits.filter((condition): condition is AnyCondition => condition instanceof AnyCondition);
  if (all.length === 0) return all;
  const size = conditions.reduce((sum, condition) => sum + condition.size, 0);
  let left = Math.min(maxPlannedParts, Math.floor(maxPlannedConditions / Math.max(1, size)));
  const chosen = new Set<AnyCondition>();
  for (const condition of all.toSorted((a, b) => a.branches.length - b.branches.length)) {
    const count = condition.branches.length;
    if (count > maxParts || count > left) break;
    left -= count;
    chosen.add(condition);
  }
  return all.filter((condition) => chosen.has(condition));
}

/** Returns the candidate plans of a query, at least one. `order`: the effective order. */
export function candidatesFor(
  state: TableState,
  query: CompiledQuery,
  order: readonly OrderField[],
  planPart: PartPlanner,
): Candidate[] {
  const impossible = query.conditions.some(({ isImpossible }) => isImpossible);
  if (impossible || query.limit === 0) {
    return [{ access: { kind: 'nothing' }, covered: [], residual: residualOf(query, []), ordered: true }];
  }
  return new Planner(state, query, order, planPart).candidates;
}

/** Returns the only candidate, or one that no other can beat; undefined if costs must decide. */
export function obviousOf(candidates: readonly Candidate[]): Candidate | undefined {
  return candidates.length === 1 ? candidates[0] : candidates.find((candidate) => isBest(candidate));
}

/** Whether no candidate can be better: it reads nothing, or one row by its key. */
function isBest({ access }: Candidate): boolean {
  return access.kind === 'nothing' || (access.kind === 'keys' && access.keys.length === 1);
}

/** The most conditions that are searched without a set. */
const fewCovered = 8;

/** Returns the residual conditions: those of the query that an access does not cover. */
export function residualOf({ conditions }: CompiledQuery, covered: readonly Condition[]): readonly Condition[] {
  if (covered.length <= fewCovered) return conditions.filter((one) => !one.isEmpty && !covered.includes(one));
  const isCovered = new Set(covered);
  return conditions.filter((condition) => !condition.isEmpty && !isCovered.has(condition));
}

/** Whether the entries of both come by primary key, so that they can be merged without holding keys in memory. */
export function isMerged(first: IndexAccess, other: IndexAccess): boolean {
  return first.oneValue && other.oneValue;
}
