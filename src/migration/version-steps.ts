/** The steps of a migration that make no rows: it begins with an empty tree, and it is cancelled by dropping what it has. */
import { growingRows, mergeVersion } from '../cluster/merge-table.ts';
import type { MergedTable, TableMergeContext } from '../cluster/merge-table.ts';
import type { MigrationTarget, StoredMigration } from '../format/stored-migration.ts';
import type { TableShape } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import type { View } from '../table/view.ts';

/** A version comes up beside the truth, with no rows. */
export async function begun(
  view: View,
  truth: TableState,
  to: TableShape,
  target: MigrationTarget,
  context: TableMergeContext,
): Promise<MergedTable> {
  const { name } = to;
  const migration: StoredMigration = {
    table: name,
    from: truth.shape.version,
    to: to.version,
    phase: 'building',
    base: null,
    built: '',
    users: [],
    problems: [],
    birth: context.birth,
    target,
  };
  return {
    name,
    versions: [await mergeVersion(view.emptyTable(to.schema), context)],
    base: growingRows(truth, context),
    migration: () => migration,
  };
}

/** The version beside the truth goes, with everything that was made for it. */
export function cancelled({ table, to }: StoredMigration): MergedTable {
  return { name: table, versions: [], dropped: [to], migration: () => undefined };
}

/** A migration that somebody asks for: the same trees, in another phase. */
export function askedFor(migration: StoredMigration, target: MigrationTarget): StoredMigration {
  const { phase } = migration;
  return { ...migration, target, problems: [], phase: phase === 'switched' ? 'switched' : 'building' };
}
