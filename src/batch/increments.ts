/**
 * Increments: numbers that are added to fields of a row. A batch holds the differences, and they are added to the row as it is when
 * the batch is committed, in the order of the log: those of several nodes all count.
 */
import { EncodeError } from '../base/errors.ts';
import { readField } from '../format/row-decode.ts';
import { FieldProblem, noFieldText, writeField } from '../format/row-encode.ts';
import type { RowArena } from '../format/row-encode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { bigintBounds, integerBounds, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { describeKey, describeValue } from '../base/messages.ts';
import { breach } from '../schema/field-rules.ts';
import type { TableShape } from '../schema/table-shape.ts';

/** The number to add to a field: a bigint for 64-bit integers, a number for the others. */
export interface Increment {
  readonly field: LayoutField;
  readonly by: number | bigint;
}

/** Whether fields of a type are numbers. */
function isNumeric(typeId: TypeId): boolean {
  const isInteger = integerBounds(typeId) !== undefined || bigintBounds(typeId) !== undefined;
  return isInteger || typeId === Types.float64 || typeId === Types.float32;
}

/** Reads the increments of a call. Throws `EncodeError`. */
export function readIncrements(shape: TableShape, given: unknown): readonly Increment[] {
  const { layout, name: table } = shape;
  const refuse = (field: string, value: unknown, problem: string): EncodeError =>
    new EncodeError(table, field, value, `Cannot increment table '${table}': ${problem}.`);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refuse('', given, `the increments are an object of fields and numbers, not ${describeValue(given)}`);
  }
  const entries = Object.entries(given) as [string, unknown][];
  if (entries.length === 0) throw refuse('', given, 'the increments name no field');
  return entries.map(([name, by]) => {
    const field = layout.field(name);
    if (field === undefined) throw refuse(name, by, noFieldText(layout, name));
    if (shape.schema.primaryKey.includes(name)) {
      throw refuse(name, by, `'${name}' is the primary key, and rows keep the key that they have`);
    }
    if (!isNumeric(field.typeId)) {
      throw refuse(name, by, `field '${name}' is of type ${typeName(field.typeId)}, and only numbers are added to`);
    }
    const amount = amountOf(field.typeId, by);
    if (amount !== undefined) return { field, by: amount };
    const takes = amountsOf(field.typeId);
    throw refuse(
      name,
      by,
      `field '${name}' of type ${typeName(field.typeId)} takes ${takes}, not ${describeValue(by)}`,
    );
  });
}

/** The amounts that a type takes, for messages. They may be negative in every type. */
function amountsOf(typeId: TypeId): string {
  if (bigintBounds(typeId) !== undefined) return 'bigints and safe integers';
  return integerBounds(typeId) === undefined ? 'finite numbers' : 'safe integers';
}

/** An amount in the form that it is added in; undefined if the type does not take it. */
function amountOf(typeId: TypeId, by: unknown): number | bigint | undefined {
  if (bigintBounds(typeId) !== undefined) {
    if (typeof by === 'bigint') return by;
    return Number.isSafeInteger(by) ? BigInt(by as number) : undefined;
  }
  const isTaken = integerBounds(typeId) === undefined ? Number.isFinite(by) : Number.isSafeInteger(by);
  return isTaken ? (by as number) : undefined;
}

/** Where increments are added: a copy of the row, which nobody else reads. */
export interface IncrementedRow {
  readonly shape: TableShape;
  readonly arena: RowArena;
  readonly base: number;
  /** The row's primary key, for errors. */
  readonly primaryKey: () => unknown;
}

/**
 * Adds to the fields of a row; null counts as 0. Throws `EncodeError` for a sum that does not fit its field, or breaks the rules
 * of it; with `lenient`, such a field stays as it is.
 */
export function addTo(row: IncrementedRow, increments: readonly Increment[], lenient: boolean): void {
  const { shape, arena, base } = row;
  for (const { field, by } of increments) {
    const found = (readField(arena, base, field) ?? null) as number | bigint | null;
    const sum = typeof by === 'bigint' ? BigInt(found ?? 0) + by : Number(found ?? 0) + by;
    const problem = write(row, field, found, sum);
    if (problem === undefined || lenient) continue;
    const message =
      `Cannot add ${describeValue(by)} to field '${field.name}' of the row with primary key ${describeKey(row.primaryKey())} in ` +
      `table '${shape.name}', which is ${describeValue(found)}: ${problem}. Nothing was written.`;
    throw new EncodeError(shape.name, field.name, sum, message);
  }
}

/** Writes a sum. Returns the reason why it cannot be written; undefined if it was. */
function write(
  { shape, arena, base }: IncrementedRow,
  field: LayoutField,
  before: number | bigint | null,
  sum: number | bigint,
): string | undefined {
  const rule = shape.rules?.find((one) => one.field === field);
  const broken = rule && breach(rule, sum);
  if (broken !== undefined) return broken;
  const isBeyond = typeof sum === 'number' && !Number.isFinite(sum) && Number.isFinite(Number(before));
  if (isBeyond) return `the sum is larger than numbers of type ${typeName(field.typeId)} are`;
  try {
    writeField(arena.writer, base, arena.heapWriter, field, sum);
    return undefined;
  } catch (error) {
    if (error instanceof FieldProblem) return error.message;
    throw error;
  }
}
