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
  // Rows made of entries have no room for values at paths.
  const held = new Set([...index.fields.filter(({ path }) => path === undefined), ...shape.keyFields, ...exact]);
  const tests = residual.filter(({ reads }) => reads?.every((field) => held.has(field)) === true);
  const only =
    tests.length === residual.length &&
    order.every(({ field }) => held.has(field)) &&
    (takes?.fields ?? shape.layout.fields).every(
      (field) => held.has(field) && (exact.includes(field) || isExact(field, takes?.signs !== false)),
    );
  if (!only && tests.length === 0) return undefined;
  const fields = new Set(tests.flatMap(({ reads }) => reads as readonly LayoutField[]));
  if (only) {
    for (const field of shape.keyFields) fields.add(field);
    for (const { field } of order) fields.add(field);
    for (const field of takes?.fields ?? shape.layout.fields) fields.add(field);
  }
  return { only, tests, fields };
}

function isExact({ typeId }: LayoutField, signs: boolean): boolean {
  return !signs || !mergesZeros(typeId);
}
