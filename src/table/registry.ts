/** What an application has registered: schemas and functions. Independent of whether the database is running. */
import { InvalidOptionError, InvalidSchemaError, SchemaNotFoundError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { describeValue } from '../format/values.ts';
import type { RegisteredFunction } from './query-host.ts';
import { readSchema } from './schema.ts';
import { TableShape } from './table-shape.ts';
import type { View } from './view.ts';
import type { TableState } from './table-state.ts';

export class Registry {
  readonly #logger: Logger;
  /** The newest registered version of each table. */
  readonly #shapes = new Map<string, TableShape>();
  readonly #versions = new Map<string, Map<number, TableShape>>();
  readonly #functions = new Map<string, RegisteredFunction>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Takes in a schema. `view`: what is stored, if the database is running. Throws `InvalidSchemaError`. */
  registerSchema(definition: unknown, view: View | undefined): void {
    const shape = new TableShape(readSchema(definition));
    const versions = this.#versions.get(shape.name) ?? new Map<number, TableShape>();
    const known = versions.get(shape.version);
    if (known !== undefined && known.canonical !== shape.canonical) throw redefined(shape, 'was registered');
    const stored = view?.table(shape.name)?.shape;
    if (stored?.version === shape.version && stored.canonical !== shape.canonical) throw redefined(shape, 'is stored');
    versions.set(shape.version, known ?? shape);
    this.#versions.set(shape.name, versions);
    const newest = this.#shapes.get(shape.name);
    if (newest === undefined || newest.version < shape.version) this.#shapes.set(shape.name, shape);
    for (const field of shape.layout.fields) this.#warnOfShadow(shape, field.name);
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
    if (version !== undefined && typeof version !== 'number') {
      throw new InvalidOptionError(
        'version',
        `The version of function ${name} must be a number, not ${describeValue(version)}.`,
      );
    }
    this.#functions.set(name, { name, fn: fn as RegisteredFunction['fn'], version });
    for (const shape of this.#shapes.values()) {
      if (shape.layout.field(name) !== undefined) this.#warnOfShadow(shape, name);
    }
  }

  #warnOfShadow(shape: TableShape, name: string): void {
    if (!this.#functions.has(name)) return;
    this.#logger.warn(`The registered function ${name} hides the field of that name of table ${shape.name} in where()`);
  }

  shape(table: string): TableShape | undefined {
    return this.#shapes.get(table);
  }

  requireShape(table: string): TableShape {
    const shape = this.#shapes.get(table);
    if (shape === undefined) throw new SchemaNotFoundError(table);
    return shape;
  }

  registeredFunction(name: string): RegisteredFunction | undefined {
    return this.#functions.get(name);
  }

  /** A registered table's state in a view. Throws `InvalidSchemaError` where it is stored in another form. */
  stateOf(table: string, view: View): TableState {
    const shape = this.requireShape(table);
    const state = view.table(table);
    if (state === undefined) return view.emptyTable(shape.schema);
    if (state.shape.canonical === shape.canonical) return state;
    if (state.shape.version === shape.version) throw redefined(shape, 'is stored');
    throw new InvalidSchemaError(
      table,
      `Table '${table}' is stored in version ${state.shape.version}, and version ${shape.version} is registered. ` +
        `Register version ${state.shape.version}: this release cannot move data between versions yet.`,
    );
  }
}

function redefined(shape: TableShape, how: string): InvalidSchemaError {
  return new InvalidSchemaError(
    shape.name,
    `Version ${shape.version} of table '${shape.name}' ${how} with another definition. A version never changes: ` +
      'give the new definition a new version.',
  );
}
