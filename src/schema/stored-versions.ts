/** Which of a table's stored versions is active. Decided here and nowhere else. */
import { invariant } from '../base/invariant.ts';
import type { Block0 } from '../format/block0.ts';
import type { StoredTable, StoredTableVersion } from '../format/stored-table.ts';
import type { StoredMigration } from '../format/stored-migration.ts';

export interface StoredVersions {
  /** Holds all rows, and says which there are. */
  readonly active: StoredTableVersion;
  /** Comes up beside it; undefined where no migration of the table is under way, as is `migration`. */
  readonly nextVersion: StoredTableVersion | undefined;
  readonly migration: StoredMigration | undefined;
}

/** While a migration of the table is under way, the version that it comes from is active, until that is retired. */
export function versionsOf(block0: Block0, { name, versions }: StoredTable): StoredVersions {
  const migration = block0.migrations.find(({ table }) => table === name);
  const ofVersion = (version: number): StoredTableVersion | undefined => {
    return versions.find(({ schema }) => schema.version === version);
  };
  const active = migration === undefined ? versions[0] : ofVersion(migration.from);
  invariant(active !== undefined, `Table ${name} is stored in no version that could be active`);
  return { active, nextVersion: migration && ofVersion(migration.to), migration };
}
