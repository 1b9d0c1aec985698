/**
 * Schema definitions, the form in which applications describe tables; the row types that follow from them; and their check, which turns
 * them into the stored form (format/stored-schema.ts).
 */
import type { Bytes } from '#platform';
import { InvalidSchemaError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { asList } from '../base/one-or-list.ts';
import { defined } from '../base/options.ts';
import type { BlobValue } from '../blob/blob-value.ts';
import { isSystemTable, maxFields, maxKeyFields } from '../format/stored-schema.ts';
import type { StoredDefault, StoredField, StoredRename, StoredSchema } from '../format/stored-schema.ts';
import { isTypeId, Types } from '../format/types.ts';
import type { JsonValue, TypeId } from '../format/types.ts';
import { normalizeValue } from '../format/values.ts';
import { readExpiry } from './expiry.ts';
import { readRules, constantValue, storedConstant } from './field-rules.ts';
import { checkKeyField, checkName, refuseUnknown } from './definition-checks.ts';
import { readIndexes } from './index-definitions.ts';
import type { FunctionIndexDefinition, IndexDefinition } from './index-definitions.ts';
import type { StandardSchema } from './standard-schema.ts';

/** A row as applications see it: its values by field name. */
export type PlainRow = Record<string, unknown>;

/**
 * Makes a row of this version from a row of another version. It must be synchronous and pure: the same row always gives the same
 * result. Fields that it leaves out get their constant `default`, or null. Fields that only the other version has are dropped.
 */
export type MigrateFunction = (row: Record<string, unknown>, fromVersion: number) => Record<string, unknown>;

/** One field of a table. */
export interface FieldDefinition {
  /** One of {@link Types}. Stored on disk. */
  readonly typeId: TypeId;
  /** The expected length of varchar, json and bytes, in UTF-8 bytes: a packing hint. Longer values are stored in full. Default: none. */
  readonly maxLength?: number;
  /**
   * The value that an insert stores if it leaves the field out: a constant of the field's type; `'uuidv7'` on a uuid or varchar
   * field for a new time-ordered id; or `'now'` on a timestamp field for the time of the call, by the clock of the process.
   * Default: null.
   */
  readonly default?: unknown;
  /**
   * Whether every row has a value in this field: an insert, update or upsert that would leave it null is refused with
   * `EncodeError`. The primary key is required anyway. Default: false.
   */
  readonly required?: boolean;
  /**
   * The values that the field takes, and null too if it is not required: 1 to 1,000 values of an integer, varchar or uuid field. Any
   * other value is refused with `EncodeError`. Default: all values of the type.
   */
  readonly oneOf?: readonly (string | number | bigint)[];
}

/** When rows of a table expire. */
export interface ExpiryDefinition {
  /**
   * The field with the time: a timestamp, or milliseconds since 1970 in an int64, uint64 or float64 field. An index on all rows begins
   * with it. A row in which it is null does not expire.
   */
  readonly field: string;
  /** The seconds from that time until the row expires: an integer of at least 0. */
  readonly seconds: number;
}

/** A table in one version. */
export interface SchemaDefinition {
  /** The name of the table: 1 to 128 UTF-8 bytes, not beginning with `_`. */
  readonly name: string;
  /** The version of the schema, an integer >= 0. */
  readonly version: number;
  /** Fields by name, 1 to 1000. The definition of a version never changes. */
  readonly fields: { readonly [name: string]: FieldDefinition };
  /**
   * The name of the field that identifies a row, or the names of 2 to 16 different fields that do so together: `['tenant', 'slug']`.
   * Rows are stored in the order of the first field, then of the second, and are looked up by an array of the values. The fields are not
   * of type json or blob, and never null.
   */
  readonly primaryKey: string | readonly string[];
  /**
   * The indexes: each is the name of a field, an {@link IndexDefinition} or a {@link FunctionIndexDefinition}. Default: none.
   */
  readonly indexes?: readonly (string | IndexDefinition | FunctionIndexDefinition)[];
  /**
   * The names of fields in older versions, by their names in this version: one name, or several if it differed between versions.
   * Values carry over to the new name, and back to the old name while both versions are in use. The names are stored, so that every
   * instance that migrates rows to this version knows them. Default: none.
   */
  readonly renames?: { readonly [field: string]: string | readonly string[] };
  /**
   * Rows expire: queries show a row until the time in a field is that many seconds past, by the clock of the instance that reads, and
   * instances delete it some minutes later. The field has an index that begins with it. Default: rows do not expire.
   */
  readonly expireAfter?: ExpiryDefinition;
  /**
   * Makes a row of this version from a row of another version: of an older one to migrate it, and of a newer one if both are
   * registered and this is the older. It must be synchronous and pure. The function is not stored: definitions with and without it
   * are the same. During a migration to this version, only whether there is a function is stored: see `migrateVersion`. The row has
   * renamed fields by both names; they carry over if the function leaves them out. Default: fields of the same name, or of the old
   * name, carry over, with numbers widened, and new fields get their constant `default`, or null.
   */
  readonly migrate?: MigrateFunction;
  /**
   * The version of the `migrate` function: an integer or a short text. Change it when the function makes other rows. During a migration
   * to this version, instances whose `migrate` has another version, or that have none, are refused. Default: none, and then only whether
   * there is a function is compared.
   */
  readonly migrateVersion?: number | string;
  /**
   * A schema of zod, valibot, arktype or another library that implements Standard Schema. Every row that a flush, a transaction or
   * a load of this process stores is checked by it as a whole, after its changes, before anything is written: `ValidationError`. A field
   * without a value may be null or absent for the schema. The row is stored as it was given: transforms and defaults of the schema are
   * not applied. It is not stored, as `migrate` is not: other processes check what their definition says. Rows of a migration are not
   * checked. Default: none.
   */
  readonly validate?: StandardSchema;
}

type TypesById = {
  1: number;
  2: number;
  3: number;
  4: bigint;
  5: number;
  6: number;
  7: number;
  8: bigint;
  9: number;
  10: string;
  11: string;
  12: boolean;
  13: Date;
  14: JsonValue;
  15: string;
  16: Bytes;
  17: number;
};

/** Holds the type of a json field's values for the compiler. It does not exist at run time. */
declare const jsonOf: unique symbol;

/** A json field with a type for its values, as returned by {@link json}. */
export interface JsonField<T> {
  /** The type json. */
  readonly typeId: typeof Types.json;
  /** Only for the compiler: the property does not exist at run time. */
  readonly [jsonOf]: T;
}

/**
 * Returns a typed json field: `meta: json<Meta>()`, or `{ ...json<Meta>(), required: true }`. The field is `{ typeId: Types.json }`: the
 * type is only for the compiler, and stored values are not checked. `T`: an object or array that JSON preserves.
 */
export function json<T extends object>(): JsonField<T> {
  return { typeId: Types.json } as JsonField<T>;
}

/** The type of a field's values in rows that are read: with `oneOf`, the union of the listed values. */
type ValueOf<D extends FieldDefinition> = D extends { readonly oneOf: readonly (infer V)[] }
  ? [V & TypesById[D['typeId']]] extends [never]
    ? TypesById[D['typeId']]
    : V & TypesById[D['typeId']]
  : D extends { readonly [jsonOf]: infer T }
    ? T
    : TypesById[D['typeId']];

/** The types that fields take, some of which are wider than the types that are read. */
type InputsById = Omit<TypesById, 4 | 8 | 11 | 16> & {
  4: bigint | number;
  8: bigint | number;
  11: string | BlobValue;
  16: Uint8Array;
};

/** The type of the values that a field takes. With `oneOf`, 64-bit integers are typed as they are listed. */
export type InputOf<D extends FieldDefinition> = D extends { readonly oneOf: readonly (infer V)[] }
  ? V & InputsById[D['typeId']]
  : D extends { readonly [jsonOf]: infer T }
    ? T
    : InputsById[D['typeId']];

/**
 * The type of a row that is read, from its schema definition: fields may be null, except the primary key and required ones. This and the
 * types below are conditional, so that editors show the resulting type instead of a whole definition.
 */
export type RowOf<S extends SchemaDefinition> = S extends unknown
  ? KeyFields<S> extends infer K
    ? {
        -readonly [F in keyof S['fields']]:
          | ValueOf<S['fields'][F]>
          | (F extends K ? never : S['fields'][F] extends { readonly required: true } ? never : null);
      }
    : never
  : never;

/** The fields of the primary key. */
export type KeyFields<S extends SchemaDefinition> = S['primaryKey'] extends readonly (infer F)[] ? F : S['primaryKey'];

/**
 * The type of a document, from its schema definition: any of the fields, or null if they may be. 64-bit fields take safe integers too,
 * and blob fields take the result of `db.Blob()`.
 */
export type DocumentOf<S extends SchemaDefinition> = S extends unknown
  ? KeyFields<S> extends infer K
    ? {
        -readonly [F in keyof S['fields']]?:
          | InputOf<S['fields'][F]>
          | (F extends K ? never : S['fields'][F] extends { readonly required: true } ? never : null | undefined);
      }
    : never
  : never;

/** The fields that an insert must contain: fields that are never null and have no default. */
type GivenFields<S extends SchemaDefinition> =
  KeyFields<S> extends infer K
    ? {
        [F in keyof S['fields']]: S['fields'][F] extends { readonly default: unknown }
          ? never
          : F extends K
            ? F
            : S['fields'][F] extends { readonly required: true }
              ? F
              : never;
      }[keyof S['fields']]
    : never;

/** The type of a document to insert: {@link DocumentOf}, with the fields that every row needs and that have no default. */
export type NewDocumentOf<S extends SchemaDefinition> =
  IsLoose<S> extends true
    ? DocumentOf<S>
    : DocumentOf<S> & { -readonly [F in GivenFields<S>]-?: InputOf<S['fields'][F]> };

/** The values that fields of the row must have for a conditional change. */
export type ConditionOf<S extends SchemaDefinition> = S extends unknown
  ? {
      readonly [F in keyof S['fields'] & string as S['fields'][F]['typeId'] extends
        | typeof Types.json
        | typeof Types.blob
        ? never
        : F]?: InputOf<S['fields'][F]> | null;
    }
  : never;

/** Types of numbers. */
type NumericId = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 17;

/** The numbers to add to numeric fields of a row. */
export type IncrementsOf<S extends SchemaDefinition> = S extends unknown
  ? {
      readonly [F in keyof S['fields'] & string as S['fields'][F]['typeId'] extends NumericId
        ? F extends KeyFields<S>
          ? never
          : F
        : never]?: S['fields'][F]['typeId'] extends 4 | 8 ? bigint | number : number;
    }
  : never;

/** The type of a primary key passed to a call: an array for a key of several fields. */
export type KeyOf<S extends SchemaDefinition> =
  IsLoose<S> extends true
    ? unknown
    : S['primaryKey'] extends readonly string[]
      ? KeyInputs<S['fields'], S['primaryKey']>
      : InputOf<S['fields'][S['primaryKey'] & string]>;

type KeyInputs<F extends SchemaDefinition['fields'], K extends readonly string[]> = K extends readonly [string]
  ? InputOf<F[K[0]]>
  : { readonly [I in keyof K]: InputOf<F[K[I]]> };

/** The type of a primary key that is read: an array for a key of several fields. */
export type RowKeyOf<S extends SchemaDefinition> =
  IsLoose<S> extends true
    ? unknown
    : S['primaryKey'] extends readonly string[]
      ? KeyValues<S['fields'], S['primaryKey']>
      : ValueOf<S['fields'][S['primaryKey'] & string]>;

type KeyValues<F extends SchemaDefinition['fields'], K extends readonly string[]> = K extends readonly [string]
  ? ValueOf<F[K[0]]>
  : { -readonly [I in keyof K]: ValueOf<F[K[I]]> };

/** Returns the names of the primary key's fields. */
export function keyNamesOf({ primaryKey }: Pick<SchemaDefinition, 'primaryKey'>): readonly string[] {
  return asList(primaryKey);
}

/** Whether the fields of a definition are not known, as for one that was read from a file. */
type IsLoose<S extends SchemaDefinition> = string extends keyof S['fields'] ? true : false;

const schemaNames: ReadonlySet<string> = new Set<keyof SchemaDefinition>([
  'name',
  'version',
  'fields',
  'primaryKey',
  'indexes',
  'renames',
  'expireAfter',
  'migrate',
  'migrateVersion',
  'validate',
]);
const fieldNames: ReadonlySet<string> = new Set<keyof FieldDefinition>([
  'typeId',
  'maxLength',
  'default',
  'required',
  'oneOf',
]);
/** Names of other libraries for properties of a field, and their equivalents here. */
const elsewhere = {
  type: 'the type is typeId: Types.varchar, for instance',
  notNull: 'a field that is never null has required: true',
  nullable: 'every field may be null, unless it has required: true',
  unique: "indexes of the table say so: indexes: [{ fields: ['email'], unique: true }]",
  index: "indexes of the table say so: indexes: ['email']",
  primary: 'primaryKey of the table names the field',
  primaryKey: 'primaryKey of the table names the field',
  enum: 'oneOf lists the values of a field',
} as const;

/** The type of {@link elsewhere}, for the compiler's messages. */
export type Elsewhere = typeof elsewhere;

function readDefault(table: string, name: string, field: FieldDefinition): StoredDefault | undefined {
  const { default: value, typeId } = field;
  if (value === undefined) return undefined;
  if (value === 'uuidv7' && (typeId === Types.uuid || typeId === Types.varchar)) return { generated: 'uuidv7' };
  if (value === 'now' && typeId === Types.timestamp) return { generated: 'now' };
  try {
    const normal = typeId === Types.blob ? undefined : normalizeValue(typeId, value);
    if (normal === undefined) throw new Error('a blob field takes no default');
    // A copy, so that later changes of the definition's object do not matter.
    if (typeId === Types.json) return { constant: JSON.parse(normal as string) as unknown };
  } catch (error) {
    throw new InvalidSchemaError(table, `The default of field '${name}': ${(error as Error).message}.`);
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new InvalidSchemaError(table, `The default of field '${name}' must be finite: a schema is stored as JSON.`);
  }
  return { constant: storedConstant(value) };
}

/** Returns the value of a field's constant default; undefined if it has none. */
export function constantDefault(field: StoredField): unknown {
  if (field.default === undefined || !('constant' in field.default)) return undefined;
  return constantValue(field.typeId, field.default.constant);
}

function readField(table: string, name: string, field: unknown): StoredField {
  checkName(table, 'name of a field', name);
  if (typeof field !== 'object' || field === null) {
    throw new InvalidSchemaError(table, `Field '${name}' must be an object { typeId, maxLength? }.`);
  }
  refuseUnknown(table, `field '${name}' of table '${table}'`, field, fieldNames, elsewhere);
  const { typeId, maxLength } = field as FieldDefinition;
  if (!isTypeId(typeId)) {
    const message = `Field '${name}' has typeId ${describeValue(typeId)}: use one of Types, such as Types.varchar.`;
    throw new InvalidSchemaError(table, message);
  }
  if (maxLength !== undefined && !(Number.isSafeInteger(maxLength) && maxLength > 0)) {
    const message = `maxLength of field '${name}' must be a positive integer (bytes), not ${describeValue(maxLength)}.`;
    throw new InvalidSchemaError(table, message);
  }
  const stored = readDefault(table, name, field as FieldDefinition);
  const read: StoredField = {
    name,
    typeId,
    ...defined({ maxLength, default: stored }),
  };
  return { ...read, ...readRules(table, read, field) };
}

/** Checks the primary key, and returns the names of its fields. */
function readPrimaryKey(table: string, fields: readonly StoredField[], primaryKey: unknown): readonly string[] {
  if (!Array.isArray(primaryKey)) return [checkKeyField(table, fields, primaryKey, 'primary key')];
  if (primaryKey.length === 0 || primaryKey.length > maxKeyFields) {
    const message = `The primary key of table '${table}' must be the name of a field, or an array of 1 to ${maxKeyFields}, not of ${primaryKey.length}.`;
    throw new InvalidSchemaError(table, message);
  }
  const names = Array.from(primaryKey as readonly unknown[], (name) =>
    checkKeyField(table, fields, name, 'primary key'),
  );
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice === undefined) return names;
  throw new InvalidSchemaError(table, `The primary key of table '${table}' has the field '${twice}' twice.`);
}

function readRename(table: string, fields: readonly StoredField[], field: string, old: unknown): StoredRename {
  const has = (name: unknown): boolean => fields.some((candidate) => candidate.name === name);
  if (!has(field)) {
    const fix = '`renames` maps the new name of a field to its old one';
    throw new InvalidSchemaError(table, `Table '${table}' renames '${field}', which is none of its fields: ${fix}.`);
  }
  const from = asList(old);
  if (from.length === 0) {
    throw new InvalidSchemaError(table, `\`renames\` of field '${field}' must give the name that it had.`);
  }
  for (const name of from) {
    checkName(table, `old name of field '${field}'`, name);
    if (!has(name)) continue;
    const message = `Field '${field}' of table '${table}' cannot have been called '${name}': that is a field of this version.`;
    throw new InvalidSchemaError(table, message);
  }
  return { field, from: from as string[] };
}

function readRenames(table: string, fields: readonly StoredField[], renames: unknown): readonly StoredRename[] {
  if (typeof renames !== 'object' || renames === null || Array.isArray(renames)) {
    const allowed = 'an object from new names of fields to old ones';
    throw new InvalidSchemaError(table, `\`renames\` must be ${allowed}, not ${describeValue(renames)}.`);
  }
  const read = Object.entries(renames).map(([field, old]) => readRename(table, fields, field, old));
  const names = read.flatMap(({ from }) => from);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice === undefined) return read;
  const owners = [...new Set(read.filter(({ from }) => from.includes(twice)).map(({ field }) => `'${field}'`))];
  const message = `\`renames\` gives the old name '${twice}' twice, to ${owners.join(' and ')}: a field becomes one field.`;
  throw new InvalidSchemaError(table, message);
}

/** Checks a definition and returns it in its stored form. Throws `InvalidSchemaError`. */
export function toStoredSchema(definition: unknown): StoredSchema {
  if (typeof definition !== 'object' || definition === null) {
    throw new InvalidSchemaError(
      '',
      `A schema is an object { name, version, fields, primaryKey }, not ${describeValue(definition)}.`,
    );
  }
  const { name, version, fields, primaryKey, indexes = [], renames = {}, expireAfter } = definition as SchemaDefinition;
  // The name may be missing because it is given under another property, which `refuseUnknown` reports.
  const table = typeof (name as unknown) === 'string' ? name : '';
  refuseUnknown(table, table === '' ? 'a table' : `table '${table}'`, definition, schemaNames);
  checkName(table, 'name of a table', name);
  if (isSystemTable(name)) {
    throw new InvalidSchemaError(name, `Table '${name}': names that begin with _ are reserved for system tables.`);
  }
  if (!Number.isSafeInteger(version) || version < 0 || version > 0xffffffff) {
    throw new InvalidSchemaError(
      name,
      `The version of table '${name}' must be an integer >= 0, not ${describeValue(version)}.`,
    );
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw new InvalidSchemaError(name, `The fields of table '${name}' must be an object from names to { typeId }.`);
  }
  const stored = Object.entries(fields).map(([field, shape]) => readField(name, field, shape));
  if (stored.length === 0 || stored.length > maxFields) {
    throw new InvalidSchemaError(name, `Table '${name}' has ${stored.length} fields: it takes 1 to ${maxFields}.`);
  }
  const key = readPrimaryKey(name, stored, primaryKey);
  const read = readRenames(name, stored, renames);
  const readable = readIndexes(name, stored, key, indexes);
  return {
    name,
    version,
    fields: stored,
    primaryKey: key,
    ...readable,
    ...(read.length > 0 && { renames: read }),
    ...(expireAfter !== undefined && { expireAfter: readExpiry(name, stored, readable.indexes, expireAfter) }),
  };
}
