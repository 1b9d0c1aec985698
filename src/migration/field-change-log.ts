/** Tells the log what a new version does to fields where this instance has no function that makes its rows: before it makes any. */
import type { Logger } from '../base/logger.ts';
import type { Role } from '../coordination/role.ts';
import type { Registry } from '../catalog/registry.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';
import { fieldChanges } from './field-changes.ts';

export class FieldChangeLog {
  readonly #logger: Logger;
  readonly #registry: Registry;
  readonly #isReplica: boolean;
  /** Versions that were told of. */
  readonly #told = new Set<string>();

  /** A replica makes no rows that last, and has nothing to tell. */
  constructor(registry: Registry, logger: Logger, role: Role) {
    this.#registry = registry;
    this.#logger = logger;
    this.#isReplica = role === 'replica';
  }

  /** Names each field that is dropped, or of a type that may not hold every value: once for two versions of a table. */
  tell(from: TableShape, to: TableShape): void {
    const { name: table } = to;
    const key = `${from.version} ${to.version} ${table}`;
    if (this.#isReplica || from.version >= to.version || this.#told.has(key)) return;
    this.#told.add(key);
    if (this.#registry.migrateFunction(table, to.version) !== undefined) return;
    const { lines, loses } = fieldChanges(from.schema, to.schema);
    if (!loses) return;
    const versions = `version ${from.version} to version ${to.version}`;
    this.#logger.warn(`Table ${table} goes from ${versions} without a migrate function. ${lines.join(' ')}`, {
      table,
      from: from.version,
      to: to.version,
    });
  }

  /** The same for all tables of a view that are stored in an older version than the newest that is registered here. */
  tellAll(view: View): void {
    for (const shape of this.#registry.newest) {
      const active = view.table(shape.name)?.shape;
      if (active !== undefined) this.tell(active, shape);
    }
  }
}
