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

/** What a condition makes of an access by key. */
export interface KeyAccess {
  /** `equality`: one value (or null); `list`: several; `range`: values between bounds. */
  readonly kind: 'equality' | 'list' | 'range';
  /** Ascending, and none overlaps another. */
  readonly ranges: readonly KeyRange[];
  /** Whether the ranges hold exactly what the condition asks for, so that it need not be tested again. */
  readonly exact: boolean;
}

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

function ofValue(component: Uint8Array): KeyRange {
  return { from: component, to: prefixEnd(component) };
}

function isTruncated(component: Uint8Array, typeId: TypeId): boolean {
  return isTruncatedComponent(component, component.length, typeId);
}

/** The keys that a condition selects; undefined if no ranges come near it. */
export function keyAccess(typeId: TypeId, comparison: Comparison): KeyAccess | undefined {
  switch (comparison.kind) {
    case 'null':
      return { kind: 'equality', ranges: [{ from: nullKey, to: valueKeys }], exact: true };
    case 'not null':
      return { kind: 'range', ranges: [{ from: valueKeys }], exact: true };
    case 'none':
    case 'all':
      return undefined;
    case 'value':
      return comparison.operator === '!=' ? undefined : ofOperator(typeId, comparison.operator, comparison.value);
    case 'in': {
      const components = comparison.values.map((value) => componentOf(typeId, value));
      const exact = components.every((component) => !isTruncated(component, typeId));
      const ranges = components.map(ofValue);
      if (comparison.orNull) ranges.unshift({ from: nullKey, to: valueKeys });
      return { kind: 'list', ranges: exact ? ranges : withoutRepeats(ranges), exact };
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
      return { kind: 'equality', ranges: [ofValue(component)], exact };
    case '<':
      return { kind: 'range', ranges: [{ from: valueKeys, to: truncated ? prefixEnd(component) : component }], exact };
    case '<=':
      return { kind: 'range', ranges: [{ from: valueKeys, to: prefixEnd(component) }], exact };
    case '>':
      return { kind: 'range', ranges: [{ from: truncated ? component : prefixEnd(component) }], exact };
    case '>=':
      return { kind: 'range', ranges: [{ from: component }], exact };
  }
}

/** Long values that begin alike share a range. */
function withoutRepeats(ranges: readonly KeyRange[]): KeyRange[] {
  return ranges.filter((range, i) => {
    const before = ranges[i - 1]?.from;
    return before === undefined || compareBytes(before, range.from as Uint8Array) !== 0;
  });
}

/** The keys that lie in both ranges; undefined if there can be none. */
export function intersectRanges(a: KeyRange, b: KeyRange): KeyRange | undefined {
  const from = a.from !== undefined && (b.from === undefined || compareBytes(a.from, b.from) > 0) ? a.from : b.from;
  const to = a.to !== undefined && (b.to === undefined || compareBytes(a.to, b.to) < 0) ? a.to : b.to;
  if (from !== undefined && to !== undefined && compareBytes(from, to) >= 0) return undefined;
  return { from, to };
}
