/** Compares the definitions of table versions. */
import { canonicalRows } from '../format/stored-schema.ts';
import type {
  StoredField,
  StoredFunctionIndex,
  StoredIndex,
  StoredIndexes,
  StoredSchema,
} from '../format/stored-schema.ts';
import { typeName } from '../format/types.ts';
import type { TableShape } from './table-shape.ts';

/** Indexes of a definition that a table lacks. */
export type MissingIndexes = Required<StoredIndexes>;

/**
 * Whether two shapes are of the same definition: they have the same rows, and indexes of the same name are the same. Each may have
 * indexes that the other lacks, since indexes are added and dropped without a new version.
 */
export function isSameShape(one: TableShape, other: TableShape): boolean {
  if (other === one || other === one.compared.same) return true;
  if (other.canonical !== one.canonical && !isSameButIndexes(one.schema, other.schema)) return false;
  one.compared.same = other;
  return true;
}

/** Whether two shapes are of the same version with the same rows. Indexes of the same name may differ. */
export function haveSameRows(one: TableShape, other: TableShape): boolean {
  // Their texts are made only where the versions do not tell.
  return (
    one.version === other.version &&
    (isSameShape(one, other) || canonicalRows(one.schema) === canonicalRows(other.schema))
  );
}

/** Whether the keys of both shapes have the same types, so that equal values have equal bytes. */
export function haveSameKeys({ keyFields }: TableShape, { keyFields: others }: TableShape): boolean {
  return keyFields.length === others.length && keyFields.every(({ typeId }, i) => typeId === others[i]?.typeId);
}

/** Returns the indexes of another definition of the same rows whose names a shape lacks; undefined if there are none. */
export function lackedIndexes(shape: TableShape, definition: TableShape): MissingIndexes | undefined {
  if (definition === shape || definition === shape.compared.withoutMore) return undefined;
  const names = new Set([...shape.indexes, ...shape.functionIndexes].map(({ name }) => name));
  const isMissing = ({ name }: { readonly name: string }): boolean => !names.has(name);
  const indexes = definition.schema.indexes.filter(isMissing);
  const functionIndexes = definition.functionIndexes.filter(isMissing);
  if (indexes.length + functionIndexes.length > 0) return { indexes, functionIndexes };
  shape.compared.withoutMore = definition;
  return undefined;
}

/** Returns, for each index of a schema by name, a text that is the same for equal indexes. */
export function indexTexts({ indexes, functionIndexes = [] }: StoredSchema): Map<string, string> {
  const onFields = indexes.map((index): [string, string] => [index.name, indexText(index)]);
  return new Map([
    ...onFields,
    ...functionIndexes.map((index): [string, string] => [index.name, functionIndexText(index)]),
  ]);
}

/** Returns a text that is the same for equal indexes on fields. */
export function indexText({ fields, paths = [], unique, where, include, each, text }: StoredIndex): string {
  const conditions = where?.map(({ field, values }) => [field, values]) ?? null;
  const types = paths.map(({ path, typeId }) => [path, typeId]);
  return JSON.stringify([fields, unique ?? false, conditions, include ?? null, each ?? false, text ?? null, ...types]);
}

function functionIndexText({ function: on, typeId, each }: StoredFunctionIndex): string {
  return JSON.stringify([on, typeId, each ?? false]);
}

function isSameButIndexes(a: StoredSchema, b: StoredSchema): boolean {
  if (canonicalRows(a) !== canonicalRows(b)) return false;
  const others = indexTexts(b);
  const isOther = ([name, text]: [string, string]): boolean => (others.get(name) ?? text) !== text;
  return ![...indexTexts(a)].some(isOther);
}

/** Describes in a sentence how the rows of a definition differ from those of another one, which is stored or registered. */
export function rowDifference(own: StoredSchema, other: StoredSchema): string {
  for (const field of own.fields) {
    const there = other.fields.find(({ name }) => name === field.name);
    if (there === undefined) return `Field '${field.name}' is not in that one.`;
    if (there.typeId !== field.typeId)
      return `Field '${field.name}' is of type ${typeName(there.typeId)} there, and of type ${typeName(field.typeId)} here.`;
    const property = (['required', 'default', 'maxLength', 'oneOf'] as const).find((name) => {
      return rowsOf(own, { ...field, [name]: there[name] }) !== rowsOf(own, field);
    });
    if (property !== undefined) return `Field '${field.name}' has another \`${property}\` there.`;
  }
  const more = other.fields.find(({ name }) => !own.fields.some((field) => field.name === name));
  if (more !== undefined) return `That one has a field '${more.name}' too.`;
  if (own.primaryKey.join() !== other.primaryKey.join())
    return `The primary key is ${other.primaryKey.join(', ')} there.`;
  const isExpiry = JSON.stringify(own.expireAfter) !== JSON.stringify(other.expireAfter);
  return isExpiry ? 'It has another `expireAfter` there.' : 'It has other `renames` there.';
}

/** Returns the canonical text of rows with one field. */
function rowsOf(schema: StoredSchema, field: StoredField): string {
  return canonicalRows({ ...schema, fields: [field] });
}
