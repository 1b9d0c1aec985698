/** Reads schemas from JSON files, in which types have names, and values are as JSON has them. */
import { readFile } from 'node:fs/promises';
import { isPlainObject } from '../../base/brands.ts';
import { didYouMean } from '../../base/options.ts';
import { bigintBounds, Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { FieldDefinition, SchemaDefinition } from '../../schema/schema.ts';
import { fromJson, typeIdOf, ValueError } from '../../text/cell-values.ts';
import { UsageError } from '../terminal/exit-code.ts';

type Written = Readonly<Record<string, unknown>>;

/** Returns a name as messages show it. */
function named(name: unknown): string {
  return typeof name === 'string' ? name : JSON.stringify(name);
}

/** A file, for messages. */
class SchemaFile {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** Returns the id of a type. Throws `UsageError`, which lists the names of types. */
  typeId(what: string, type: unknown): TypeId {
    const typeId = typeIdOf(type);
    if (typeId !== undefined) return typeId;
    const names = Object.keys(Types);
    const meant = typeof type === 'string' ? didYouMean(type, names) : '';
    const given = type === undefined ? 'no type' : `an unknown type ${JSON.stringify(type)}`;
    throw new UsageError(`${what} in ${this.#file} has ${given}${meant || '.'} The types are ${names.join(', ')}.`);
  }

  /** Returns a value of a field as `registerSchema()` takes it: times, bytes and 64-bit integers have a form of their own in JSON. */
  value(what: string, typeId: TypeId, value: unknown): unknown {
    const isOther = typeId === Types.timestamp || typeId === Types.bytes || bigintBounds(typeId) !== undefined;
    if (!isOther) return value;
    try {
      return fromJson(typeId, value);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      throw new UsageError(`${what} in ${this.#file}: ${error.message}.`);
    }
  }

  field(name: string, field: unknown): FieldDefinition {
    const written: Written = isPlainObject(field) ? field : { typeId: field };
    const typeId = this.typeId(`Field ${name}`, written['typeId']);
    const { default: value, oneOf } = written;
    const isGenerated = value === undefined || (value === 'now' && typeId === Types.timestamp);
    return {
      ...written,
      typeId,
      ...(!isGenerated && { default: this.value(`The default of field ${name}`, typeId, value) }),
      ...(Array.isArray(oneOf) && { oneOf: oneOf.map((each) => this.value(`oneOf of field ${name}`, typeId, each)) }),
    } as FieldDefinition;
  }

  index(index: unknown, fields: Readonly<Record<string, FieldDefinition>>): unknown {
    if (!isPlainObject(index)) return index;
    const { fields: on, where } = index;
    if (index['function'] !== undefined) {
      return { ...index, typeId: this.typeId(`The index on function ${named(index['function'])}`, index['typeId']) };
    }
    return {
      ...index,
      ...(Array.isArray(on) && { fields: on.map((field: unknown) => this.#path(field)) }),
      ...(isPlainObject(where) && { where: this.#where(where, fields) }),
    };
  }

  #path(field: unknown): unknown {
    if (!isPlainObject(field)) return field;
    return { ...field, typeId: this.typeId(`Path ${named(field['path'])} of an index`, field['typeId']) };
  }

  #where(where: Written, fields: Readonly<Record<string, FieldDefinition>>): Written {
    const condition = ([name, written]: [string, unknown]): [string, unknown] => {
      const typeId = Object.hasOwn(fields, name) ? fields[name]?.typeId : undefined;
      if (typeId === undefined || isPlainObject(written)) return [name, written];
      const read = (value: unknown): unknown => this.value(`The condition of an index on ${name}`, typeId, value);
      return [name, Array.isArray(written) ? written.map(read) : read(written)];
    };
    return Object.fromEntries(Object.entries(where).map(condition));
  }
}

/**
 * Reads a schema for `registerSchema()` from a JSON file. Types may be given by name: `{ "typeId": "varchar" }` or just `"varchar"` for
 * fields, and in indexes on paths and on functions. It checks types and values, and leaves the rest to `registerSchema()`. Throws
 * `UsageError`.
 */
export async function readSchemaFile(file: string): Promise<SchemaDefinition> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`The schema ${file} cannot be read: ${(error as Error).message}`);
  }
  const { fields, indexes } = isPlainObject(parsed) ? parsed : {};
  if (!isPlainObject(fields)) {
    throw new UsageError(`${file} is no schema: write an object { name, version, fields, primaryKey, indexes }.`);
  }
  const reader = new SchemaFile(file);
  const typed = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, reader.field(name, field)]));
  const given = parsed as SchemaDefinition;
  const read = Array.isArray(indexes) ? { indexes: indexes.map((index) => reader.index(index, typed)) } : {};
  return { ...given, ...read, fields: typed } as SchemaDefinition;
}
