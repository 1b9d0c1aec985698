/**
 * A process of a lane: works on the database until it is told to finish, or is killed.
 * `node <this file, bundled> <its task as JSON>`
 */
import { createInterface } from 'node:readline';
import { createDatabase } from '../../../src/api/database.ts';
import { openStore } from '../crash/crash-store.ts';
import { persistently } from '../crash/database-chain.ts';
import type { FiguresLine, LaneTask } from './lane-protocol.ts';
import { LaneWorkers } from './lane-workers.ts';
import { OffsetEnvironment } from './offset-environment.ts';
import { databaseOptions, tables } from './tables.ts';
import { tell, Teller } from './telling.ts';

const task = JSON.parse(process.argv[2] as string) as LaneTask;
const environment = new OffsetEnvironment(task.offsetMs);
const { store, dbPrefix, nodeId, intervalMs } = task;
const driver = openStore(store);
/** Every third process is in no list and takes no turns, as a function or a job. */
const isEphemeral = task.life % 3 === 0;
const { polling: _, mergePolicy: __, ...others } = databaseOptions;
const common = { dbPrefix, driver, writeForwardInterval: intervalMs };
const options = isEphemeral
  ? ({ ...others, ...common, role: 'ephemeral' } as const)
  : { ...databaseOptions, ...common, nodeId };
const db = createDatabase(options, environment);
for (const table of tables) db.registerSchema(table);
const teller = new Teller(task);
const workers = new LaneWorkers(db, task, teller);

/** Those of instances that were stopped; merges are counted from each start. */
let [merges, lostMerges] = [0, 0];

function figures(): FiguresLine {
  const stats = db.stats();
  const { requests: r } = stats;
  return {
    tells: 'figures',
    merges: merges + (stats.merges?.merges ?? 0),
    lostMerges: lostMerges + (stats.merges?.lostMerges ?? 0),
    requests: r.get + r.getUnchanged + r.getMissing + r.put + r.putLost + r.delete + r.list + r.errors,
  };
}

const ignore = (): void => undefined;

/** The last restart: one is done after the other, and the end of the process comes after all of them. */
let restarted: Promise<unknown> = Promise.resolve();
let isFinishing = false;

async function restart(): Promise<undefined> {
  ({ merges, lostMerges } = figures());
  // How it was stopped is no matter; that it can be started again is.
  await db.stop().catch(ignore);
  await persistently(() => db.start(), ignore);
  return undefined;
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const [command, offset] = line.split(' ');
  if (command === 'finish') {
    isFinishing = true;
    workers.finish();
  }
  if (command === 'clock') environment.offsetMs = Number(offset);
  if (command === 'restart' && !isFinishing)
    restarted = restarted.then(() => teller.perform(teller.nextId(), { kind: 'restart' }, restart));
});

await persistently(() => db.start(), ignore);
tell({ tells: 'ready' });
const telling = setInterval(() => tell(figures()), 500);
await workers.run();
await restarted;
clearInterval(telling);
tell(figures());
await db.stop();
process.stdin.destroy();
