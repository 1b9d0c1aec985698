/** The command that does once all the maintenance that instances do in the background: merges, migrations, indexes, garbage. */
import { setTimeout as wait } from 'node:timers/promises';
import { comingDefinition } from '../../catalog/registry.ts';
import type { GcReport } from '../../maintenance/gc/collector.ts';
import type { IndexStatus } from '../../migration/index-status.ts';
import type { MigrationStatus } from '../../migration/migration-status.ts';
import { command, confirmed, databasePositional, yesOption } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { doToEvery, everyOptions } from '../database/every-database.ts';
import type { Each } from '../database/every-database.ts';
import { describePlace, readBlock0 } from '../database/open-database.ts';
import type { OpenDatabase, Place } from '../database/open-database.ts';
import { printGarbage } from '../output/reports.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatCount, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';

const [firstPollMs, lastPollMs] = [20, 250];

/** A migration that was requested and is not complete. */
type TendedMigration = Pick<MigrationStatus, 'table' | 'from' | 'to' | 'state' | 'rowsDone' | 'rowsTotal' | 'blockers'>;

/** An index whose entries were not complete. */
interface TendedIndex extends Pick<IndexStatus, 'name' | 'state' | 'rowsDone' | 'rowsTotal' | 'problem'> {
  readonly table: string;
}

interface Tended {
  readonly merged: number;
  readonly migrations: readonly TendedMigration[];
  readonly indexes: readonly TendedIndex[];
  readonly garbage: GcReport;
}

/** One database that is being tended. */
interface Task {
  readonly session: Session;
  readonly opened: OpenDatabase;
  /** With --all, one bar shows the progress of all databases. */
  readonly hidden: boolean;
}

interface Rows {
  readonly rowsDone: number;
  readonly rowsTotal: number;
}

/** Reads the state of some work again and again until it is not under way any more. */
async function untilDone<T extends Rows>(
  { session: { terminal, signal }, hidden }: Task,
  what: string,
  read: () => Promise<T>,
  isUnderWay: (state: T) => boolean,
): Promise<T> {
  using progress = new Progress(terminal, { what, total: 0, hidden });
  for (let pollMs = firstPollMs; ; pollMs = Math.min(2 * pollMs, lastPollMs)) {
    const state = await read();
    if (!isUnderWay(state)) return state;
    progress.set(state.rowsDone, state.rowsTotal);
    await wait(pollMs, undefined, { signal });
  }
}

/** Completes the migration of a table, if somebody has requested one and no function of the application makes its rows. */
async function migrate(task: Task, table: string): Promise<TendedMigration | undefined> {
  const { db, place } = task.opened;
  const { signal } = task.session;
  const read = (): Promise<MigrationStatus> => db.migrationStatus(table, { signal });
  let status = await read();
  const { from, to, state } = status;
  if (from === null || to === null || (state !== 'building' && state !== 'blocked')) return undefined;
  const { tables } = await readBlock0(place, signal);
  const definition = comingDefinition(tables, { table, from, to });
  if (definition !== undefined) {
    db.registerSchema(definition);
    // The target is set already: this only makes this process take part.
    await db.setTargetSchemaVersion(table, to);
    status = await untilDone(task, `migrating ${table}`, read, (present) => present.state === 'building');
  }
  const { rowsDone, rowsTotal, blockers } = status;
  return { table, from, to, state: status.state, rowsDone, rowsTotal, blockers };
}

/** Whether an index on fields is being added. The entries of an index on a function need the function. */
const isBuilding = (index: IndexStatus): boolean => index.function === undefined && index.state === 'building';

/** Makes the missing entries of the indexes of a table. Failed indexes are listed too. */
async function buildIndexes(task: Task, table: string): Promise<TendedIndex[]> {
  const { db } = task.opened;
  const { signal } = task.session;
  const tended: TendedIndex[] = [];
  for (const { name, state, function: on } of await db.indexes(table, { signal })) {
    if (on !== undefined || (state !== 'building' && state !== 'failed')) continue;
    const read = async (): Promise<IndexStatus | undefined> =>
      (await db.indexes(table, { signal })).find((index) => index.name === name);
    const none = { name, state: 'waiting', rowsDone: 0, rowsTotal: 0 } as IndexStatus;
    const done = await untilDone(task, `adding ${name} of ${table}`, async () => (await read()) ?? none, isBuilding);
    const { rowsDone, rowsTotal, problem } = done;
    tended.push({ table, name, state: done.state, rowsDone, rowsTotal, ...(problem !== undefined && { problem }) });
  }
  return tended;
}

/** Merges the pending commits of a database, completes migrations and indexes, and collects garbage. */
async function tendOne(session: Session, place: Place, each?: Each): Promise<Tended> {
  const { terminal, signal } = session;
  let requests = 0;
  let progress: Progress | undefined;
  const onRequest = (): void => progress?.set(++requests);
  await using opened = await session.openAt(place, 'writer', { ...(each && { memory: each.memory }), onRequest });
  const { db, tables } = opened;
  const task: Task = { session, opened, hidden: each !== undefined };
  const counting = async <T>(work: () => Promise<T>): Promise<T> => {
    progress = new Progress(terminal, { what: 'tending', total: undefined, unit: 'requests', hidden: task.hidden });
    try {
      return await work();
    } finally {
      progress[Symbol.dispose]();
    }
  };
  const merged = await counting(async () => {
    await db.refresh({ signal });
    const pending = db.stats().log?.pendingCommits ?? 0;
    await db.checkpoint({ signal });
    return pending;
  });
  const migrations: TendedMigration[] = [];
  const indexes: TendedIndex[] = [];
  for (const { name } of tables) {
    const migration = await migrate(task, name);
    if (migration !== undefined) migrations.push(migration);
    indexes.push(...(await buildIndexes(task, name)));
  }
  return { merged, migrations, indexes, garbage: await counting(() => db.gc({ signal })) };
}

/** Whether some of the work could not be done. */
function isIncomplete({ migrations, indexes, garbage }: Tended): boolean {
  const waits = migrations.some(({ state }) => state === 'building' || state === 'blocked');
  return waits || indexes.some(({ state }) => state === 'failed') || garbage.failed.length > 0;
}

function describeMigration({ table, from, to, state, rowsDone, rowsTotal, blockers }: TendedMigration): string {
  const name = `${table} to version ${to}`;
  if (state === 'none') return `${name}: the migration has ended.`;
  if (state === 'switched')
    return `${name}: all ${plural(rowsTotal, 'row')} migrated. migrate --finish retires version ${from}.`;
  if (state === 'blocked') return `${name}: blocked. ${blockers.join(' ')}`;
  return (
    `${name}: ${formatCount(rowsDone)} of ${plural(rowsTotal, 'row')} migrated. It needs the migrate function of the application: ` +
    `db.setTargetSchemaVersion('${table}', ${to}) there migrates the rest.`
  );
}

function describeIndex({ table, name, state, problem }: TendedIndex): string {
  if (state === 'failed') return `Index ${name} of ${table} cannot be added: ${problem ?? 'unknown'}`;
  return state === 'ready' ? `Index ${name} of ${table} added.` : `Index ${name} of ${table} waits.`;
}

function print({ terminal }: Session, { merged, migrations, indexes, garbage }: Tended): void {
  terminal.print(`${plural(merged, 'commit')} merged.`);
  for (const migration of migrations) terminal.print(describeMigration(migration));
  for (const index of indexes) terminal.print(describeIndex(index));
  printGarbage(terminal, garbage, false);
}

const work = 'complete the migrations and indexes that are under way';

/** Runs `tend` on every database of a store, or of a folder in it. */
function tendAll(session: Session, url: string, concurrency: number, yes: boolean): Promise<ExitCode> {
  return doToEvery(session, url, {
    what: 'tending',
    concurrency,
    question: (databases) => `Merge the logs of ${databases}, ${work}, and delete their garbage?`,
    yes,
    run: async (each) => {
      const result = await tendOne(session, each.place, each);
      return { result, isFailure: isIncomplete(result) };
    },
    print: ({ name }, tended) => {
      session.terminal.print(`${name}:`);
      print(session, tended);
    },
  });
}

/** `tend`: does once the maintenance that open instances do regularly, for databases that no instance has open for long. */
export const tend: Command = command({
  name: 'tend',
  summary:
    'Do one round of maintenance: merge pending commits, complete migrations and indexes that are under way, and delete the objects ' +
    'that nothing needs any more',
  positionals: databasePositional,
  options: {
    ...everyOptions,
    ...yesOption,
  },
  examples: [
    ['tend s3://bucket/tenant-17 --yes', 'once a day by cron, for a database that is rarely open'],
    ['tend s3://bucket/tenants --all --yes', 'every database whose prefix begins with tenants/'],
  ],
  run: async (session, { database, all, concurrency, yes }) => {
    if (all) return tendAll(session, database, concurrency, yes);
    const { terminal } = session;
    const place = await session.place(database);
    const question = `Merge the log of ${describePlace(place)}, ${work}, and delete its garbage?`;
    if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
    const tended = await tendOne(session, place);
    if (terminal.json) terminal.printJson(tended);
    else print(session, tended);
    return isIncomplete(tended) ? ExitCode.found : ExitCode.done;
  },
});
