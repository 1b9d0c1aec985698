/**
 * The end of a run with several versions: once only the newest application is left and everything works, the migration to it
 * comes to its end, whatever happened before (liveness).
 */
import { StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { passTurns, patienceMs, startLast } from './last-instance.ts';
import { marks } from './tables.ts';
import { rowsOf } from './model.ts';
import { lastVersion, makingOf, people, peopleIn, schemaOf, versionNumbers } from './versions.ts';
import type { World } from './world.ts';

/** Puts right what cannot be migrated, as a person would. */
async function deleteBroken({ ledger }: World, db: Database, version: number): Promise<void> {
  const broken = [...rowsOf(ledger.state, peopleIn(version))].filter(([, row]) => 'broken' in row);
  if (broken.length === 0) return;
  const ops = broken.map(([key]) => ({ kind: 'delete', table: peopleIn(version), key }) as const);
  const segment = ledger.segment(ops);
  const batch = db.batch();
  await batch.insert(marks, { id: segment.mark });
  for (const { key } of ops) await batch.delete(people, key);
  await batch.flush();
}

/** Whether the table has come to a version, and to no other. */
async function isAt(db: Database, version: number): Promise<boolean> {
  const { state, from } = await db.migrationStatus(people);
  return state === 'none' && from === version;
}

/** Whatever died without a word is gone. What cannot be migrated is seen in the status. */
async function finish({ ledger }: World, db: Database, version: number): Promise<void> {
  ledger.versions?.tellToRetire(version, true);
  try {
    await db.finishMigration(people, { force: true });
  } catch (error) {
    if (!(error instanceof StoreDbError) || error.code !== 'MIGRATION_ACTIVE') throw error;
  }
}

/** Has the table go to a version by an instance that is alone with it. */
async function migrateTo(world: World, db: Database, version: number, random: SeededRandom): Promise<void> {
  const { root, judge } = world;
  const untilMs = root.timeline.nowMs + patienceMs;
  await db.setTargetSchemaVersion(people, version);
  for (let isBlocked = false; !(await isAt(db, version)); ) {
    if (root.timeline.nowMs > untilMs) {
      const status = JSON.stringify(await db.migrationStatus(people));
      return judge.fail('liveness', `With only version ${version} left the migration does not end: ${status}`);
    }
    if ((await db.migrationStatus(people)).state === 'switched') await finish(world, db, version);
    isBlocked = (await db.migrationStatus(people)).blockers.some((blocker) => blocker.startsWith('Row '));
    if (isBlocked) {
      await deleteBroken(world, db, version);
      await db.setTargetSchemaVersion(people, version);
    }
    await passTurns(world, db, random);
  }
}

/** Has the table go to the next version, after everybody else has left; or leaves it as it is. */
export async function endMigrations(world: World, random: SeededRandom): Promise<void> {
  const { ledger, config, judge, trace } = world;
  const active = ledger.versions?.active(ledger.state);
  if (active === undefined || random.chance(0.2)) return;
  const version = ledger.versions?.nextVersion(ledger.state, ledger.block0) ?? Math.min(lastVersion, active + 1);
  const known = versionNumbers.filter((other) => other <= version);
  const db = await startLast(
    world,
    random,
    known.map((other) => schemaOf(other, makingOf(config))),
  );
  try {
    await migrateTo(world, db, version, random);
  } catch (error) {
    const code = error instanceof StoreDbError ? error.code : '';
    judge.fail('liveness', `The migration to version ${version} fails at the end: ${code} ${String(error)}`);
  }
  await db.stop();
  trace.add('simulation', `is at version ${version}`);
}
