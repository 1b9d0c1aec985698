/** The background work on schemas of a running instance: migrations, added indexes, and indexes on functions. */
import type { View } from '../view/view.ts';
import { FunctionIndexDaemon } from './function-index-daemon.ts';
import { IndexDaemon } from './index-daemon.ts';
import { MigrationDaemon } from './migration-daemon.ts';
import type { MigrationDaemonOptions } from './migration-daemon.ts';
import { Migrations } from './migrations.ts';
import type { MigrationsOptions } from './migrations.ts';

/** Options of the daemons. */
export type DaemonsOptions = MigrationDaemonOptions & Omit<MigrationsOptions, 'daemon'>;

export class Daemons {
  /** The changes of schemas that users ask for. */
  readonly migrations: Migrations;
  readonly #daemon: MigrationDaemon;
  readonly #functionIndexes: FunctionIndexDaemon;
  readonly #indexes: IndexDaemon;

  constructor(options: DaemonsOptions) {
    this.#daemon = new MigrationDaemon(options);
    this.#functionIndexes = new FunctionIndexDaemon(options);
    this.#indexes = new IndexDaemon(options);
    this.migrations = new Migrations({ ...options, daemon: this.#daemon });
  }

  /** Looks for work: the view has moved on. */
  viewChanged(view: View): void {
    this.#daemon.viewChanged(view);
    this.#functionIndexes.viewChanged(view);
    this.#indexes.viewChanged(view);
  }

  /** Looks for indexes to make: a function was registered. */
  functionRegistered(): void {
    this.#functionIndexes.viewChanged();
  }

  /** Looks for indexes to add: a schema was registered, or an index was dropped. */
  schemaRegistered(): void {
    this.#indexes.viewChanged();
  }

  stop(): void {
    this.#daemon.stop();
    this.#functionIndexes.stop();
    this.#indexes.stop();
  }
}
