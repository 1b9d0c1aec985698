/** Primary keys as calls give them: checked, and in the form that keys are made of. */
import { encodeUtf8 } from '../base/bytes.ts';
import type { OrderedValue } from '../base/order.ts';
import { FieldProblem } from '../format/row-encode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { describeKey, describeValue } from '../base/describe-value.ts';
import { maxKeyBytes, normalizeValue, ValueProblem } from '../format/values.ts';
import { isTextField } from './table-shape.ts';
import type { KeyValue, TableShape } from './table-shape.ts';

/**
 * Checks a value as a primary key, an array of values where it is made of several fields, and returns it in the form that keys are
 * made of. Throws {@link FieldProblem}.
 */
export function normalizeKey({ keyField, keyFields }: TableShape, value: unknown): KeyValue {
  if (keyField !== undefined) {
    const normal = normalizeKeyField(keyField, value, 'the primary key is missing, or null: every row needs one');
    const isLong = isTextField(keyField) && (normal as string | Uint8Array).length > maxKeyBytes / 3;
    if (isLong) checkKeyBytes(keyField.name, value, keyFields, [normal]);
    return normal;
  }
  if (!Array.isArray(value) || value.length !== keyFields.length) {
    const names = namesOf(keyFields);
    const found = Array.isArray(value) ? `an array of ${value.length}` : describeValue(value);
    const message = `the primary key is an array of ${keyFields.length} values, [${names}], not ${found}`;
    throw new FieldProblem(names, value, message);
  }
  const normal: OrderedValue[] = [];
  for (let i = 0; i < keyFields.length; i++) {
    const field = keyFields[i] as LayoutField;
    const part: unknown = value[i];
    if (part === undefined || part === null) {
      const missing = `it is missing, or null, and the primary key is made of ${namesOf(keyFields)}: every row needs all of them`;
      throw new FieldProblem(field.name, part, missing);
    }
    normal.push(normalizeKeyField(field, part, ''));
  }
  if (sumOf(keyFields, normal, mostTextBytes) > maxKeyBytes) {
    checkKeyBytes(namesOf(keyFields), value, keyFields, normal);
  }
  return normal;
}

function namesOf(fields: readonly LayoutField[]): string {
  return fields.map(({ name }) => name).join(', ');
}

function normalizeKeyField({ name, typeId }: LayoutField, value: unknown, missing: string): OrderedValue {
  if (value === undefined || value === null) throw new FieldProblem(name, value, missing);
  try {
    return normalizeValue(typeId, value);
  } catch (error) {
    if (error instanceof ValueProblem) throw new FieldProblem(name, value, error.message);
    throw error;
  }
}

/** Refuses a primary key whose texts and bytes are too long together. */
function checkKeyBytes(
  name: string,
  value: unknown,
  fields: readonly LayoutField[],
  normal: readonly OrderedValue[],
): void {
  if (sumOf(fields, normal, mostTextBytes) <= maxKeyBytes) return;
  const bytes = sumOf(fields, normal, (text) => encodeUtf8(text).length);
  if (bytes <= maxKeyBytes) return;
  const message = `${describeKey(value)} has ${bytes} bytes, and a primary key takes up to ${maxKeyBytes}`;
  throw new FieldProblem(name, value, message);
}

/** Bytes that the texts of a key can have at most. */
function mostTextBytes(text: string): number {
  return text.length * 3;
}

function sumOf(
  fields: readonly LayoutField[],
  values: readonly OrderedValue[],
  textBytes: (text: string) => number,
): number {
  let sum = 0;
  for (let i = 0; i < fields.length; i++) {
    const { typeId } = fields[i] as LayoutField;
    if (typeId === Types.varchar) sum += textBytes(values[i] as string);
    else if (typeId === Types.bytes) sum += (values[i] as Uint8Array).length;
  }
  return sum;
}
