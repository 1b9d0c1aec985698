/** What a query can do with the entries of an index alone, before it looks up their rows, or instead. */
import { mergesZeros } from '../../format/ordered-key.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import type { TableIndex, TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { Condition } from '../conditions/condition.ts';
import type { OrderField } from '../conditions/row-order.ts';

/** What is taken of the rows that match, beside what their order takes. */
export interface TakenFields {
  readonly fields: readonly LayoutField[];
  /** Whether -0 is to be told from 0. */
  readonly signs: boolean;
}

export interface EntryUse {
  /** Whether the entries have all that is asked for, so that rows are looked up only where an entry holds a value in part. */
  readonly only: boolean;
  /** Conditions that entries are tested for. */
  readonly tests: readonly Condition[];
  /** Fields of the entries that are of use. */
  readonly fields: ReadonlySet<LayoutField>;
}

/** Whether entries could have all that is taken of rows: told at once for most queries that take whole rows. */
export function mayHoldAll(
  { layout, keyFields }: TableShape,
  takes: TakenFields | undefined,
  { fields }: TableIndex,
): boolean {
  return takes !== undefined || layout.fields.length <= fields.length + keyFields.length;
}

/** Undefined if entries are of no use but for their primary keys. `residual`: what rows would be tested for. */
export function entryUseOf(
  { shape, tree }: TableState,
  takes: TakenFields | undefined,
  index: TableIndex,
  residual: readonly Condition[],
  order: readonly OrderField[],
): EntryUse | undefined {
  if (residual.length === 0 && !mayHoldAll(shape, takes, index)) return undefined;
  // A reader of a row that could not be made must hear of it, and the index knows nothing of that.
  if (tree.mayBreak || index.result !== undefined) return undefined;
  const held = new Set([...index.fields, ...shape.keyFields]);
  const tests = residual.filter(({ reads }) => reads?.every((field) => held.has(field)) === true);
  const only =
    tests.length === residual.length &&
    order.every(({ field }) => held.has(field)) &&
    (takes?.fields ?? shape.layout.fields).every((field) => held.has(field) && isExact(field, takes?.signs !== false));
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
