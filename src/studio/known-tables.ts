/** The tables that Studio shows: it registers stored tables that the application has not registered. */
import { defined } from '../base/options.ts';
import { asList } from '../base/one-or-list.ts';
import { InvalidOptionError, Types } from '../index.ts';
import type { Database, FieldDefinition, SchemaDefinition, TypeId, TypeName } from '../index.ts';
import { fromJson, toJson, ValueError } from '../text/cell-values.ts';
import type { Cell, FieldInfo, IndexInfo, Row, TableInfo } from './messages.ts';

const typeNames = new Map<TypeId, TypeName>(
  Object.entries(Types).map(([name, typeId]) => [typeId, name as TypeName] as const),
);

/** Returns the name of a type. */
export function nameOfType(typeId: TypeId): TypeName {
  return typeNames.get(typeId) as TypeName;
}

/** A table as this instance reads it, and its cells. */
export class KnownTable {
  readonly name: string;
  /** The definition by which rows are read. */
  readonly definition: SchemaDefinition;
  readonly keyNames: readonly string[];
  readonly fields: ReadonlyMap<string, FieldDefinition>;
  /** The definition that has the stored indexes. */
  readonly #stored: SchemaDefinition;
  /** The types in which indexes read paths. */
  readonly #paths: ReadonlyMap<string, TypeId>;

  constructor(definition: SchemaDefinition, stored: SchemaDefinition) {
    this.name = definition.name;
    this.definition = definition;
    this.keyNames = asList(definition.primaryKey);
    this.fields = new Map(Object.entries(definition.fields));
    this.#stored = stored;
    this.#paths = pathsOf(stored);
  }

  /** The names of all fields. */
  get columns(): string[] {
    return [...this.fields.keys()];
  }

  get info(): TableInfo {
    const fields = [...this.fields].map(([name, field]) => fieldInfo(name, field, this.keyNames.includes(name)));
    const indexes = (this.#stored.indexes ?? []).map(indexInfo);
    const paths = [...this.#paths].map(([name, typeId]) => ({ name, type: nameOfType(typeId) }));
    const { version, expireAfter } = this.definition;
    return { name: this.name, version, fields, primaryKey: this.keyNames, indexes, paths, ...defined({ expireAfter }) };
  }

  /** Returns a field. Throws `InvalidOptionError` if the table has none of this name. */
  field(name: string): FieldDefinition {
    const field = this.fields.get(name);
    if (field !== undefined) return field;
    throw new InvalidOptionError('field', `Table ${this.name} has no field ${name}: reload the page if it is new.`);
  }

  /** Whether a name is that of no field, and leads into a json field. Queries check the rest of the path. */
  isPath(name: string): boolean {
    if (this.fields.has(name)) return false;
    return [...this.fields].some(([field, { typeId }]) => typeId === Types.json && name.startsWith(`${field}.`));
  }

  /** Returns the type of a field, or of what is at a path: json. Throws `InvalidOptionError` if a name is neither. */
  typeOf(name: string): TypeId {
    return this.isPath(name) ? Types.json : this.field(name).typeId;
  }

  cell(name: string, value: unknown): Cell {
    return toJson(this.field(name).typeId, value);
  }

  row(values: Readonly<Record<string, unknown>>): Row {
    return Object.fromEntries([...this.fields].map(([name, { typeId }]) => [name, toJson(typeId, values[name])]));
  }

  /** Decodes a cell, or a value for what is at a path. Throws `InvalidOptionError`. */
  value(name: string, cell: Cell): unknown {
    const typeId = this.typeOf(name);
    // An index on times is of use to conditions with times only.
    const isTime = typeof cell === 'string' && typeId === Types.json && this.#paths.get(name) === Types.timestamp;
    try {
      return fromJson(isTime ? Types.timestamp : typeId, cell);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      throw new InvalidOptionError(name, `Field ${name} of table ${this.name}: ${error.message}.`);
    }
  }

  /** Decodes a primary key from the cells of its fields. Throws `InvalidOptionError`. */
  key(cells: readonly Cell[]): unknown {
    if (cells.length !== this.keyNames.length) {
      const message = `The key of table ${this.name} has ${this.keyNames.length} values: ${this.keyNames.join(', ')}.`;
      throw new InvalidOptionError('key', message);
    }
    const values = this.keyNames.map((name, i) => this.value(name, cells[i]));
    return values.length === 1 ? values[0] : values;
  }

  /** Returns the cells of the primary key of a row, or of a key as the library returns it. */
  keyCells(key: unknown): Cell[] {
    const values: readonly unknown[] = this.keyNames.length === 1 ? [key] : (key as readonly unknown[]);
    return this.keyNames.map((name, i) => this.cell(name, values[i]));
  }
}

function fieldInfo(
  name: string,
  { typeId, required, maxLength, oneOf, default: fallback }: FieldDefinition,
  isOfKey: boolean,
): FieldInfo {
  return {
    name,
    type: nameOfType(typeId),
    required: required === true || isOfKey,
    ...(maxLength !== undefined && { maxLength }),
    ...(oneOf !== undefined && { oneOf: oneOf.map((value) => toJson(typeId, value)) }),
    hasDefault: fallback !== undefined && fallback !== null,
  };
}

/** Returns the paths that the indexes of a table read, and their types. */
function pathsOf({ indexes = [] }: SchemaDefinition): ReadonlyMap<string, TypeId> {
  const all = indexes.flatMap((index) => (typeof index === 'string' || 'function' in index ? [] : index.fields));
  return new Map(all.flatMap((field) => (typeof field === 'string' ? [] : [[field.path, field.typeId] as const])));
}

function indexInfo(index: NonNullable<SchemaDefinition['indexes']>[number]): IndexInfo {
  if (typeof index === 'string') return { name: index, fields: [index], unique: false, isPartial: false };
  if ('function' in index) {
    const { function: made, name = made } = index;
    return { name, fields: [], function: made, unique: false, isPartial: false };
  }
  const { fields: on, unique = false, where } = index;
  const text = 'text' in index ? index.text : undefined;
  const fields = on.map((field) => (typeof field === 'string' ? field : field.path));
  const { name = fields.join(',') } = index;
  return {
    name,
    fields,
    unique,
    isPartial: where !== undefined,
    ...(text && { isText: true, ...defined({ weights: text.weights }) }),
  };
}

/** The tables of a database, as Studio has last seen them. */
export class KnownTables {
  readonly #db: Database;
  readonly #known = new Map<string, KnownTable>();
  /** The versions that Studio has registered, by table. */
  readonly #own = new Map<string, number>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Lists the tables, and registers those that are new. It looks at the store for them. */
  async all(signal: AbortSignal): Promise<KnownTable[]> {
    const stored = await this.#db.tables({ signal });
    const missing = this.#missing(stored);
    for (const table of await this.#registrable(missing, signal)) {
      this.#db.registerSchema(ownDefinition(table));
      this.#own.set(table.name, table.version);
    }
    const registered = new Map(this.#db.registeredSchemas().map((table) => [table.name, table]));
    const known = stored.map((table) => new KnownTable(registered.get(table.name) ?? table, table));
    for (const table of registered.values()) {
      if (!stored.some(({ name }) => name === table.name)) known.push(new KnownTable(table, table));
    }
    this.#known.clear();
    for (const table of known) this.#known.set(table.name, table);
    return known;
  }

  /** Returns a table. Throws `InvalidOptionError` if there is none of this name. */
  async get(name: string, signal: AbortSignal): Promise<KnownTable> {
    if (!this.#known.has(name)) await this.all(signal);
    const found = this.#known.get(name);
    if (found !== undefined) return found;
    throw new InvalidOptionError('table', `There is no table ${name} in this database.`);
  }

  /** Returns the stored tables that this instance cannot read: not registered at all, or by Studio in an older version. */
  #missing(stored: readonly SchemaDefinition[]): SchemaDefinition[] {
    const registered = new Map(this.#db.registeredSchemas().map(({ name, version }) => [name, version]));
    return stored.filter(({ name, version }) => {
      const own = registered.get(name);
      return own === undefined || (own === this.#own.get(name) && own < version);
    });
  }

  /** Leaves out tables that are being migrated to another version: an instance that writes would hold that up. */
  async #registrable(tables: readonly SchemaDefinition[], signal: AbortSignal): Promise<SchemaDefinition[]> {
    if (this.#db.stats().role === 'replica') return [...tables];
    const found = await Promise.all(
      tables.map(async (table) => ({ table, to: (await this.#db.migrationStatus(table.name, { signal })).to })),
    );
    return found.filter(({ table, to }) => to === null || to === table.version).map(({ table }) => table);
  }
}

/**
 * Returns a definition without indexes, but for one that `expireAfter` needs. Queries use and writes keep those that are stored anyway, and
 * this instance does not add again what another one drops.
 */
function ownDefinition(table: SchemaDefinition): SchemaDefinition {
  const { indexes = [], ...rest } = table;
  const { expireAfter } = table;
  if (expireAfter === undefined) return rest;
  const needed = indexes.find((index) => {
    const isOnElements = typeof index === 'object' && 'each' in index;
    const { fields, isPartial, isText = false } = indexInfo(index);
    return fields[0] === expireAfter.field && !isPartial && !isText && !isOnElements;
  });
  return needed === undefined ? rest : { ...rest, indexes: [needed] };
}
