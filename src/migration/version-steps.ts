/** The steps of a migration that make no rows: somebody asks for it, and it is cancelled by dropping what it has. */
import type { MergedTable } from '../merge/merge-table.ts';
import type { MigrationTarget, StoredMigration } from '../format/stored-migration.ts';
import type { View } from '../view/view.ts';
import { isSameTree } from '../tree/tree.ts';

/** The next version goes, with everything that was made for it. */
export function cancelled({ table, to }: StoredMigration): MergedTable {
  return { name: table, versions: [], dropped: [to], migration: () => undefined };
}

/** Whether no row has changed since its row of the next version was made. */
export function isInStep(view: View, table: string): boolean {
  return isSameTree(view.table(table)?.tree, view.nextVersion(table)?.base.tree);
}

/** A migration whose old version is to go. */
export function withEndAsked(migration: StoredMigration): StoredMigration {
  return { ...migration, target: { rowsPerSecond: 50_000, ...migration.target, keepOld: true, retire: 'asked' } };
}

/** A migration that somebody asks for: the same trees, in another phase. */
export function askedFor(migration: StoredMigration, target: MigrationTarget): StoredMigration {
  const { phase } = migration;
  return { ...migration, target, problems: [], phase: phase === 'switched' ? 'switched' : 'building' };
}
