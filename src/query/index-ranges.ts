/**
 * What conditions on the fields of an index make of it: ranges of its entries. Values of the first fields and a range of
 * the next one give a range of entries each; what conditions ask of the fields behind that is left to be tested on rows.
 */
import { concatBytes, prefixEnd } from '../base/bytes.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { Condition } from './condition.ts';
import { rangesOver } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import type { OrderField } from './row-order.ts';

/** What the conditions on one field give for an access by keys. */
export interface FieldAccess {
  /** Undefined if the conditions contradict each other. */
  readonly keys: KeyAccess | undefined;
  readonly covered: readonly Condition[];
}

/** The part of an index that conditions leave. */
export interface IndexRanges {
  /** Ascending, and apart from each other. */
  readonly ranges: readonly KeyRange[];
  readonly covered: readonly Condition[];
  /** How many of the index's first fields conditions were found for that narrow it down. */
  readonly used: number;
  /** Whether all entries in the ranges are of one value in every field. */
  readonly oneValue: boolean;
  /** Whether all entries of a range are of one value in the first field. */
  readonly ofValues: boolean;
}

/** So many ranges may come of several lists of values; the last of the lists is otherwise left to be tested on rows. */
const maxRanges = 1024;
/** Behind a longer list of values, a single value of the next field is left to be tested as well. */
const maxJoined = 32_768;

const noBytes = new Uint8Array(0);

/** The bounds of a range of one field behind certain values of the fields before it. */
function rangeBehind(values: Uint8Array, { from, to }: KeyRange): KeyRange {
  return {
    from: from === undefined ? values : concatBytes(values, from),
    to: to === undefined ? prefixEnd(values) : concatBytes(values, to),
  };
}

/** Goes by what is known of each field of the index. Undefined if the conditions contradict each other. */
export function indexRanges(byField: readonly (FieldAccess | undefined)[]): IndexRanges | undefined {
  for (const access of byField) if (access !== undefined && access.keys === undefined) return undefined;
  const [first] = byField;
  // Most have one field: then there is nothing to be put together.
  if (byField.length === 1 && first?.keys?.kind === 'ranges') {
    return { ranges: first.keys.ranges, covered: first.covered, used: 1, oneValue: false, ofValues: false };
  }
  let values: readonly Uint8Array[] = [noBytes];
  let used = 0;
  const covered: Condition[] = [];
  for (const access of byField) {
    const keys = access?.keys;
    if (access === undefined || keys === undefined) break;
    if (keys.kind === 'ranges') {
      if (used > 0 && values.length * keys.ranges.length > maxRanges) break;
      const ranges = values.flatMap((before) => keys.ranges.map((range) => rangeBehind(before, range)));
      const all = [...covered, ...access.covered];
      return { ranges, covered: all, used: used + 1, oneValue: false, ofValues: used > 0 };
    }
    const { components } = keys;
    if (components.length > 1 && used > 0 && values.length * components.length > maxRanges) break;
    if (used > 0 && values.length > maxJoined) break;
    values =
      used === 0
        ? components
        : values.flatMap((before) => components.map((component) => concatBytes(before, component)));
    covered.push(...access.covered);
    used++;
  }
  const ranges = used === 0 ? [{}] : rangesOver(values);
  return { ranges, covered, used, oneValue: used === byField.length && ranges.length === 1, ofValues: used > 0 };
}

/**
 * Whether entries of an index that differ in certain of its fields, in this order, come as an order by fields asks for:
 * its direction then, and undefined if they do not. Entries that agree in all of the fields come by ascending primary key.
 */
export function directionOf(
  order: readonly OrderField[],
  fields: readonly LayoutField[],
  primaryKey: LayoutField,
): 'ascending' | 'descending' | undefined {
  let descending: boolean | undefined;
  for (const [i, field] of [...fields, primaryKey].entries()) {
    // An order that says no more leaves the rest to the primary key.
    const by = order[i] ?? { field: primaryKey, descending: false };
    if (by.field !== field) return undefined;
    if (i === fields.length) {
      if (by.descending) return undefined;
      break;
    }
    if (descending !== undefined && by.descending !== descending) return undefined;
    descending = by.descending;
    if (field === primaryKey) break;
  }
  return descending === true ? 'descending' : 'ascending';
}
