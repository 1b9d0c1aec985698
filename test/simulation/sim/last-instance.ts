/** The instance that is alone with the database at the end of a run: it must bring all work to an end. */
import { sleep } from '../../../src/base/env.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { storageOptions } from './encryption.ts';
import { schemasOf } from './functions.ts';
import { marks } from './tables.ts';
import type { World } from './world.ts';

/** In virtual time; the list of nodes may hold many that died, each of which is counted out by the turns that it misses. */
export const patienceMs = 20 * 60_000;

/** Starts the instance, with the schemas of the run and `more`. */
export async function startLast(
  { root, store, prefix, config }: World,
  random: SeededRandom,
  more: readonly SchemaDefinition[],
  options: Pick<StoreDbOptions, 'retiredVersions'> = {},
): Promise<Database> {
  const environment = root.fork({ seed: random.integer(0, 0xffff_ffff), lookMs: 0 });
  const db = createDatabase(
    {
      ...storageOptions(config.encrypted, new SeededRandom('storage at the end')),
      dbPrefix: prefix,
      nodeId: config.nodeIds[0] as number,
      driver: store,
      blockSizeBytes: config.blockSizeBytes,
      writeForwardInterval: config.intervalMs,
      logLevel: 'silent',
      ...options,
    },
    environment,
  );
  for (const schema of [...schemasOf(config), ...more]) db.registerSchema(schema);
  await db.start();
  return db;
}

/** Lets a while pass in which turns may be taken: they pass unused only where something waits for them. */
export async function passTurns({ root, ledger, config }: World, db: Database, random: SeededRandom): Promise<void> {
  const segment = ledger.segment([]);
  const batch = db.batch();
  await batch.insert(marks, { id: segment.mark });
  await batch.flush();
  await sleep(root, random.between(0.5, 3) * config.intervalMs);
}
