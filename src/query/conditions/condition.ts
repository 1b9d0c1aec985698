/** The conditions of a query: as they are written, and compiled for a version of a table. */
import { isBytes, isDate } from '../../base/brands.ts';
import { InvalidOperatorError, InvalidQueryError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { nearestName } from '../../base/options.ts';
import { atOnce, itemsInStep, mapped } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import { isOfResultType, tagOther } from '../../format/ordered-key.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { typeName, Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { elementText, isListElement } from '../../schema/list-elements.ts';
import type { ListElement } from '../../schema/list-elements.ts';
import { callFunction } from '../../schema/registered-functions.ts';
import type { RegisteredFunction } from '../../schema/registered-functions.ts';
import type { FunctionResult, TableIndex, TableShape } from '../../schema/table-shape.ts';
import { compareField, comparingWithList, oppositeOf } from './comparison.ts';
import type { Comparison, ListOperator, Operator } from './comparison.ts';
import { accessingList, keyAccess, ofValue } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import {
  asNumber,
  IntervalSelector,
  NumberListSelector,
  signEqual,
  signsOf,
  BigintSelector,
  UuidSelector,
  uuidWords,
  wordsOf,
} from './number-selectors.ts';
import { ComplementSelector, Filter, NullSelector, selectAll, selectNothing, slowCost } from './filter.ts';
import type { Selector } from './filter.ts';
import { ElementSelector, joinElements, selectingElement } from './list-selectors.ts';
import { PathSelector } from './path-selector.ts';
import { PrefixSelector, headOf, textBytes, TextSelector } from './text-selectors.ts';

/** A condition as it was passed to `where`. */
export interface WrittenCondition {
  /** The name of a field or of a registered function. */
  readonly name: string;
  readonly operator: Exclude<Operator, 'HAS ANY' | 'HAS ALL'>;
  /** The value as it was passed. The result of a registered function is compared with it by `===`. */
  readonly value: unknown;
  /** A copy made at the call, so that changing an array, a Buffer or a Date afterwards has no effect. */
  readonly captured: unknown;
}

/** A condition on a field of one version of the table. */
export interface FieldCondition {
  readonly field: LayoutField;
  readonly comparison: Comparison;
}

/** A compiled condition. If it is not a comparison of one field, only its selector knows how it tests rows. */
export class Condition {
  /** The fields and functions that it tests. */
  readonly names: readonly string[];
  readonly on: FieldCondition | undefined;
  /** Whether it is known without reading that no row matches. */
  readonly isImpossible: boolean;
  /** Whether it is known without reading that every row matches. */
  readonly isEmpty: boolean;
  /** The fields that its selector reads; undefined if it needs the whole row. */
  readonly reads: readonly LayoutField[] | undefined;
  /** The number of conditions in it. */
  readonly size: number = 1;
  #selector: Selector | undefined;
  /** The key access of a list of values: a cache, since planning asks for it several times. */
  #listed: KeyAccess | undefined;

  constructor(
    names: readonly string[],
    on: FieldCondition | undefined,
    selector?: Selector,
    reads: readonly LayoutField[] | undefined = on && [on.field],
  ) {
    this.names = names;
    this.on = on;
    this.reads = reads;
    this.#selector = selector;
    this.isImpossible = on === undefined ? selector === selectNothing : on.comparison.kind === 'none';
    this.isEmpty = on?.comparison.kind === 'all';
  }

  /** Tests rows. It is made on first use, since an access by key often needs none. */
  get selector(): Selector {
    this.#selector ??= this.on === undefined ? selectAll : compileSelector(this.on.field, this.on.comparison);
    return this.#selector;
  }

  /** Whether its comparison has very many values, or it consists of other conditions. */
  get isLong(): boolean {
    const comparison = this.on?.comparison;
    return comparison === undefined || (comparison.kind === 'in' && comparison.values.length > itemsInStep);
  }

  /** Computes the key ranges and the selector in steps, since they take long for many values. */
  *preparing(_fields: PreparedFields): Steps<void> {
    if (this.on?.comparison.kind !== 'in') {
      void this.selector;
      return;
    }
    const { field, comparison } = this.on;
    this.#listed ??= yield* accessingList(field.typeId, comparison);
    this.#selector ??= yield* selectingValues(field, comparison);
  }

  /** Returns the keys that matching rows can have in a tree whose keys begin with a field's value; undefined for any key. */
  keysBy(field: LayoutField, _tree: 'table' | 'index'): KeyAccess | undefined {
    const selector = this.#selector;
    if (selector instanceof ElementSelector && selector.place === field.elementsOf) {
      return ofValue(Types.varchar, elementText(selector.elements[0] as ListElement));
    }
    if (this.on?.field !== field) return undefined;
    const { comparison } = this.on;
    if (comparison.kind !== 'in') return keyAccess(field.typeId, comparison);
    this.#listed ??= keyAccess(field.typeId, comparison) as KeyAccess;
    return this.#listed;
  }

  /** Returns the keys that matching rows can have in an index on a function; undefined for any key. */
  keysByResult(result: FunctionResult): KeyAccess | undefined {
    return this.#selector instanceof FunctionSelector ? this.#selector.keysBy(result) : undefined;
  }

  /** Whether it looks for an element, and an index has entries for the elements of the lists that it looks in. */
  isElementIn({ each, result }: TableIndex): boolean {
    if (result?.each === true) return this.keysByResult(result) !== undefined;
    const selector = this.#selector;
    return selector instanceof ElementSelector && selector.place === each?.elementsOf;
  }
}

/** The first fields of keys: of the table's tree, and of its indexes. */
export interface PreparedFields {
  readonly table: readonly LayoutField[];
  readonly index: readonly LayoutField[];
}

/** A condition that no row matches. */
export const noRow: Condition = new Condition([], undefined, selectNothing);

/** Returns a filter that keeps the rows for which all conditions hold. */
export function filterOf(conditions: readonly Condition[]): Filter {
  return new Filter(
    joinElements(
      conditions.map(({ selector }) => selector),
      false,
    ),
  );
}

/** Returns the names of the fields and functions that conditions test, without duplicates. */
export function namesIn(conditions: readonly Condition[]): string[] {
  if (conditions.length === 1) return [...(conditions[0] as Condition).names];
  const all = new Set<string>();
  for (const { names } of conditions) for (const name of names) all.add(name);
  return [...all];
}

/** Copies a compared value, so that the caller cannot change it any more. */
export function captureValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (isDate(value)) return new Date(value.getTime());
  if (isBytes(value)) return Uint8Array.from(value);
  if (!Array.isArray(value)) return value;
  const copy: unknown[] = [];
  // By index, so that a hole counts as undefined.
  for (let i = 0; i < value.length; i++) {
    const item: unknown = value[i];
    copy.push(typeof item !== 'object' || Array.isArray(item) ? item : captureValue(item));
  }
  return copy;
}

/** Returns the selector of a comparison. */
export function compileSelector(field: LayoutField, comparison: Comparison): Selector {
  if (comparison.kind === 'all') return selectAll;
  if (comparison.kind === 'none') return selectNothing;
  if (field.path !== undefined) return new PathSelector(field, comparison);
  switch (comparison.kind) {
    case 'null':
    case 'not null':
      return new NullSelector(field, comparison.kind === 'null');
    case 'prefix':
      return new PrefixSelector(field, comparison.value);
    case 'in':
    case 'value':
      return atOnce(selectingValues(field, comparison));
  }
}

/** Makes the selector of a comparison with values in steps, since a list may be long. */
function* selectingValues(
  field: LayoutField,
  comparison: Extract<Comparison, { readonly kind: 'in' | 'value' }>,
): Steps<Selector> {
  if (field.path !== undefined) return new PathSelector(field, comparison);
  const { orNull } = comparison;
  const isList = comparison.kind === 'in';
  const values = isList ? comparison.values : [comparison.value];
  const accepted = isList ? signEqual : signsOf[comparison.operator];
  switch (field.typeId) {
    case Types.varchar:
    case Types.bytes:
    case Types.json: {
      const texts = yield* mapped(values, textBytes);
      return new TextSelector(field, texts, accepted, orNull, Float64Array.from(yield* mapped(texts, headOf)));
    }
    case Types.uint64:
    case Types.int64:
      return new BigintSelector(field, values.length, accepted, orNull, yield* wordsOf(values as readonly bigint[]));
    case Types.uuid:
    case Types.blob:
      return new UuidSelector(field, values.length, accepted, orNull, yield* uuidWords(values as readonly string[]));
    default:
      return isList
        ? new NumberListSelector(field, Float64Array.from(yield* mapped(values, asNumber)), orNull)
        : new IntervalSelector(field, comparison.operator, comparison.value, orNull);
  }
}

/**
 * Returns a field of a table, or the value at a path into a json field, of any type. Throws `InvalidQueryError` if the table has none of
 * that name.
 */
export function requireField(shape: TableShape, name: string, what: string): LayoutField {
  const field = shape.layout.field(name) ?? shape.layout.path(name, Types.json);
  if (field !== undefined) return field;
  const known = shape.layout.declared.map((declared) => declared.name);
  const meant = typeof (name as unknown) === 'string' ? nearestName(name, known) : undefined;
  throw new InvalidQueryError(
    `${what}: table '${shape.name}' has no field ${describeValue(name)}, and no function of that name is registered` +
      `${meant === undefined ? '.' : `: did you mean '${meant}'?`} Its fields are ${known.join(', ')}.`,
  );
}

/** Returns the type in which a path is compared with a value: that of the value. Null is of any. */
function comparedType(shape: TableShape, name: string, value: unknown): TypeId {
  if (typeof value === 'string' || value === null) return Types.varchar;
  if (typeof value === 'number' || typeof value === 'bigint') return Types.float64;
  if (typeof value === 'boolean') return Types.boolean;
  if (isDate(value)) return Types.timestamp;
  const takes = 'a path into JSON is compared with strings, numbers, true, false and Dates, or null';
  throw new InvalidQueryError(
    `Cannot compare '${name}' of table '${shape.name}' with ${describeValue(value)}: ${takes}.`,
  );
}

/** Returns the field that a condition compares with a value: at a path, what is of the type of the value. Throws `InvalidQueryError`. */
export function comparedField(shape: TableShape, name: string, value: unknown): LayoutField {
  const field = requireField(shape, name, 'where');
  if (field.path === undefined) return field;
  return shape.layout.path(name, comparedType(shape, name, value)) as LayoutField;
}

/**
 * Returns the value at a path in the form that rows are ordered and grouped by: of the type that indexes of the table give it, or of all
 * types, one after the other.
 */
export function orderedPath({ indexes, layout }: TableShape, { name }: LayoutField): LayoutField {
  for (const { fields } of indexes) {
    const typed = fields.find((field) => field.path !== undefined && field.name === name);
    if (typed !== undefined) return typed;
  }
  return layout.path(name, Types.bytes) as LayoutField;
}

/** Throws `InvalidOperatorError` unless the operator is `=` or `HAS`, which functions take. */
export function checkFunctionOperator(name: string, operator: Operator): void {
  if (operator === '=' || operator === 'HAS') return;
  const message = `'${name}' is a registered function, which takes the operators '=', 'HAS', 'HAS ANY' and 'HAS ALL': not ${describeValue(operator)}.`;
  throw new InvalidOperatorError(operator, message);
}

/** The table version and the registered functions that conditions are compiled against. */
export interface CompileOptions {
  readonly shape: TableShape;
  /** A registered function wins over a field of the same name. */
  readonly registered: (name: string) => RegisteredFunction | undefined;
}

/** Compiles a condition in steps, since a list of values may be long. */
export function* compilingCondition(
  options: CompileOptions,
  condition: WrittenCondition,
  negated: boolean,
): Steps<Condition[]> {
  const { shape, registered } = options;
  const { name, operator, captured } = condition;
  if (operator !== 'IN' || registered(name) !== undefined) return compileCondition(options, condition, negated);
  const field = comparedField(shape, name, firstOf(captured));
  const comparison = yield* comparingWithList(shape.name, field, captured);
  if (!negated) return [new Condition([name], { field, comparison })];
  const opposite = oppositeOf(comparison);
  if (opposite !== undefined) return [new Condition([name], { field, comparison: opposite })];
  const selector =
    comparison.kind === 'in' ? yield* selectingValues(field, comparison) : compileSelector(field, comparison);
  return [new Condition([name], undefined, new ComplementSelector(selector), [field])];
}

/** Compiles a condition to one or more that must all hold; or its negation, to one or more of which one must hold. */
export function compileCondition(
  { shape, registered }: CompileOptions,
  { name, operator, value, captured }: WrittenCondition,
  negated = false,
): Condition[] {
  const found = registered(name);
  if (found !== undefined) {
    checkFunctionOperator(name, operator);
    const selector = new FunctionSelector(shape, found, operator === 'HAS' ? elementOf(name, value) : value, operator);
    return [new Condition([name], undefined, negated ? new ComplementSelector(selector) : selector)];
  }
  const field = requireField(shape, name, 'where');
  if (operator === 'HAS') {
    const selector = selectingListsWith(shape.name, field, captured);
    return [new Condition([name], undefined, negated ? new ComplementSelector(selector) : selector, [field])];
  }
  if (field.path !== undefined && (operator !== 'IN' || !Array.isArray(captured))) {
    return compilePath(shape, field, operator, captured, negated);
  }
  return compareOne(shape, comparedField(shape, name, firstOf(captured)), operator, captured, negated);
}

/** Returns the first element of a list, of whose type all others are too, or null. */
function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? (list[0] ?? null) : null;
}

/** Compiles a comparison of the value at a path, by the type of the value that it is compared with. */
function compilePath(
  shape: TableShape,
  path: LayoutField,
  operator: Exclude<Operator, ListOperator>,
  value: unknown,
  negated: boolean,
): Condition[] {
  if (value === null && (operator === '=' || operator === '!=')) {
    return [new PathNullCondition(path, (operator === '=') !== negated)];
  }
  // Both ends of a range are of one type: between others there is nothing.
  const [low, high] = operator === 'BETWEEN' && Array.isArray(value) ? (value as unknown[]) : [];
  const typed = operator === 'IN' || operator === 'BETWEEN' ? (low ?? high ?? null) : value;
  return compareOne(shape, comparedField(shape, path.name, typed), operator, value, negated);
}

function compareOne(
  { name: table }: TableShape,
  field: LayoutField,
  operator: Exclude<Operator, ListOperator>,
  captured: unknown,
  negated: boolean,
): Condition[] {
  const { name } = field;
  return compareField(table, field, operator, captured).map((comparison) => {
    if (!negated) return new Condition([name], { field, comparison });
    const opposite = oppositeOf(comparison);
    if (opposite !== undefined) return new Condition([name], { field, comparison: opposite });
    return new Condition([name], undefined, new ComplementSelector(compileSelector(field, comparison)), [field]);
  });
}

/** Returns an element to look for in a list. Throws `InvalidQueryError`. */
function elementOf(subject: string, value: unknown): ListElement {
  if (isListElement(value)) return value;
  const takes = 'HAS looks for a string, a finite number, true or false in a list';
  throw new InvalidQueryError(`${takes}, and ${subject} was given ${describeValue(value)}.`);
}

/**
 * Returns the selector of lists in a json field that have an element. Throws `InvalidOperatorError` unless the field is of type json, and
 * `InvalidQueryError` unless the value can be an element.
 */
function selectingListsWith(table: string, field: LayoutField, value: unknown): Selector {
  const { name, typeId } = field;
  if (typeId !== Types.json) {
    const message = `Field '${name}' of table '${table}' is of type ${typeName(typeId)}: HAS is for lists in json fields.`;
    throw new InvalidOperatorError('HAS', message);
  }
  return selectingElement(field, elementOf(`field '${name}' of table '${table}'`, value));
}

/** The condition that there is no value at a path, or that there is one, of any type. */
class PathNullCondition extends Condition {
  readonly #field: LayoutField;
  readonly #wantsNull: boolean;

  constructor(field: LayoutField, wantsNull: boolean) {
    const comparison = { kind: wantsNull ? 'null' : 'not null' } as const;
    super([field.name], { field, comparison }, new PathSelector(field, comparison));
    this.#field = field;
    this.#wantsNull = wantsNull;
  }

  override keysBy({ path, name }: LayoutField, _tree: 'table' | 'index'): KeyAccess | undefined {
    if (!this.#wantsNull || path === undefined || name !== this.#field.name) return undefined;
    // Entries have null there also for values of other types.
    return { kind: 'values', components: [Uint8Array.of(0)], exact: false };
  }
}

/**
 * Selects rows by a registered function: the function gets the whole row, and its result must equal a value, or be a list that has an
 * element.
 */
class FunctionSelector extends ElementSelector {
  readonly #registered: RegisteredFunction;
  readonly #isElement: boolean;

  constructor(shape: TableShape, registered: RegisteredFunction, value: unknown, operator: Operator) {
    const isElement = operator === 'HAS';
    const read = (source: RowSource, base: number): unknown => callFunction(shape, registered, source, base);
    // A value is looked for in no list that others know.
    super(slowCost, isElement ? registered : read, read, [value]);
    this.#registered = registered;
    this.#isElement = isElement;
  }

  /** Returns the keys of matching rows in an index on the function; undefined if they cannot be known. */
  keysBy({ name, typeId, version, each }: FunctionResult): KeyAccess | undefined {
    const { name: called, version: calledVersion } = this.#registered;
    const [sought] = this.elements;
    const value = this.#isElement ? elementText(sought as ListElement) : sought;
    if (called !== name || calledVersion !== version || Number.isNaN(value) || this.#isElement !== each)
      return undefined;
    // An index has one and the same key for all results that are not of the type.
    return isOfResultType(typeId, value)
      ? ofValue(typeId, value)
      : { kind: 'values', components: [Uint8Array.of(tagOther)], exact: false };
  }

  protected override matches(source: RowSource, base: number): boolean {
    return this.#isElement ? super.matches(source, base) : this.read(source, base) === this.elements[0];
  }
}
