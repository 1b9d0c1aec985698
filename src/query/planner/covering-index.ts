/** The use of index entries without their rows: residual conditions tested on entries, and index-only scans. */
import { mergesZeros } from '../../format/ordered-key.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import type { TableIndex, TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { Condition } from '../conditions/condition.ts';
import type { OrderField } from '../conditions/row-order.ts';

/** The fields that a query takes from matching rows, apart from those of its order. */
export interface TakenFields {
  readonly fields: readonly LayoutField[];
  /** Whether -0 must be distinguished from 0. */
  readonly signs: boolean;
}

export interface EntryUse {
  /** Whether the index covers the query, so that rows are looked up only for entries with truncated values. */
  readonly only: boolean;
  /** The conditions that entries are tested for. */
  readonly tests: readonly Condition[];
  /** The fields of the entries that are used. */
  readonly fields: ReadonlySet<LayoutField>;
  /** The paths among them that are read as another type than entries hold: null then says nothing. */
  readonly unsure: ReadonlySet<LayoutField>;
}

/** Whether an index might cover the fields taken: a quick test that rules out most queries for whole rows. */
export function mayHoldAll(
  { layout, keyFields }: TableShape,
  takes: TakenFields | undefined,
  { fields, included }: TableIndex,
): boolean {
  const more = included === undefined ? 0 : included.fields.length;
  return takes !== undefined || layout.fields.length <= fields.length + keyFields.length + more;
}

/** Returns the use of entries beyond their primary keys; undefined if there is none. `residual`: the conditions to test. */
export function entryUseOf(
  { shape, tree }: TableState,
  takes: TakenFields | undefined,
  index: TableIndex,
  residual: readonly Condition[],
  order: readonly OrderField[],
): EntryUse | undefined {
  if (residual.length === 0 && !mayHoldAll(shape, takes, index)) return undefined;
  // A reader must get an error for a row that could not be migrated, and the index does not know of it.
  if (tree.mayBreak || index.result !== undefined) return undefined;
  const exact = index.included?.fields ?? [];
  const held = [...index.fields, ...shape.keyFields, ...exact];
  const heldAs = (field: LayoutField): LayoutField | undefined => held.find((one) => holds(one, field));
  const isHeld = (field: LayoutField): boolean => heldAs(field) !== undefined;
  const tests = residual.filter(({ reads }) => reads?.every(isHeld) === true);
  const isTaken = (field: LayoutField): boolean => {
    const as = heldAs(field);
    if (as === undefined) return false;
    return as.path !== undefined || exact.includes(as) || isExact(field, takes?.signs !== false);
  };
  const taken = takes?.fields ?? shape.layout.fields;
  const only = tests.length === residual.length && order.every(({ field }) => isHeld(field)) && taken.every(isTaken);
  if (!only && tests.length === 0) return undefined;
  const read = new Set(tests.flatMap(({ reads }) => reads as readonly LayoutField[]));
  if (only) {
    for (const field of shape.keyFields) read.add(field);
    for (const { field } of order) read.add(field);
    for (const field of taken) read.add(field);
  }
  const fields = new Set<LayoutField>();
  const unsure = new Set<LayoutField>();
  for (const field of read) {
    const as = heldAs(field) as LayoutField;
    fields.add(as);
    if (as.path !== undefined && as.typeId !== field.typeId) unsure.add(as);
  }
  return { only, tests, fields, unsure };
}

/** Whether an entry with one field holds the value of another, which may be at a path. */
function holds(one: LayoutField, field: LayoutField): boolean {
  if (one === field) return true;
  if (field.path === undefined || one.elementsOf !== undefined) return false;
  // JSON holds the values inside of it as well.
  if (one.jsonOf !== undefined) return one.name === field.name || field.name.startsWith(`${one.name}.`);
  return one.path !== undefined && one.name === field.name;
}

function isExact({ typeId }: LayoutField, signs: boolean): boolean {
  return !signs || !mergesZeros(typeId);
}
