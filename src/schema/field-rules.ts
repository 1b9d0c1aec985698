/** The rules for the values of a field beyond their type: `required` and `oneOf`; and the stored form of values in a schema. */
import { asBytes } from '#platform';
import { fromBase64, toBase64 } from '../base/bytes.ts';
import { isBytes, isDate } from '../base/brands.ts';
import { InvalidSchemaError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { defined } from '../base/options.ts';
import { isNull, readField } from '../format/row-decode.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import type { StoredField } from '../format/stored-schema.ts';
import { bigintBounds, integerBounds, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { normalizeValue } from '../format/values.ts';

/** The maximum number of values in `oneOf`: the schema contains all of them, and every commit to the table carries the schema. */
const maxValues = 1000;
/** The number of values that an error lists. */
const toldValues = 20;

/** The rules of one field. */
export interface FieldRule {
  readonly field: LayoutField;
  readonly isRequired: boolean;
  /** The accepted values, as texts; undefined: all values of its type. */
  readonly values: ReadonlySet<string> | undefined;
}

/** Returns a text that is the same for equal values of a type that `oneOf` may list. */
function textOf(value: unknown): string {
  return value === 0 ? '0' : String(value);
}

function mayList(typeId: TypeId): boolean {
  const isInteger = integerBounds(typeId) !== undefined || bigintBounds(typeId) !== undefined;
  return isInteger || typeId === Types.varchar || typeId === Types.uuid;
}

/** Checks the rules of a field, and returns them in their stored form. Throws `InvalidSchemaError`. */
export function readRules(
  table: string,
  { name, typeId, default: fallback }: StoredField,
  given: { readonly required?: unknown; readonly oneOf?: unknown },
): Pick<StoredField, 'required' | 'oneOf'> {
  const { required = false, oneOf } = given;
  if (typeof required !== 'boolean') {
    const message = `\`required\` of field '${name}' must be true or false, not ${describeValue(required)}.`;
    throw new InvalidSchemaError(table, message);
  }
  const listed = oneOf === undefined ? undefined : readValues(table, name, typeId, oneOf);
  if (listed !== undefined && fallback !== undefined) {
    const { constant } = 'constant' in fallback ? fallback : { constant: 'an id that is made' };
    if (!listed.some((value) => textOf(value) === textOf(constant))) {
      const message = `The default of field '${name}', ${describeValue(constant)}, is none of its values: ${told(typeId, listed)}.`;
      throw new InvalidSchemaError(table, message);
    }
  }
  return { ...(required && { required }), ...defined({ oneOf: listed }) };
}

function readValues(table: string, name: string, typeId: TypeId, oneOf: unknown): (string | number)[] {
  if (!mayList(typeId)) {
    const message = `Field '${name}' is of type ${typeName(typeId)}, and \`oneOf\` is for integers, varchar and uuid.`;
    throw new InvalidSchemaError(table, message);
  }
  if (!Array.isArray(oneOf) || oneOf.length === 0 || oneOf.length > maxValues) {
    const what = Array.isArray(oneOf) ? `an array of ${oneOf.length}` : describeValue(oneOf);
    const message = `\`oneOf\` of field '${name}' must be an array of 1 to ${maxValues} values, not ${what}.`;
    throw new InvalidSchemaError(table, message);
  }
  const values = (oneOf as readonly unknown[]).map((value) => {
    try {
      const normal = normalizeValue(typeId, value);
      // Schemas are stored as JSON, which has no bigints.
      return typeof normal === 'number' ? normal + 0 : String(normal);
    } catch (error) {
      throw new InvalidSchemaError(table, `\`oneOf\` of field '${name}': ${(error as Error).message}.`);
    }
  });
  const twice = values.find((value, i) => values.indexOf(value) < i);
  if (twice === undefined) return values;
  throw new InvalidSchemaError(table, `\`oneOf\` of field '${name}' lists ${describeValue(twice)} twice.`);
}

function told(typeId: TypeId, values: readonly (string | number)[]): string {
  const isText = typeId === Types.varchar || typeId === Types.uuid;
  const first = values.slice(0, toldValues).map((value) => (isText ? describeValue(value) : String(value)));
  return values.length > toldValues ? `${first.join(', ')} and ${values.length - toldValues} more` : first.join(', ');
}

/** Returns the rules of a schema's fields; undefined if there are none. */
export function rulesOf(
  fields: readonly StoredField[],
  layoutField: (name: string) => LayoutField,
): readonly FieldRule[] | undefined {
  const rules = fields
    .filter(({ required, oneOf }) => required === true || oneOf !== undefined)
    .map(({ name, required, oneOf }) => ({
      field: layoutField(name),
      isRequired: required === true,
      values: oneOf && new Set(oneOf.map(textOf)),
    }));
  return rules.length === 0 ? undefined : rules;
}

/** Returns the problem with a value or null, as the end of a sentence; undefined if there is none. */
export function breach(rule: FieldRule, value: unknown): string | undefined {
  if (value === null || value === undefined) return rule.isRequired ? 'it is required, and has no value' : undefined;
  if (rule.values === undefined || rule.values.has(textOf(value))) return undefined;
  return `${describeValue(value)} is none of its values: ${told(rule.field.typeId, [...rule.values])}`;
}

/** A field of a row that breaks its rule. */
export interface Breach {
  readonly field: string;
  readonly value: unknown;
  readonly problem: string;
}

/** Returns the first field of a row that breaks its rule. `isGiven`: selects the fields to check. */
export function firstBreach(
  rules: readonly FieldRule[],
  source: RowSource,
  base: number,
  isGiven: (field: LayoutField) => boolean,
): Breach | undefined {
  for (const rule of rules) {
    const { field } = rule;
    if (!isGiven(field)) continue;
    const isMissing = isNull(source, base, field);
    // Most rules are only that there is a value.
    if (!isMissing && rule.values === undefined) continue;
    const value = isMissing ? null : readField(source, base, field);
    const problem = breach(rule, value);
    if (problem !== undefined) return { field: field.name, value, problem };
  }
  return undefined;
}

/** Returns a value of a field, except json, in the form of a stored schema: values that JSON cannot hold become a text or a number. */
export function storedConstant(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (isDate(value)) return value.getTime();
  if (isBytes(value)) return toBase64(value);
  return value;
}

/** Returns the value of a stored constant, by its type. */
export function constantValue(typeId: TypeId, constant: unknown): unknown {
  switch (typeId) {
    case Types.uint64:
    case Types.int64:
      return BigInt(constant as string | number);
    case Types.timestamp:
      return new Date(constant as number);
    case Types.bytes:
      return asBytes(fromBase64(constant as string));
    default:
      return constant;
  }
}
