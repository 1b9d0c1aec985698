/** Which of a table's stored versions is the truth. Decided here and nowhere else. */
import { invariant } from '../base/invariant.ts';
import type { Block0 } from '../format/block0.ts';
import type { StoredTable, StoredTableVersion } from '../format/stored-table.ts';
import type { StoredMigration } from '../format/stored-migration.ts';

export interface StoredVersions {
  /** Holds all rows, and says which there are. */
  readonly truth: StoredTableVersion;
  /** Comes up beside it; undefined where no migration of the table is under way, as is `migration`. */
  readonly beside: StoredTableVersion | undefined;
  readonly migration: StoredMigration | undefined;
}

/** While a migration of the table is under way, the version that it comes from is the truth, until that is retired. */
export function versionsOf(block0: Block0, { name, versions }: StoredTable): StoredVersions {
  const migration = block0.migrations.find(({ table }) => table === name);
  const ofVersion = (version: number): StoredTableVersion | undefined => {
    return versions.find(({ schema }) => schema.version === version);
  };
  const truth = migration === undefined ? versions[0] : ofVersion(migration.from);
  invariant(truth !== undefined, `Table ${name} is stored in no version that could be the truth`);
  return { truth, beside: migration && ofVersion(migration.to), migration };
}
