/** The end of a run with rows that expire: the instance that is left deletes them all, and its changes say why (liveness). */
import { sleep } from '../../../src/base/env.ts';
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { sessions } from './expiry-ledger.ts';
import { registerSessions } from './expiry-user.ts';
import { passTurns, startLast } from './last-instance.ts';
import type { World } from './world.ts';

const minuteMs = 60_000;
/** The last row expires in ten minutes, and stays for five; then the list of nodes may hold many that died. */
const patienceMs = 60 * minuteMs;

/** The changes after a position say of each row that is deleted that it had expired. */
async function checkChanges({ ledger }: World, db: Database, after: number): Promise<void> {
  if (db.position <= after) return;
  for await (const commit of db.changes({ after })) {
    for (const change of await commit.toArray()) {
      if (change.table !== sessions.name || change.operation !== 'delete') continue;
      if (change.expired !== true) ledger.expiry.fail(`The change of session ${String(change.key)} is no expiry`);
    }
    if (commit.position >= db.position) return;
  }
}

export async function endExpiry(world: World, random: SeededRandom): Promise<void> {
  const { ledger, root, trace } = world;
  const left = (): string[] => {
    const rows = [...ledger.expiry.after(ledger.tail)];
    return rows.filter(([, { endMs }]) => Number.isFinite(endMs)).map(([id]) => `${id}`);
  };
  const db = await startLast(world, random, []);
  registerSessions(world, db);
  const { position } = db;
  const untilMs = root.timeline.nowMs + patienceMs;
  while (left().length > 0 && root.timeline.nowMs < untilMs) {
    await passTurns(world, db, random);
    await sleep(root, minuteMs);
  }
  if (left().length > 0) ledger.expiry.fail(`Sessions ${left().join()} are there an hour after the end`);
  await checkChanges(world, db, position);
  await db.stop();
  trace.add('simulation', `has deleted ${ledger.expiry.deleted} sessions`);
}
