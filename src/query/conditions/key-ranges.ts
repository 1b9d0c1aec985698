/**
 * Turns conditions on a field into ranges of keys: of primary keys, or of index entries, which begin with the indexed value. The key
 * component of a value is not a prefix of any other component, so the keys that begin with it are exactly the keys of that value.
 */
import { ByteWriter, compareBytes, prefixEnd } from '../../base/bytes.ts';
import type { OrderedValue } from '../../base/bytes.ts';
import { isTruncatedComponent, writeKeyComponent } from '../../format/ordered-key.ts';
import { atOnce, itemsInStep, mapped, sorted } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import type { TypeId } from '../../format/types.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { Comparison, FieldValue } from './comparison.ts';

/**
 * The keys that a condition selects: values, as distinct ascending key components, or ranges, ascending and disjoint. `exact`: the keys
 * are exactly those of matching rows, which need not be tested again.
 */
export type KeyAccess =
  | ValueAccess
  | { readonly kind: 'ranges'; readonly ranges: readonly KeyRange[]; readonly exact: boolean };

/** The keys of certain values. */
export interface ValueAccess {
  readonly kind: 'values';
  readonly components: readonly Uint8Array[];
  /** The ranges of keys that begin with each component; only for a long list, since planning asks for them several times. */
  readonly ranges?: readonly KeyRange[] | undefined;
  readonly exact: boolean;
}

/** The first bytes of keys with null, and with any value. */
const nullKey: Uint8Array = Uint8Array.of(0);
const valueKeys: Uint8Array = Uint8Array.of(1);

/** Returns the key component of a value. Keys hold long values only in part. */
export function componentOf(typeId: TypeId, value: OrderedValue): Uint8Array {
  const component = new ByteWriter();
  writeKeyComponent(component, typeId, value);
  return component.finish();
}

/** Returns the range of keys that begin with a component. */
export function rangeOfComponent(component: Uint8Array): KeyRange {
  return { from: component, to: prefixEnd(component) };
}

function isTruncated(component: Uint8Array, typeId: TypeId): boolean {
  return isTruncatedComponent(component, component.length, typeId);
}

/** Returns the keys that a comparison selects; undefined if it does not narrow them. */
export function keyAccess(typeId: TypeId, comparison: Comparison): KeyAccess | undefined {
  switch (comparison.kind) {
    case 'null':
      return { kind: 'values', components: [nullKey], exact: true };
    case 'not null':
      return { kind: 'ranges', ranges: [{ from: valueKeys }], exact: true };
    case 'none':
    case 'all':
      return undefined;
    case 'prefix':
      return ofPrefix(typeId, comparison.value);
    case 'value': {
      const { operator, value, orNull } = comparison;
      if (operator === '!=') return undefined;
      return operator === '=' ? ofValue(typeId, value) : ofOperator(typeId, operator, value, orNull);
    }
    case 'in':
      return atOnce(accessingList(typeId, comparison));
  }
}

/** Returns the keys that a list of values selects. */
export function* accessingList(
  typeId: TypeId,
  { values, orNull }: Extract<Comparison, { readonly kind: 'in' }>,
): Steps<KeyAccess> {
  let exact = true;
  const components = yield* mapped(values, (value) => {
    const component = componentOf(typeId, value);
    if (isTruncated(component, typeId)) exact = false;
    return component;
  });
  if (orNull) components.unshift(nullKey);
  return yield* accessingValues(exact ? components : yield* withoutRepeats(components), exact);
}

/** Makes an access by values of their key components. */
export function* accessingValues(components: readonly Uint8Array[], exact: boolean): Steps<ValueAccess> {
  const ranges = components.length > itemsInStep ? yield* mapped(components, rangeOfComponent) : undefined;
  return { kind: 'values', components, ranges, exact };
}

/** Returns the keys of a value. */
export function ofValue(typeId: TypeId, value: OrderedValue): KeyAccess {
  const component = componentOf(typeId, value);
  return { kind: 'values', components: [component], exact: !isTruncated(component, typeId) };
}

function ofOperator(typeId: TypeId, operator: '<' | '<=' | '>' | '>=', value: FieldValue, orNull: boolean): KeyAccess {
  const component = componentOf(typeId, value);
  const end = prefixEnd(component);
  // Different long values can have the same truncated component. So a truncated bound is included, and tested on the row.
  const exact = !isTruncated(component, typeId);
  const isBelow = operator.startsWith('<');
  const range = isBelow
    ? { from: orNull ? nullKey : valueKeys, to: operator === '<' && exact ? component : end }
    : { from: operator === '>' && exact ? end : component };
  return { kind: 'ranges', ranges: orNull && !isBelow ? [{ from: nullKey, to: valueKeys }, range] : [range], exact };
}

/** The keys of values with a prefix. Without its two last bytes, the component of the prefix begins the components of all of them. */
function ofPrefix(typeId: TypeId, value: string | Uint8Array): KeyAccess {
  const component = componentOf(typeId, value);
  const exact = !isTruncated(component, typeId);
  const range = rangeOfComponent(exact ? component.subarray(0, component.length - 2) : component);
  return { kind: 'ranges', ranges: [range], exact };
}

/** Removes duplicates: long values with the same beginning have the same component. */
export function* withoutRepeats(components: readonly Uint8Array[]): Steps<Uint8Array[]> {
  const different: Uint8Array[] = [];
  for (let i = 0; i < components.length; i++) {
    if ((i + 1) % itemsInStep === 0) yield;
    const component = components[i] as Uint8Array;
    if (i === 0 || compareBytes(components[i - 1] as Uint8Array, component) !== 0) different.push(component);
  }
  return different;
}

/** Returns the ranges of keys that begin with one of the components. */
export function rangesOver(components: readonly Uint8Array[]): readonly KeyRange[] {
  return components.map(rangeOfComponent);
}

/** Returns the ranges of a key access. */
function* rangingBy(keys: KeyAccess): Steps<readonly KeyRange[]> {
  return keys.kind === 'ranges' ? keys.ranges : (keys.ranges ?? (yield* mapped(keys.components, rangeOfComponent)));
}

/** The most ranges or components of two lists that are intersected without a pause. */
const maxCompared = 65_536;

/** Whether two lists are short enough to be intersected without a pause. */
export function areFew(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length + b.length <= maxCompared;
}

/** Returns the keys that both accesses select. If they are very long, returns the shorter one as inexact. */
export function* intersecting(a: KeyAccess, b: KeyAccess): Steps<KeyAccess> {
  const left = yield* rangingBy(a);
  const right = yield* rangingBy(b);
  if (!areFew(left, right)) return { ...(left.length < right.length ? a : b), exact: false };
  return { kind: 'ranges', ranges: intersectAll(left, right), exact: a.exact && b.exact };
}

/** Returns the intersection of two ranges; undefined if it is empty. */
function intersectRanges(a: KeyRange, b: KeyRange): KeyRange | undefined {
  const from = a.from !== undefined && (b.from === undefined || compareBytes(a.from, b.from) > 0) ? a.from : b.from;
  const to = a.to !== undefined && (b.to === undefined || compareBytes(a.to, b.to) < 0) ? a.to : b.to;
  if (from !== undefined && to !== undefined && compareBytes(from, to) >= 0) return undefined;
  return { from, to };
}

/** Whether a range ends after another one. */
function endsAfter(a: KeyRange, b: KeyRange): boolean {
  return b.to !== undefined && (a.to === undefined || compareBytes(a.to, b.to) > 0);
}

/** Returns the intersection of two lists of ranges. The lists and the result are ascending and disjoint. */
export function intersectAll(a: readonly KeyRange[], b: readonly KeyRange[]): KeyRange[] {
  const both: KeyRange[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [left, right] = [a[i] as KeyRange, b[j] as KeyRange];
    const range = intersectRanges(left, right);
    if (range !== undefined) both.push(range);
    if (endsAfter(left, right)) j++;
    else i++;
  }
  return both;
}

/** Returns the components that are in both lists. The lists and the result are ascending. */
export function commonComponents(a: readonly Uint8Array[], b: readonly Uint8Array[]): Uint8Array[] {
  const both: Uint8Array[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const order = compareBytes(a[i] as Uint8Array, b[j] as Uint8Array);
    if (order === 0) both.push(a[i] as Uint8Array);
    if (order <= 0) i++;
    if (order >= 0) j++;
  }
  return both;
}

/** Returns the components with which a key in one of the ranges can begin. */
export function componentsIn(components: readonly Uint8Array[], ranges: readonly KeyRange[]): Uint8Array[] {
  let next = 0;
  return components.filter((component) => {
    // Both ascend: a range that ends before this component ends before the next ones, too.
    for (; next < ranges.length; next++) {
      const { to } = ranges[next] as KeyRange;
      if (to === undefined || compareBytes(to, component) > 0) break;
    }
    const range = ranges[next];
    return range !== undefined && intersectRanges(rangeOfComponent(component), range) !== undefined;
  });
}

function compareStarts({ from: a }: KeyRange, { from: b }: KeyRange): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
  return compareBytes(a, b);
}

/** Returns the union of ranges, ascending and disjoint. */
function* uniteRanges(ranges: readonly KeyRange[]): Steps<KeyRange[]> {
  const united: KeyRange[] = [];
  let seen = 0;
  for (const range of yield* sorted(ranges, compareStarts)) {
    if (++seen % itemsInStep === 0) yield;
    const last = united[united.length - 1];
    const apart = last?.to !== undefined && range.from !== undefined && compareBytes(last.to, range.from) < 0;
    if (last === undefined || apart) united.push(range);
    else if (endsAfter(range, last)) united[united.length - 1] = { from: last.from, to: range.to };
  }
  return united;
}

/** Returns the union of several key accesses. */
export function* uniting(all: readonly KeyAccess[]): Steps<KeyAccess> {
  const exact = all.every((keys) => keys.exact);
  if (all.every(({ kind }) => kind === 'values')) {
    const components = yield* joined(all, (keys) => (keys.kind === 'values' ? keys.components : []));
    return yield* accessingValues(yield* withoutRepeats(yield* sorted(components, compareBytes)), exact);
  }
  const lists: (readonly KeyRange[])[] = [];
  for (const keys of all) {
    lists.push(yield* rangingBy(keys));
    if (lists.length % itemsInStep === 0) yield;
  }
  return { kind: 'ranges', ranges: yield* uniteRanges(yield* joined(lists, (list) => list)), exact };
}

/** Concatenates lists in steps. */
function* joined<T, U>(lists: readonly T[], itemsOf: (list: T) => readonly U[]): Steps<U[]> {
  const all: U[] = [];
  for (const list of lists) {
    for (const item of itemsOf(list)) {
      all.push(item);
      if (all.length % itemsInStep === 0) yield;
    }
  }
  return all;
}
