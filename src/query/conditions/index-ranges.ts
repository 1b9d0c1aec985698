/**
 * Turns conditions on the fields of an index into ranges of its entries. Values of the first fields and a range of the next one give
 * ranges; conditions on the fields after it are residual and are tested on rows.
 */
import { concatBytes, prefixEnd } from '../../base/bytes.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import { testedText } from '../../schema/index-condition.ts';
import type { FieldTest, IndexCondition } from '../../schema/index-condition.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { AnyCondition } from './any-condition.ts';
import type { Comparison } from './comparison.ts';
import type { Condition, FieldCondition } from './condition.ts';
import { rangesOver } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import { withKey } from './row-order.ts';
import type { OrderField } from './row-order.ts';
import { TupleCondition, TupleRangeCondition } from './tuple-condition.ts';

/** The key access that the conditions on one field allow. */
export interface FieldAccess {
  /** Undefined if the conditions contradict each other. */
  readonly keys: KeyAccess | undefined;
  readonly covered: readonly Condition[];
}

/** The ranges of an index that conditions select. */
export interface IndexRanges {
  /** Ascending and disjoint. */
  readonly ranges: readonly KeyRange[];
  readonly covered: readonly Condition[];
  /** The number of leading fields of the index whose conditions narrow the ranges. */
  readonly used: number;
  /** Whether all entries in the ranges have the same value in every field. */
  readonly oneValue: boolean;
  /** Whether all entries of a range have the same value in the first field. */
  readonly ofValues: boolean;
}

/** The most ranges that several lists of values may produce. Beyond that, the last list becomes a residual condition. */
const maxRanges = 1024;
/** The longest list of values to which a single value of the next field is appended. Beyond that, it becomes a residual condition. */
const maxJoined = 32_768;

const noBytes = new Uint8Array(0);

/** Returns the bounds of a range of one field, after given values of the fields before it. */
function rangeBehind(values: Uint8Array, { from, to }: KeyRange): KeyRange {
  return {
    from: from === undefined ? values : concatBytes(values, from),
    to: to === undefined ? prefixEnd(values) : concatBytes(values, to),
  };
}

/** Key ranges in parts: values of the first fields, and ranges of the next field after each of them. */
export interface KeyParts {
  /** The bytes that keys begin with, ascending: the values of the first `valued` fields, joined. One empty array if there are none. */
  readonly values: readonly Uint8Array[];
  /** The ranges of keys that begin with each of the values, if the key access has them already. */
  readonly valueRanges?: readonly KeyRange[] | undefined;
  /** The number of fields that have values. */
  readonly valued: number;
  /** The ranges of the field after those. Undefined: any value. */
  readonly ranges: readonly KeyRange[] | undefined;
  readonly covered: readonly Condition[];
}

/** Combines the key accesses of the fields of a key. Returns undefined if the conditions contradict each other. */
export function keyParts(byField: readonly (FieldAccess | undefined)[]): KeyParts | undefined {
  for (const access of byField) if (access !== undefined && access.keys === undefined) return undefined;
  let values: readonly Uint8Array[] = [noBytes];
  let valueRanges: readonly KeyRange[] | undefined;
  let valued = 0;
  let covered: readonly Condition[] = [];
  for (const access of byField) {
    const keys = access?.keys;
    if (access === undefined || keys === undefined) break;
    if (keys.kind === 'ranges') {
      if (valued > 0 && values.length * keys.ranges.length > maxRanges) break;
      return { values, valued, ranges: keys.ranges, covered: [...covered, ...access.covered] };
    }
    const { components } = keys;
    if (components.length > 1 && valued > 0 && values.length * components.length > maxRanges) break;
    if (valued > 0 && values.length > maxJoined) break;
    values =
      valued === 0
        ? components
        : values.flatMap((before) => components.map((component) => concatBytes(before, component)));
    valueRanges = valued === 0 ? keys.ranges : undefined;
    covered = valued === 0 ? access.covered : [...covered, ...access.covered];
    valued++;
  }
  return { values, valueRanges, valued, ranges: undefined, covered };
}

/** Returns the key ranges of the parts, ascending and disjoint. */
export function rangesOf({ values, valueRanges, valued, ranges }: KeyParts): readonly KeyRange[] {
  if (ranges === undefined) return valued === 0 ? [{}] : (valueRanges ?? rangesOver(values));
  return valued === 0 ? ranges : values.flatMap((before) => ranges.map((range) => rangeBehind(before, range)));
}

/** Combines the key accesses of the fields of an index. Returns undefined if the conditions contradict each other. */
export function indexRanges(byField: readonly (FieldAccess | undefined)[]): IndexRanges | undefined {
  const parts = keyParts(byField);
  if (parts === undefined) return undefined;
  const ranges = rangesOf(parts);
  const { valued, covered } = parts;
  const used = parts.ranges === undefined ? valued : valued + 1;
  const oneValue = valued === byField.length && ranges.length === 1;
  return { ranges, covered, used, oneValue, ofValues: valued > 0 };
}

/** The direction in which rows come by primary key; undefined if they come in another order. */
export type KeyDirection = 'ascending' | 'descending' | undefined;

/** Returns the direction of primary keys in an order. `keyFields`: the fields of the primary key that no condition fixes. */
export function keyDirectionOf(order: readonly OrderField[], keyFields: readonly LayoutField[]): KeyDirection {
  // Without any order, rows come by ascending primary key.
  if (order.length === 0) return 'ascending';
  const all = withKey(keyFields, order);
  const descending = all[0]?.descending === true;
  const isTheirs = keyFields.every((field, i) => all[i]?.field === field && all[i]?.descending === descending);
  if (!isTheirs) return undefined;
  return descending && keyFields.length > 0 ? 'descending' : 'ascending';
}

/**
 * Returns the direction in which to read an index for an order, or undefined if the index does not have the order. `fields`: the fields
 * of the index in which its entries differ. Entries that agree in all of them come by ascending primary key. `keyFields`: the fields
 * of the primary key that no condition fixes.
 */
export function directionOf(
  order: readonly OrderField[],
  fields: readonly LayoutField[],
  keyFields: readonly LayoutField[],
): KeyDirection {
  // After the fields of the order, the primary key decides.
  const all = withKey(keyFields, order);
  const left = new Set(keyFields);
  const descending = fields.length > 0 && all[0]?.descending === true;
  const direction = descending ? 'descending' : 'ascending';
  for (const [i, field] of fields.entries()) {
    const by = all[i];
    if (by?.field !== field || by.descending !== descending) return undefined;
    // No two rows tie any more.
    if (left.delete(field) && left.size === 0) return direction;
  }
  const rest = [...left].every((field, i) => {
    const by = all[fields.length + i];
    return by?.field === field && !by.descending;
  });
  return rest ? direction : undefined;
}

/** Whether every value that matches a comparison passes a test of a partial index. May return false without need, never true. */
function isWithin(comparison: Comparison, { field, takesNull, values }: FieldTest): boolean {
  switch (comparison.kind) {
    case 'none':
      return true;
    case 'all':
      return false;
    case 'null':
      return takesNull;
    case 'not null':
    case 'prefix':
      return values === undefined;
    case 'value': {
      if (comparison.orNull && !takesNull) return false;
      if (values === undefined) return true;
      return comparison.operator === '=' && values.has(testedText(field, comparison.value));
    }
    case 'in':
      if (comparison.orNull && !takesNull) return false;
      return values === undefined || comparison.values.every((value) => values.has(testedText(field, value)));
  }
}

/** Whether every value that passes a test of a partial index matches a comparison, so that its rows need not be tested for it. */
function isFulfilled({ field: of, comparison }: FieldCondition, { field, takesNull, values }: FieldTest): boolean {
  switch (comparison.kind) {
    case 'null':
      return takesNull && values?.size === 0;
    case 'not null':
      // At a path, a comparison is with values of one type, and the test takes any.
      return !takesNull && (of.path === undefined || of.typeId === Types.json);
    case 'value':
    case 'in': {
      if (comparison.kind === 'value' && comparison.operator !== '=') return false;
      if (values === undefined || (takesNull && !comparison.orNull)) return false;
      const passed = comparison.kind === 'in' ? comparison.values : [comparison.value];
      const texts = new Set(passed.map((value) => testedText(field, value)));
      return [...values].every((value) => texts.has(value));
    }
    default:
      return false;
  }
}

function implies(condition: Condition, test: FieldTest): boolean {
  if (condition instanceof AnyCondition) {
    return condition.branches.every((branch) => branch.some((one) => implies(one, test)));
  }
  if (condition instanceof TupleCondition) {
    const values = condition.valuesOf(test.field);
    return values !== undefined && isWithin({ kind: 'in', values, orNull: false }, test);
  }
  // The first field of a matching row is not null.
  if (condition instanceof TupleRangeCondition) {
    return condition.fields[0] === test.field && isWithin({ kind: 'not null' }, test);
  }
  const { on } = condition;
  return on !== undefined && isOn(on.field, test) && isWithin(on.comparison, test);
}

/** Whether a condition on a field is on that of a test. A path is compared by the type of the value, and tested for any. */
function isOn(field: LayoutField, test: FieldTest): boolean {
  return (
    field === test.field ||
    (test.field.path !== undefined && field.path !== undefined && field.name === test.field.name)
  );
}

/**
 * Returns the conditions of a query that all rows of a partial index fulfil. Undefined unless the conditions imply that of the index, so
 * that the index has an entry for each matching row; undefined also where this is not recognized.
 */
export function insideOf({ tests }: IndexCondition, conditions: readonly Condition[]): Condition[] | undefined {
  if (!tests.every((test) => conditions.some((condition) => implies(condition, test)))) return undefined;
  return conditions.filter(({ on }) => {
    const test = on && tests.find((one) => isOn(on.field, one));
    return on !== undefined && test !== undefined && isFulfilled(on, test);
  });
}
