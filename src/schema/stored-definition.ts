/** Turns a stored schema back into a definition: for tools without definitions of their own, and for the next version of a table. */
import { oneOrList } from '../base/one-or-list.ts';
import { defined } from '../base/options.ts';
import type {
  StoredField,
  StoredFunctionIndex,
  StoredIndex,
  StoredRename,
  StoredSchema,
  StoredText,
} from '../format/stored-schema.ts';
import { bigintBounds, isVariable } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import type { TextLanguage } from '../search/languages.ts';
import { conditionsOf } from './index-condition.ts';
import { constantDefault } from './schema.ts';
import type { FunctionIndexDefinition, IndexDefinition, TextDefinition } from './index-definitions.ts';
import type { FieldDefinition, SchemaDefinition } from './schema.ts';

function toFieldDefinition(field: StoredField): FieldDefinition {
  const { typeId, maxLength, default: fallback, required, oneOf } = field;
  const is64Bit = bigintBounds(typeId) !== undefined;
  return {
    typeId,
    ...(maxLength !== undefined && isVariable(typeId) && { maxLength }),
    ...(fallback !== undefined && { default: 'generated' in fallback ? fallback.generated : constantDefault(field) }),
    ...defined({ required }),
    ...(oneOf !== undefined && { oneOf: is64Bit ? oneOf.map(BigInt) : oneOf }),
  };
}

function toIndexDefinition(
  { name, fields: names, paths = [], unique, where, include, each, text }: StoredIndex,
  typeOf: (field: string) => TypeId | undefined,
): string | IndexDefinition {
  const isPlain = [unique, where, include, each, text].every((more) => more === undefined);
  if (isPlain && paths.length === 0 && names.length === 1 && names[0] === name) return name;
  const isDefaultName = name === names.join(',');
  const fields = names.map((one) => paths.find(({ path }) => path === one) ?? one);
  return {
    fields,
    ...defined({
      unique,
      where: where && conditionsOf(where, typeOf),
      include,
      each,
      text: text && toTextDefinition(text, names),
    }),
    ...(!isDefaultName && { name }),
  };
}

/** Returns the definition of the words of an index. */
export function toTextDefinition({ language, weights }: StoredText, fields: readonly string[]): TextDefinition {
  return {
    ...defined({ language: language as TextLanguage | undefined }),
    ...(weights !== undefined && { weights: Object.fromEntries(fields.map((field, i) => [field, weights[i] ?? 1])) }),
  };
}

function toFunctionIndexDefinition({
  name,
  function: made,
  typeId,
  each,
}: StoredFunctionIndex): FunctionIndexDefinition {
  return { function: made, typeId, ...defined({ each }), ...(name !== made && { name }) };
}

function toRenameEntry({ field, from }: StoredRename): [string, string | readonly string[]] {
  return [field, oneOrList(from)];
}

/**
 * Returns a definition that `toStoredSchema()` turns into an equal stored schema. It can be registered. `migrate` is not stored, so the
 * definition has none.
 */
export function toDefinition(schema: StoredSchema): SchemaDefinition {
  const { renames, expireAfter } = schema;
  const types = new Map(schema.fields.map(({ name, typeId }) => [name, typeId]));
  const typeOf = (name: string): TypeId | undefined => types.get(name);
  const onFields = schema.indexes.map((index) => toIndexDefinition(index, typeOf));
  const indexes = [...onFields, ...(schema.functionIndexes ?? []).map(toFunctionIndexDefinition)];
  return {
    name: schema.name,
    version: schema.version,
    fields: Object.fromEntries(schema.fields.map((field) => [field.name, toFieldDefinition(field)])),
    primaryKey: oneOrList(schema.primaryKey),
    ...(indexes.length > 0 && { indexes }),
    ...defined({ renames: renames && Object.fromEntries(renames.map(toRenameEntry)), expireAfter }),
  };
}
