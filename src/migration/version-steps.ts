/** The steps of a migration that make no rows: somebody asks for it, and it is cancelled by dropping what it has. */
import type { MergedTable } from '../cluster/merge-table.ts';
import type { MigrationTarget, StoredMigration } from '../format/stored-migration.ts';

/** The version beside the truth goes, with everything that was made for it. */
export function cancelled({ table, to }: StoredMigration): MergedTable {
  return { name: table, versions: [], dropped: [to], migration: () => undefined };
}

/** A migration that somebody asks for: the same trees, in another phase. */
export function askedFor(migration: StoredMigration, target: MigrationTarget): StoredMigration {
  const { phase } = migration;
  return { ...migration, target, problems: [], phase: phase === 'switched' ? 'switched' : 'building' };
}
