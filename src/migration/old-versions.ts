/** What an instance tells the others about itself before it is started: nobody is to retire a version that it uses. */
import { isOld } from '../coordination/version-users.ts';
import type { Engine } from '../engine/engine.ts';
import type { Registry } from '../catalog/registry.ts';

/** Says in Block 0 that this instance uses old versions, if it does: one write of it, and only while tables are migrated. */
export async function sayOldVersions(engine: Engine, registry: Registry): Promise<void> {
  const versionOf = (table: string): number | null => registry.shape(table)?.version ?? null;
  const usesOld = engine.view.block0.migrations.some((migration) => isOld(migration, versionOf(migration.table)));
  if (!usesOld || !engine.mustSayVersions(versionOf)) return;
  await engine.withDeadline('db.start()', undefined, ({ signal }) => engine.sayVersions(versionOf, signal));
}
