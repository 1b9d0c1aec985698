/** Reads schemas from files, and describes fields and indexes. */
import { readFile } from 'node:fs/promises';
import { typeName, Types } from '../../format/types.ts';
import { describeConditions } from '../../schema/index-condition.ts';
import { nameOfIndexed } from '../../schema/index-definitions.ts';
import type { FieldDefinition, SchemaDefinition } from '../../schema/schema.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { typeIdOf } from '../../text/cell-values.ts';

/** Describes a field: its name, its type, and the rules for its values, as in `name varchar required`. */
export function describeField(name: string, { typeId, required, oneOf }: FieldDefinition): string {
  const rules = `${required === true ? ' required' : ''}${oneOf === undefined ? '' : ` (${oneOf.join(' | ')})`}`;
  return `${name} ${typeName(typeId)}${rules}`;
}

export function describeIndexes({ indexes = [] }: SchemaDefinition): string {
  if (indexes.length === 0) return 'none';
  return indexes
    .map((index) => {
      if (typeof index === 'string') return index;
      if ('function' in index) {
        const { function: made, name = made, typeId, each = false } = index;
        return `${name} (${each ? 'each element' : typeName(typeId)} of function${name === made ? '' : ` ${made}`})`;
      }
      const { fields, unique = false, where, include, each = false, text } = index;
      const { name = fields.map(nameOfIndexed).join('+') } = index;
      const paths = fields.filter((field) => typeof field === 'object').filter(({ typeId }) => typeId !== Types.json);
      const told = [
        ...paths.map(({ path, typeId }) => `${path === name ? 'path' : path} as ${typeName(typeId)}`),
        ...(unique ? ['unique'] : []),
        ...(each ? ['each element'] : []),
        ...(text === undefined ? [] : [`each word${text.language === undefined ? '' : ` of ${text.language}`}`]),
        ...(where === undefined ? [] : [`where ${describeConditions(where)}`]),
        ...(include === undefined ? [] : [`includes ${include.join(', ')}`]),
      ];
      return told.length === 0 ? name : `${name} (${told.join(' ')})`;
    })
    .join(', ');
}

/** Returns an index of a schema file with the types of its paths as `registerSchema()` takes them. */
function withTypesOfPaths(index: unknown): unknown {
  const { fields } = (index ?? {}) as { readonly fields?: unknown };
  if (typeof index !== 'object' || !Array.isArray(fields)) return index;
  const typed = fields.map((field: unknown): unknown => {
    if (typeof field !== 'object' || field === null || !('typeId' in field)) return field;
    return Object.assign({}, field, { typeId: typeIdOf(field.typeId) ?? field.typeId });
  });
  return { ...index, fields: typed };
}

/**
 * Reads a schema for `registerSchema()` from a JSON file. Types may be given by name: `{ "typeId": "varchar" }` or just `"varchar"`.
 * It checks only that the file has fields with types, and leaves the rest to `registerSchema()`. Throws `UsageError`.
 */
export async function readSchemaFile(file: string): Promise<SchemaDefinition> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`The schema ${file} cannot be read: ${(error as Error).message}`);
  }
  const { fields } = (parsed ?? {}) as { fields?: unknown };
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw new UsageError(`${file} is no schema: write an object { name, version, fields, primaryKey, indexes }.`);
  }
  const typed = Object.entries(fields).map(([name, field]): [string, FieldDefinition] => {
    const written = (typeof field === 'object' && field !== null ? field : { typeId: field }) as { typeId?: unknown };
    const typeId = typeIdOf(written.typeId);
    if (typeId === undefined) {
      throw new UsageError(`Field ${name} in ${file} has an unknown type ${JSON.stringify(written.typeId)}.`);
    }
    return [name, { ...written, typeId }];
  });
  const { indexes } = parsed as { readonly indexes?: unknown };
  const given = parsed as SchemaDefinition;
  const more = Array.isArray(indexes)
    ? { indexes: indexes.map(withTypesOfPaths) as NonNullable<typeof given.indexes> }
    : {};
  return { ...given, ...more, fields: Object.fromEntries(typed) };
}
