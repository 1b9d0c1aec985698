/**
 * A process of a lane, with one version of the application: writes and reads until it is told to finish, or is killed.
 * `node <this file, bundled> <its task as JSON>`
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreDb } from '../../../src/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { allowedErrors } from '../chaos/allowed-errors.ts';
import { flushOnce } from '../chaos/flush.ts';
import { openStore } from '../crash/crash-store.ts';
import { persistently } from '../crash/database-chain.ts';
import { databaseOptions, groups, ownField, schemaOf, seededRows, sumRows } from './versions.ts';
import type { Asked, Line, RolloutTask } from './versions.ts';

const task = JSON.parse(process.argv[2] as string) as RolloutTask;
const { lane, life, version, pauseMs } = task;
const random = new SeededRandom(`${lane} ${life}`);
const db = StoreDb({
  ...databaseOptions,
  dbPrefix: task.dbPrefix,
  nodeId: lane + 1,
  driver: openStore(task.store),
  writeForwardInterval: task.intervalMs,
});
db.registerSchema(schemaOf(version));
const [shared, own] = [`shared${lane}`, `${ownField(version)}${lane}`];
const patience = { ms: 10_000, settles: true };

/** What the parent has ordered. */
const orders = { isFinishing: false, isHeld: false };
let [running, ids] = [0, 0];
/** Rows of this lane's own that were acknowledged. */
const inserted: number[] = [];
/** What this process wrote last, by row. */
const written = new Map<number, number>();

/** At once: what was written when the process is killed has been told. */
function tell(line: Line): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

function reportRead(message: string): void {
  tell({ tells: 'anomaly', message: `Process ${lane}.${life} of version ${version}: ${message}` });
}

async function perform(asked: Asked, call: () => Promise<void>): Promise<boolean> {
  const id = ++ids;
  tell({ tells: 'begin', id, ...asked });
  try {
    await call();
    tell({ tells: 'end', id, outcome: 'ok' });
    return true;
  } catch (error) {
    const { code = '', stack } = error as { code?: string; stack?: string };
    const outcome = code === 'COMMIT_OUTCOME_UNKNOWN' ? 'unknown' : 'failed';
    tell({ tells: 'end', id, outcome, error: code });
    if (!allowedErrors.has(code)) reportRead(`${asked.kind} of row ${asked.row} failed: ${stack ?? String(error)}`);
    return false;
  }
}

let values = 0;

/** Higher than any before it in this lane. */
function nextValue(): number {
  return life * 100_000 + ++values;
}

async function change(): Promise<void> {
  const batch = db.batch();
  const value = nextValue();
  const dice = random.next();
  if (dice < 0.15) {
    const row = 1000 + lane * 100_000_000 + value;
    void batch.insert('items', { id: row, group: groups, [shared]: value, [own]: value });
    if (await perform({ kind: 'insert', row, value }, () => flushOnce(batch, patience))) inserted.push(row);
  } else if (dice < 0.22 && inserted.length > 0) {
    const row = inserted.shift() as number;
    void batch.delete('items', row);
    await perform({ kind: 'delete', row, value }, () => flushOnce(batch, patience));
  } else {
    // Some rows more often than others, by everyone.
    const row = random.chance(0.5) ? random.integer(0, 9) : random.integer(0, seededRows - 1);
    void batch.update('items', { id: row, [shared]: value, [own]: value });
    written.delete(row);
    if (await perform({ kind: 'update', row, value }, () => flushOnce(batch, patience))) written.set(row, value);
  }
}

async function add(): Promise<void> {
  const row = random.pick(sumRows);
  const sum = `${ownField(version)}Sum`;
  await perform({ kind: 'add', row, value: 0 }, async () => {
    await db.transaction(
      async (tx) => {
        const found = await tx.get('items', row);
        if (found === undefined) throw new Error(`row ${row} is gone`);
        await tx.update('items', {
          id: row,
          sharedSum: Number(found['sharedSum'] ?? 0) + 1,
          [sum]: Number(found[sum] ?? 0) + 1,
        });
      },
      { signal: AbortSignal.timeout(10_000) },
    );
  });
}

async function look(): Promise<void> {
  if (random.chance(0.3)) {
    const { state, rowsDone } = await db.migrationStatus('items');
    tell({ tells: 'state', state, rowsDone });
    return;
  }
  if (random.chance(0.5)) {
    const group = random.integer(0, groups - 1);
    const rows = await db.query('items').where('group', '=', group).orderBy('id', 'asc').execute();
    const expected = Array.from({ length: seededRows / groups }, (_, i) => group + i * groups);
    const got = rows.map(({ id }) => id as number).filter((id) => id >= 0);
    if (JSON.stringify(got) !== JSON.stringify(expected)) reportRead(`group ${group} has the rows ${got.join(', ')}`);
    return;
  }
  const [row, value] = random.pick([...written, [0, 0] as const]);
  const found = await db.get('items', row);
  if (found === undefined) reportRead(`row ${row} is gone`);
  // What it had written when it began to read may be written over by now, with a higher one.
  else if (Number(found[shared] ?? 0) < value) reportRead(`row ${row} has ${String(found[shared])}, not ${value}`);
}

async function repeat(step: () => Promise<void>): Promise<void> {
  while (!orders.isFinishing) {
    if (!orders.isHeld) {
      running++;
      try {
        await step();
      } catch (error) {
        const { code = '', stack } = error as { code?: string; stack?: string };
        if (!allowedErrors.has(code)) reportRead(stack ?? String(error));
      }
      running--;
    }
    if (orders.isHeld && running === 0) tell({ tells: 'held' });
    await sleep(random.between(0, pauseMs));
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'finish') orders.isFinishing = true;
  orders.isHeld = line === 'hold';
});

await persistently(
  () => db.start(),
  () => undefined,
);
tell({ tells: 'ready' });
await Promise.all([repeat(change), repeat(add), repeat(look)]);
await db.stop();
process.stdin.destroy();
