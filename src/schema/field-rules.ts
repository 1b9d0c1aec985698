/** What a definition asks of a field's values beyond their type: that there is one, and that it is one of some. */
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

/** Most values that a field may be one of: each is in the schema, which every commit to the table carries. */
const maxValues = 1000;
/** So many are told in an error. */
const toldValues = 20;

/** Rules of one field. */
export interface FieldRule {
  readonly field: LayoutField;
  readonly isRequired: boolean;
  /** The values that it takes, as texts; undefined for all of its type. */
  readonly values: ReadonlySet<string> | undefined;
}

/** One text for each value of a type that rules may list. */
function textOf(value: unknown): string {
  return value === 0 ? '0' : String(value);
}

function mayList(typeId: TypeId): boolean {
  const isInteger = integerBounds(typeId) !== undefined || bigintBounds(typeId) !== undefined;
  return isInteger || typeId === Types.varchar || typeId === Types.uuid;
}

/** The rules of a definition's field as they are stored. Throws `InvalidSchemaError`. */
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

/** The rules of a schema's fields; undefined where there are none. */
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

/** What is wrong with a value, or with null, as the end of a sentence; undefined if nothing is. */
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

/** The first of a row's fields that breaks its rule. `isGiven` says which fields are looked at. */
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
    // That a value is there is all that is asked of most.
    if (!isMissing && rule.values === undefined) continue;
    const value = isMissing ? null : readField(source, base, field);
    const problem = breach(rule, value);
    if (problem !== undefined) return { field: field.name, value, problem };
  }
  return undefined;
}

// Values of fields as schemas hold them. Block 0 is JSON: what JSON cannot hold as it is travels as a text or a number, and is read back by type.

/** A value of a field, but for json, as JSON. */
export function storedConstant(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (isDate(value)) return value.getTime();
  if (isBytes(value)) return Buffer.from(value).toString('base64');
  return value;
}

/** The value that a stored one stands for. */
export function constantValue(typeId: TypeId, constant: unknown): unknown {
  switch (typeId) {
    case Types.uint64:
    case Types.int64:
      return BigInt(constant as string | number);
    case Types.timestamp:
      return new Date(constant as number);
    case Types.bytes:
      return Buffer.from(constant as string, 'base64');
    default:
      return constant;
  }
}
