/** The schemas, functions and triggers that an application has registered, whether or not the database is running. */
import { compareStrings } from '../base/bytes.ts';
import { BatchStateError, InvalidOptionError, InvalidSchemaError, SchemaNotFoundError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { describeValue } from '../base/messages.ts';
import { didYouMean } from '../base/options.ts';
import { systemSchemas } from '../blob/blob-tables.ts';
import { canonicalRows, isSystemTable } from '../format/stored-schema.ts';
import type { MigrationCode, StoredSchema } from '../format/stored-schema.ts';
import type { StoredTable } from '../format/stored-table.ts';
import { FieldKinds } from '../schema/field-kinds.ts';
import type { RegisteredFunction, RegisteredTrigger } from '../schema/registered-functions.ts';
import { keyConflict, renameConflict } from '../schema/renames.ts';
import { RowValidator } from '../schema/row-validator.ts';
import { toStoredSchema } from '../schema/schema.ts';
import type { MigrateFunction, SchemaDefinition } from '../schema/schema.ts';
import { toDefinition } from '../schema/stored-definition.ts';
import { indexTexts, isSameShape, rowDifference } from '../schema/same-shape.ts';
import { shapeOf, TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';
import { checkedIndexesSchema } from './checked-indexes.ts';
import { DroppedTables } from './dropped-tables.ts';
import { refuseOtherCode, isOtherCode, noCodes } from './migration-code.ts';
import { retiredVersionsSchema } from './retired-versions.ts';

const noTriggers: readonly RegisteredTrigger[] = [];
const triggerOperations: ReadonlySet<unknown> = new Set(['insert', 'update', 'delete', '*']);

export class Registry {
  readonly #logger: Logger;
  /** The newest registered version of each table. */
  readonly #shapes = new Map<string, TableShape>();
  readonly #versions = new Map<string, Map<number, TableShape>>();
  /** The `migrate` functions, by table and version. */
  readonly #migrations = new Map<string, Map<number, MigrateFunction>>();
  /** How the `migrate` functions are identified in storage, by table and version. Versions without a function are left out. */
  readonly #codes = new Map<string, Map<number, MigrationCode>>();
  /** The checks of rows, by table and version. Versions without checks are left out. */
  readonly #validators = new Map<string, Map<number, RowValidator>>();
  readonly #coded = new WeakMap<TableShape, StoredSchema>();
  readonly #kinds = new Map<string, FieldKinds>();
  /** The fields of tables that are more than their type, in the newest registered version. Tables without such fields are left out. */
  readonly kinds: ReadonlyMap<string, FieldKinds> = this.#kinds;
  readonly #functions = new Map<string, RegisteredFunction>();
  /** The registered functions by name. */
  readonly functions: ReadonlyMap<string, RegisteredFunction> = this.#functions;
  readonly #triggers = new Map<string, RegisteredTrigger[]>();
  /** The registrations whose tables were dropped since. */
  readonly dropped: DroppedTables = new DroppedTables();
  /** The system tables, which applications may read. */
  readonly #system: ReadonlyMap<string, TableShape>;

  constructor(logger: Logger) {
    this.#logger = logger;
    const schemas = [...systemSchemas, retiredVersionsSchema, checkedIndexesSchema];
    this.#system = new Map(schemas.map((schema) => [schema.name, shapeOf(schema)]));
  }

  /**
   * Registers a schema. `view`: the stored state, if the database is running. If the table was dropped since it was registered, all that
   * was registered of it is forgotten. Throws `InvalidSchemaError`.
   */
  registerSchema(definition: unknown, view: View | undefined): void {
    const schema = toStoredSchema(definition);
    const isAnew = this.#isDropped(schema.name);
    const shape = isAnew ? new TableShape(schema) : shapeOf(schema);
    const { migrate, migrateVersion } = definition as SchemaDefinition;
    checkMigrateVersion(shape, migrate, migrateVersion);
    if (migrate !== undefined && typeof migrate !== 'function') {
      const message = `\`migrate\` of table '${shape.name}' must be a function, not ${describeValue(migrate)}.`;
      throw new InvalidSchemaError(shape.name, message);
    }
    const validator = RowValidator.of(shape, definition as SchemaDefinition);
    const known = isAnew ? undefined : this.versionShape(shape.name, shape.version);
    if (known !== undefined && !isSameShape(known, shape)) throw redefined(shape, 'was registered', known);
    if (view !== undefined) refuseOtherDefinition(view, shape);
    const own = migrate === undefined ? false : migrateVersion === undefined ? true : String(migrateVersion);
    if (view !== undefined) {
      refuseRenames(view, shape);
      // The old version may be registered after this one.
      const codeOf = (table: string, version: number): MigrationCode | undefined =>
        version !== shape.version ? undefined : known === undefined ? own : this.codeOf(table, version);
      refuseOtherCode(view, shape, { codeOf });
    }
    if (isAnew) this.#forget(shape.name);
    // The first definition of a version counts, except for its indexes.
    if (migrate !== undefined && known === undefined) {
      setVersion(this.#migrations, shape, migrate);
      setVersion(this.#codes, shape, own);
    }
    if (validator !== undefined && known === undefined) setVersion(this.#validators, shape, validator);
    const latest = known?.canonical === shape.canonical ? known : shape;
    setVersion(this.#versions, shape, latest);
    const newest = this.#shapes.get(shape.name);
    if (newest === undefined || newest.version <= shape.version) this.#shapes.set(shape.name, latest);
    if (newest === undefined || newest.version < shape.version) {
      const kinds = new FieldKinds(shape.name, (definition as SchemaDefinition).fields, this.functions);
      if (kinds.size === 0) this.#kinds.delete(shape.name);
      else this.#kinds.set(shape.name, kinds);
    }
    for (const field of shape.layout.fields) this.#warnOfShadow(shape, field.name);
    for (const name of new Set(shape.functionIndexes.map((index) => index.function))) this.#warnOfVersion(shape, name);
  }

  #isDropped(table: string): boolean {
    const newest = this.#shapes.get(table);
    return newest !== undefined && this.dropped.has(newest);
  }

  #forget(table: string): void {
    this.#shapes.delete(table);
    this.#kinds.delete(table);
    for (const byTable of [this.#versions, this.#migrations, this.#codes, this.#validators]) byTable.delete(table);
  }

  /** Notes the tables that a newer view shows as dropped. */
  follow(view: View): void {
    this.dropped.follow(view, () => this.#registered());
  }

  *#registered(): Generator<TableShape, void, undefined> {
    for (const versions of this.#versions.values()) yield* versions.values();
  }

  /**
   * The database is being started, and shows its first states: all that is registered counts, as if it was registered now. Operations that a
   * batch still has from before a drop do not.
   */
  renew(view: View): void {
    this.follow(view);
    for (const [table, versions] of this.#versions) {
      if (!this.#isDropped(table)) continue;
      // Batches keep the old shapes.
      for (const [version, { schema }] of versions) versions.set(version, new TableShape(schema));
      const newest = Math.max(...versions.keys());
      this.#shapes.set(table, versions.get(newest) as TableShape);
    }
  }

  registerFunction(name: unknown, fn: unknown, version: unknown): void {
    if (typeof name !== 'string' || name === '') {
      throw new InvalidOptionError(
        'name',
        `A function's name must be a string that is not empty, not ${describeValue(name)}.`,
      );
    }
    if (typeof fn !== 'function') {
      throw new InvalidOptionError('fn', `Function ${name} must be a function (row) => any, not ${describeValue(fn)}.`);
    }
    if (version !== undefined && (typeof version !== 'number' || !Number.isFinite(version))) {
      throw new InvalidOptionError(
        'version',
        `The version of function ${name} must be a finite number, not ${describeValue(version)}.`,
      );
    }
    this.#functions.set(name, { name, fn: fn as RegisteredFunction['fn'], version });
    for (const shape of this.#shapes.values()) {
      if (shape.layout.field(name) !== undefined) this.#warnOfShadow(shape, name);
      this.#warnOfVersion(shape, name);
    }
  }

  #warnOfVersion(shape: TableShape, name: string): void {
    const registered = this.#functions.get(name);
    if (registered === undefined || Number.isFinite(registered.version)) return;
    for (const index of shape.functionIndexes) {
      if (index.function !== name) continue;
      const message = `Index ${index.name} of table ${shape.name} is not used: function ${name} is registered without a version`;
      this.#logger.warn(`${message}, so that nobody can tell whether what is stored is what it returns`);
    }
  }

  #warnOfShadow(shape: TableShape, name: string): void {
    if (!this.#functions.has(name)) return;
    this.#logger.warn(`The registered function ${name} hides the field of that name of table ${shape.name} in where()`);
  }

  /** Registers a trigger on a table, whether or not the table is registered yet. */
  registerTrigger(given: unknown, operation: unknown, handler: unknown): void {
    const table: unknown = typeof given === 'object' && given !== null ? (given as { name?: unknown }).name : given;
    if (typeof table !== 'string' || table === '') {
      throw new InvalidOptionError('tableName', `A trigger needs the name of a table, not ${describeValue(table)}.`);
    }
    if (!triggerOperations.has(operation)) {
      const allowed = "'insert', 'update', 'delete' or '*'";
      throw new InvalidOptionError('operation', `A trigger fires for ${allowed}, not for ${describeValue(operation)}.`);
    }
    if (typeof handler !== 'function') {
      throw new InvalidOptionError('handler', `A trigger's handler must be a function, not ${describeValue(handler)}.`);
    }
    const registered = this.#triggers.get(table) ?? [];
    registered.push({ operation, handler } as RegisteredTrigger);
    this.#triggers.set(table, registered);
  }

  /** Warns of triggers on tables that are not registered, if the name of another one is similar: such a trigger would never fire. */
  warnOfTriggers(): void {
    for (const table of this.#triggers.keys()) {
      const guess = this.#shapes.has(table) ? '' : didYouMean(table, [...this.#shapes.keys()]);
      if (guess === '') continue;
      this.#logger.warn(`There is a trigger on table '${table}', which is not registered${guess}`, { table });
    }
  }

  /** Triggers of a table in the order of their registration. */
  triggers(table: string): readonly RegisteredTrigger[] {
    return this.#triggers.get(table) ?? noTriggers;
  }

  /** The newest registered version of each table of the application that was not dropped since. */
  get newest(): Iterable<TableShape> {
    return [...this.#shapes.values()].filter((shape) => !this.dropped.has(shape));
  }

  shape(table: string): TableShape | undefined {
    return this.#shapes.get(table) ?? this.#system.get(table);
  }

  /** The shape of one version of a table, the newest or another one, if it is registered and the table was not dropped since. */
  versionShape(table: string, version: number): TableShape | undefined {
    const shape = this.#versions.get(table)?.get(version);
    return shape === undefined || this.dropped.has(shape) ? undefined : shape;
  }

  requireShape(table: string): TableShape {
    const shape = this.shape(table);
    if (shape === undefined) throw this.#unknownTable(table);
    return shape;
  }

  #unknownTable(table: string): SchemaNotFoundError {
    const names = Array.from(this.newest, ({ name }) => name);
    const meant = didYouMean(table, [...names, ...this.#system.keys()]);
    const way = 'egister it with db.registerSchema() before you use it.';
    return new SchemaNotFoundError(table, meant === '' ? `. R${way}` : `${meant} If not, r${way}`);
  }

  /** Shape of a table that applications may write to. Throws `TableDroppedError` if it was dropped since it was registered. */
  writableShape(table: string): TableShape {
    if (this.#system.has(table)) {
      throw new BatchStateError(`Table ${table} is the database's own: it can be read, but not written to.`);
    }
    const shape = this.requireShape(table);
    this.dropped.refuse(shape);
    return shape;
  }

  registeredFunction(name: string): RegisteredFunction | undefined {
    return this.#functions.get(name);
  }

  /** The `migrate` function of a version; undefined if it has none, or is not registered. */
  migrateFunction(table: string, version: number): MigrateFunction | undefined {
    return this.#migrations.get(table)?.get(version);
  }

  /** The checks of the rows of a version; undefined if it has none, or is not registered. */
  validator({ name, version }: TableShape): RowValidator | undefined {
    return this.#validators.get(name)?.get(version);
  }

  /** Identifies the code that this instance makes rows of a version with. */
  codeOf(table: string, version: number): MigrationCode {
    return this.#codes.get(table)?.get(version) ?? false;
  }

  /** The schema of a version to store next to an `old` one, with the code that makes rows of each from rows of the other. */
  codedSchema(shape: TableShape, old: number): StoredSchema {
    const [code, codeBack] = [this.codeOf(shape.name, shape.version), this.codeOf(shape.name, old)];
    const known = this.#coded.get(shape);
    if (known?.code === code && known.codeBack === codeBack) return known;
    const schema = { ...shape.schema, code, codeBack };
    this.#coded.set(shape, schema);
    return schema;
  }
}

/** Sets the value of a version of a table. */
function setVersion<T>(values: Map<string, Map<number, T>>, { name, version }: TableShape, value: T): void {
  const versions = values.get(name) ?? new Map<number, T>();
  values.set(name, versions.set(version, value));
}

function checkMigrateVersion({ name }: TableShape, migrate: unknown, version: unknown): void {
  if (version === undefined) return;
  const isVersion =
    typeof version === 'string' ? version !== '' && version.length <= 128 : Number.isSafeInteger(version);
  if (!isVersion) {
    const allowed = 'an integer, or a string of 1 to 128 characters';
    throw new InvalidSchemaError(
      name,
      `\`migrateVersion\` of table '${name}' must be ${allowed}, not ${describeValue(version)}.`,
    );
  }
  if (migrate !== undefined) return;
  throw new InvalidSchemaError(
    name,
    `Table '${name}' has a \`migrateVersion\`, and no \`migrate\` that it is the version of.`,
  );
}

/**
 * Throws `InvalidSchemaError` if a version is stored with another definition. The definition of the active version may differ in
 * its indexes, and that of the next version in nothing.
 */
export function refuseOtherDefinition(view: View, shape: TableShape): void {
  const { name, version } = shape;
  const active = view.table(name)?.shape;
  if (active?.version === version && !isSameShape(active, shape)) throw redefined(shape, 'is stored', active);
  const nextVersion = view.nextVersion(name)?.rows.shape;
  if (nextVersion?.version === version && nextVersion.canonical !== shape.canonical)
    throw redefined(shape, 'is stored', nextVersion);
}

/** Whether a version is stored with a definition that contradicts this one, in more than indexes that one of both lacks. */
export function isStoredOtherwise(view: View, shape: TableShape): boolean {
  const stored = [view.table(shape.name)?.shape, view.nextVersion(shape.name)?.rows.shape];
  return stored.some((other) => other?.version === shape.version && !isSameShape(other, shape));
}

/** The error for a version that is `known` with another definition. */
export function redefined(shape: TableShape, how: string, known: TableShape): InvalidSchemaError {
  const { name, version } = shape;
  return new InvalidSchemaError(
    name,
    `Version ${version} of table '${name}' ${how} with another definition. ${whyNot(shape, known)}`,
  );
}

function whyNot(shape: TableShape, known: TableShape): string {
  if (canonicalRows(shape.schema) !== canonicalRows(known.schema)) {
    const difference = rowDifference(shape.schema, known.schema);
    return `${difference} The fields and the primary key of a version never change: give the new definition a new version.`;
  }
  const others = indexTexts(known.schema);
  for (const [index, text] of indexTexts(shape.schema)) {
    if ((others.get(index) ?? text) === text) continue;
    return `Index '${index}' is another one there: give yours another name, or give the new definition a new version.`;
  }
  return 'It has other indexes there. Indexes are added to a version once no migration to it is under way.';
}

/**
 * The version that readers should use: the new version once it holds all rows. But if a function of the application makes its
 * rows, readers without that function use the old version until that is retired.
 */
function shapeInForce(view: View, name: string, active: TableShape): TableShape {
  const nextVersion = view.nextVersion(name);
  if (nextVersion?.migration?.phase !== 'switched') return active;
  const { shape } = nextVersion.rows;
  return isOtherCode(shape.schema, active.version, noCodes) ? active : shape;
}

/** The stored definitions of all tables except system tables, ordered by name: for tools that have no definitions of their own. */
export function storedDefinitions(view: View): SchemaDefinition[] {
  const users = [...view.tables].filter(([name]) => !isSystemTable(name));
  const definitions = users.map(([name, { shape }]) => toDefinition(shapeInForce(view, name, shape).schema));
  return definitions.toSorted((a, b) => compareStrings(a.name, b.name));
}

/** Returns the definitions that are registered, in the newest version of each table, ordered by name. They have no functions. */
export function registeredDefinitions(registry: Registry): SchemaDefinition[] {
  const definitions = [...registry.newest].map(({ schema }) => toDefinition(schema));
  return definitions.toSorted((a, b) => compareStrings(a.name, b.name));
}

/**
 * The definition of the next version of a table, for an instance that has to make its rows. Undefined if the version is not stored,
 * or if a function of the application makes its rows.
 */
export function comingDefinition(
  tables: readonly StoredTable[],
  { table, from, to }: { readonly table: string; readonly from: number; readonly to: number },
): SchemaDefinition | undefined {
  const versions = tables.find(({ name }) => name === table)?.versions ?? [];
  const schema = versions.map((version) => version.schema).find(({ version }) => version === to);
  return schema === undefined || isOtherCode(schema, from, noCodes) ? undefined : toDefinition(schema);
}

/**
 * Throws `InvalidSchemaError`, before anything is written, if a version is newer than the active version and its renames or its
 * primary key conflict with that.
 */
export function refuseRenames(view: View, { name, version, schema }: TableShape): void {
  const active = view.table(name)?.shape;
  if (active === undefined || active.version >= version) return;
  const conflict = renameConflict(active.schema, schema) ?? keyConflict(active.schema, schema);
  if (conflict === undefined) return;
  throw new InvalidSchemaError(
    name,
    `Table '${name}' cannot go to version ${version}. ${conflict} Nothing was written.`,
  );
}
