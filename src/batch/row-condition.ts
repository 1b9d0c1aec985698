/** Conditions of updates and deletions: the values that some fields of the row must have, or the flush is rejected. */
import type { ByteWriter } from '../base/bytes.ts';
import { ConditionFailedError, EncodeError } from '../base/errors.ts';
import { readField, sameField } from '../format/row-decode.ts';
import { appendNullRow, FieldProblem, noFieldText, writeField } from '../format/row-encode.ts';
import type { LayoutField, RowLayout, RowSource } from '../format/row-layout.ts';
import { isKeyType, typeName } from '../format/types.ts';
import { describeKey, describeValue } from '../base/messages.ts';
import type { TableShape } from '../schema/table-shape.ts';

/** A row and where it begins in its source. */
interface PlacedRow {
  readonly source: RowSource;
  readonly base: number;
}

/** The fields that are compared, and where a row with their values begins. */
export interface EncodedCondition {
  readonly fields: readonly LayoutField[];
  readonly base: number;
}

/** Writes the row that a condition describes. Throws `EncodeError`. */
export function encodeCondition(
  shape: TableShape,
  given: unknown,
  rows: ByteWriter,
  heap: ByteWriter,
): EncodedCondition {
  const refuse = (field: string, value: unknown, problem: string): EncodeError =>
    new EncodeError(shape.name, field, value, `The condition \`if\` on table '${shape.name}': ${problem}.`);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refuse(
      '',
      given,
      `it is an object of fields and the values that they must have, not ${describeValue(given)}`,
    );
  }
  const entries = Object.entries(given);
  if (entries.length === 0) throw refuse('', given, 'it names no field, and so asks nothing');
  const { layout } = shape;
  const base = appendNullRow(layout, rows);
  const fields = entries.map(([name, value]: [string, unknown]) => {
    const field = layout.field(name);
    if (field === undefined) throw refuse(name, value, noFieldText(layout, name));
    if (!isKeyType(field.typeId)) {
      throw refuse(name, value, `field '${name}' is of type ${typeName(field.typeId)}, which is compared with nothing`);
    }
    if (value === undefined) throw refuse(name, value, `'${name}' is undefined: null asks for a field without a value`);
    try {
      if (value !== null) writeField(rows, base, heap, field, value);
    } catch (error) {
      if (error instanceof FieldProblem) throw refuse(name, value, `field '${name}': ${error.message}`);
      throw error;
    }
    return field;
  });
  return { fields, base };
}

/** The first field of a condition in which a row has another value; undefined if the condition holds. */
export function failingField(
  layout: RowLayout,
  { fields, base }: EncodedCondition,
  source: RowSource,
  row: PlacedRow,
): LayoutField | undefined {
  return fields.find((field) => !isEqual(layout, field, { source, base }, row));
}

function isEqual(layout: RowLayout, field: LayoutField, wanted: PlacedRow, row: PlacedRow): boolean {
  if (sameField(layout, field, wanted, row)) return true;
  // Zero has two forms.
  return readField(wanted.source, wanted.base, field) === 0 && readField(row.source, row.base, field) === 0;
}

/** The error for a row that is otherwise, or not there. */
export function conditionFailed(
  { name }: TableShape,
  primaryKey: unknown,
  field: LayoutField,
  wanted: PlacedRow,
  row: PlacedRow | undefined,
): ConditionFailedError {
  const expected = readField(wanted.source, wanted.base, field) ?? null;
  const actual = row === undefined ? undefined : (readField(row.source, row.base, field) ?? null);
  const found =
    row === undefined
      ? `There is no row with primary key ${describeKey(primaryKey)} in table '${name}'`
      : `Field '${field.name}' of the row with primary key ${describeKey(primaryKey)} in table '${name}' is ${describeValue(actual)}`;
  const message =
    `${found}, and the change was to be made only where '${field.name}' is ${describeValue(expected)}. Nothing was written: ` +
    'read the row again, and decide again.';
  return new ConditionFailedError({ table: name, primaryKey, field: field.name, expected, actual }, message);
}
