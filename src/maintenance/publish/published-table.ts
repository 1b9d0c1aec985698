/** Chooses the rows, fields and indexes that a bundle has of a table. */
import { defined } from '../../base/options.ts';
import { partsOfPath } from '../../format/path-text.ts';
import { isSystemTable } from '../../format/stored-schema.ts';
import type { StoredSchema } from '../../format/stored-schema.ts';
import { Types } from '../../format/types.ts';
import { compileClause, writtenClause } from '../../query/conditions/clause.ts';
import type { CompileOptions } from '../../query/conditions/condition.ts';
import { filterOf } from '../../query/conditions/condition.ts';
import type { Filter } from '../../query/conditions/filter.ts';
import { TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { View } from '../../view/view.ts';
import { checkName } from './publish-options.ts';
import type { PublishOptions } from './publish-options.ts';

export interface TableSource {
  readonly view: View;
  /** The functions that are registered here. */
  readonly registered: CompileOptions['registered'];
  /** The newest registered version of each table that was not dropped. */
  readonly newest: Iterable<TableShape>;
}

export interface PublishedTable {
  readonly state: TableState;
  /** The table as the bundle has it. */
  readonly shape: TableShape;
  /** The condition on its rows; undefined for all rows. */
  readonly filter: Filter | undefined;
}

/**
 * Returns the schema with some of the fields. Of a field, only name, type and length hint stay: a default or a list of allowed values
 * could hold a value that no published row has. Indexes stay if all that they are on and all that their conditions test is published,
 * with those of their included fields that are. Indexes on functions stay out, because readers do not have the functions.
 */
function publishedSchema(schema: StoredSchema, chosen: readonly string[] | undefined): StoredSchema {
  const { name, version, primaryKey, expireAfter } = schema;
  const fields = schema.fields.filter((field) => {
    return chosen === undefined || chosen.includes(field.name) || primaryKey.includes(field.name);
  });
  const isField = (field: string): boolean => fields.some((one) => one.name === field);
  const isJson = (field: string): boolean =>
    schema.fields.some((one) => one.name === field && one.typeId === Types.json);
  /** Whether a field is published, or the field that a path leads into. */
  const isPublished = (field: string): boolean => {
    const isOwn = schema.fields.some((one) => one.name === field);
    return isField(isOwn ? field : (partsOfPath(field, isJson)?.field ?? field));
  };
  return {
    name,
    version,
    fields: fields.flatMap(({ name: field, typeId, maxLength }) => [
      { name: field, typeId, ...defined({ maxLength }) },
    ]),
    primaryKey,
    indexes: schema.indexes.flatMap((index) => {
      const { name: indexName, fields: indexed, paths, unique, where, each, text } = index;
      if (![...indexed, ...(where ?? []).map(({ field }) => field)].every(isPublished)) return [];
      const held = index.include?.filter(isPublished) ?? [];
      const include = held.length === 0 ? undefined : held;
      return [{ name: indexName, fields: indexed, ...defined({ paths, unique, where, include, each, text }) }];
    }),
    ...(expireAfter !== undefined && isField(expireAfter.field) && { expireAfter }),
  };
}

/**
 * The tables that a bundle of a state may have. A table that is registered here and that nobody has written yet is one without rows, if
 * it is named.
 */
function publishableTables({ view, newest }: TableSource, named: readonly string[]): ReadonlyMap<string, TableState> {
  const states = new Map([...view.tables].filter(([name]) => !isSystemTable(name)));
  for (const { name, schema } of newest) {
    if (!states.has(name) && named.includes(name)) states.set(name, view.emptyTable(schema));
  }
  return states;
}

/** Returns the tables to publish. Throws `InvalidOptionError` and `InvalidQueryError` for names and conditions that do not fit them. */
export function publishedTables(
  source: TableSource,
  { tables, where = {}, fields = {} }: PublishOptions,
): PublishedTable[] {
  const { registered } = source;
  const states = publishableTables(source, tables ?? []);
  const known = [...states.keys()];
  for (const name of tables ?? []) checkName('tables', name, known);
  const chosen = tables === undefined ? known : [...new Set(tables)];
  for (const name of Object.keys(where)) checkName('where', name, chosen);
  for (const name of Object.keys(fields)) checkName('fields', name, chosen);
  return chosen.toSorted().map((name) => {
    const state = states.get(name) as TableState;
    const { schema } = state.shape;
    const own = fields[name];
    const fieldNames = schema.fields.map((field) => field.name);
    for (const field of own ?? []) checkName(`fields.${name}`, field, fieldNames);
    const build = where[name];
    const conditions =
      build === undefined ? [] : compileClause({ shape: state.shape, registered }, writtenClause(build).written);
    const filter = conditions.length === 0 ? undefined : filterOf(conditions);
    return { state, shape: new TableShape(publishedSchema(schema, own)), filter };
  });
}
