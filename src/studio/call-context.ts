/** The database and the states that every call works with. */
import type { Environment } from '../base/env.ts';
import { ReadOnlyError, StoreDbError } from '../index.ts';
import type { Database } from '../index.ts';
import { KeptStates } from './kept-states.ts';
import { KnownTables } from './known-tables.ts';
import type { CheckedStudioOptions } from './studio-options.ts';

export class CallContext {
  readonly db: Database;
  readonly environment: Environment;
  readonly options: CheckedStudioOptions;
  readonly tables: KnownTables;
  readonly states: KeptStates;

  constructor(db: Database, environment: Environment, options: CheckedStudioOptions) {
    this.db = db;
    this.environment = environment;
    this.options = options;
    this.tables = new KnownTables(db);
    this.states = new KeptStates(db, environment);
  }

  /** Whether calls may write. */
  get isWritable(): boolean {
    return this.options.write && this.db.stats().role !== 'replica';
  }

  /** Throws an error with the code `READ_ONLY` unless calls may write. */
  requireWrite(call: string): void {
    if (this.db.stats().role === 'replica') throw new ReadOnlyError(`Call ${call}`);
    if (this.options.write) return;
    throw new StoreDbError(
      'READ_ONLY',
      `Call ${call} has to write, and Studio was opened to read only. Nothing was written: pass write: true to studio(), or --write to ` +
        'the command.',
    );
  }
}
