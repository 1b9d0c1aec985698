/**
 * Conditions on a field as ranges of keys: of primary keys, or of index entries, which begin with the indexed value.
 * The bytes of a value's key component are a prefix of no other's, so that the keys that begin with them are exactly
 * those of the value.
 */
import { ByteWriter, compareBytes, prefixEnd } from '../base/bytes.ts';
import { isTruncatedComponent, writeKeyComponent } from '../format/ordered-key.ts';
import type { TypeId } from '../format/types.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { Comparison, FieldValue } from './comparison.ts';

/**
 * What a condition makes of an access by key: certain values, by their key components, ascending and different, or a
 * range. `exact`: it selects just what the condition asks for, which then need not be tested again.
 */
export type KeyAccess =
  | { readonly kind: 'values'; readonly components: readonly Uint8Array[]; readonly exact: boolean }
  | { readonly kind: 'range'; readonly range: KeyRange; readonly exact: boolean };

/** The first bytes of keys with null, and with any value. */
const nullKey: Uint8Array = Uint8Array.of(0);
const valueKeys: Uint8Array = Uint8Array.of(1);

const scratch = new ByteWriter(64);

/** The key component of a value, or of as much of it as keys hold. */
export function componentOf(typeId: TypeId, value: FieldValue): Uint8Array {
  scratch.length = 0;
  writeKeyComponent(scratch, typeId, value);
  return scratch.finish();
}

/** The keys that begin with a component. */
export function rangeOfComponent(component: Uint8Array): KeyRange {
  return { from: component, to: prefixEnd(component) };
}

function isTruncated(component: Uint8Array, typeId: TypeId): boolean {
  return isTruncatedComponent(component, component.length, typeId);
}

/** The keys that a condition selects; undefined if it does not help to find them. */
export function keyAccess(typeId: TypeId, comparison: Comparison): KeyAccess | undefined {
  switch (comparison.kind) {
    case 'null':
      return { kind: 'values', components: [nullKey], exact: true };
    case 'not null':
      return { kind: 'range', range: { from: valueKeys }, exact: true };
    case 'none':
    case 'all':
      return undefined;
    case 'value':
      return comparison.operator === '!=' ? undefined : ofOperator(typeId, comparison.operator, comparison.value);
    case 'in': {
      const components = comparison.values.map((value) => componentOf(typeId, value));
      const exact = !components.some((component) => isTruncated(component, typeId));
      if (comparison.orNull) components.unshift(nullKey);
      return { kind: 'values', components: exact ? components : withoutRepeats(components), exact };
    }
  }
}

function ofOperator(typeId: TypeId, operator: '=' | '<' | '<=' | '>' | '>=', value: FieldValue): KeyAccess {
  const component = componentOf(typeId, value);
  const truncated = isTruncated(component, typeId);
  const exact = !truncated;
  // Values that are held in part are equal there without being equal: such a bound is included, and tested on the row.
  switch (operator) {
    case '=':
      return { kind: 'values', components: [component], exact };
    case '<':
      return { kind: 'range', range: { from: valueKeys, to: truncated ? prefixEnd(component) : component }, exact };
    case '<=':
      return { kind: 'range', range: { from: valueKeys, to: prefixEnd(component) }, exact };
    case '>':
      return { kind: 'range', range: { from: truncated ? component : prefixEnd(component) }, exact };
    case '>=':
      return { kind: 'range', range: { from: component }, exact };
  }
}

/** Long values that begin alike have one component. */
function withoutRepeats(components: readonly Uint8Array[]): Uint8Array[] {
  return components.filter((component, i) => i === 0 || compareBytes(components[i - 1] as Uint8Array, component) !== 0);
}

/** The keys that lie in both ranges; undefined if there can be none. */
export function intersectRanges(a: KeyRange, b: KeyRange): KeyRange | undefined {
  const from = a.from !== undefined && (b.from === undefined || compareBytes(a.from, b.from) > 0) ? a.from : b.from;
  const to = a.to !== undefined && (b.to === undefined || compareBytes(a.to, b.to) < 0) ? a.to : b.to;
  if (from !== undefined && to !== undefined && compareBytes(from, to) >= 0) return undefined;
  return { from, to };
}
