/** The definition of a table as it is stored: for tools that have no definitions of their own. */
import { defined } from '../base/defined.ts';
import { compareStrings } from '../base/order.ts';
import { isSystemTable } from '../format/stored-schema.ts';
import { bigintBounds, isVariable } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import type {
  StoredField,
  StoredFunctionIndex,
  StoredIndex,
  StoredRename,
  StoredSchema,
} from '../format/stored-schema.ts';
import type { StoredTable } from '../format/stored-table.ts';
import type { FieldDefinition, FunctionIndexDefinition, IndexDefinition, SchemaDefinition } from '../schema/schema.ts';
import { constantDefault } from '../schema/schema.ts';
import { conditionsOf } from '../schema/index-condition.ts';
import { isOtherCode, noCodes } from './migration-code.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';

function fieldOf(field: StoredField): FieldDefinition {
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

function indexOf(
  { name, fields, unique, where }: StoredIndex,
  typeOf: (field: string) => TypeId,
): string | IndexDefinition {
  if (unique === undefined && where === undefined && fields.length === 1 && fields[0] === name) return name;
  const isDefaultName = name === fields.join(',');
  return {
    fields,
    ...defined({ unique, where: where && conditionsOf(where, typeOf) }),
    ...(!isDefaultName && { name }),
  };
}

function functionIndexOf({ name, function: made, typeId }: StoredFunctionIndex): FunctionIndexDefinition {
  return { function: made, typeId, ...(name !== made && { name }) };
}

function renameOf({ field, from }: StoredRename): [string, string | readonly string[]] {
  return [field, from.length === 1 ? (from[0] as string) : from];
}

/**
 * The version that readers should have: once all rows are there in the new one, that; but where a function of the application
 * makes its rows, those without that have the old one until it is retired.
 */
function shapeInForce(view: View, name: string, active: TableShape): TableShape {
  const nextVersion = view.nextVersion(name);
  if (nextVersion?.migration?.phase !== 'switched') return active;
  const { shape } = nextVersion.rows;
  return isOtherCode(shape.schema, active.version, noCodes) ? active : shape;
}

/** The definitions of all tables but the database's own, ordered by name. */
export function storedDefinitions(view: View): SchemaDefinition[] {
  const users = [...view.tables].filter(([name]) => !isSystemTable(name));
  const definitions = users.map(([name, { shape }]) => storedDefinition(shapeInForce(view, name, shape).schema));
  return definitions.toSorted((a, b) => compareStrings(a.name, b.name));
}

/** A definition that is the same as the stored one: it can be registered beside it. `migrate` is not stored. */
function storedDefinition(schema: StoredSchema): SchemaDefinition {
  const { renames } = schema;
  const types = new Map(schema.fields.map(({ name, typeId }) => [name, typeId]));
  const typeOf = (name: string): TypeId => types.get(name) as TypeId;
  const onFields = schema.indexes.map((index) => indexOf(index, typeOf));
  const indexes = [...onFields, ...(schema.functionIndexes ?? []).map(functionIndexOf)];
  return {
    name: schema.name,
    version: schema.version,
    fields: Object.fromEntries(schema.fields.map((field) => [field.name, fieldOf(field)])),
    primaryKey: schema.primaryKey.length === 1 ? (schema.primaryKey[0] as string) : schema.primaryKey,
    ...(indexes.length > 0 && { indexes }),
    ...defined({ renames: renames && Object.fromEntries(renames.map(renameOf)) }),
  };
}

/**
 * The definition of a version that comes up beside the one in force, for whoever is to make its rows; undefined where it is not
 * there, and where a function of the application makes them.
 */
export function comingDefinition(
  tables: readonly StoredTable[],
  { table, from, to }: { readonly table: string; readonly from: number; readonly to: number },
): SchemaDefinition | undefined {
  const versions = tables.find(({ name }) => name === table)?.versions ?? [];
  const schema = versions.map((version) => version.schema).find(({ version }) => version === to);
  return schema === undefined || isOtherCode(schema, from, noCodes) ? undefined : storedDefinition(schema);
}
