import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../base/brands.ts';
import { messageLines } from '../../base/messages.ts';
import { defined } from '../../base/options.ts';
import { comingDefinition } from '../../catalog/registry.ts';
import type { Block0 } from '../../format/block0.ts';
import { fieldChanges } from '../../migration/field-changes.ts';
import { describeUsers } from '../../migration/migration-status.ts';
import type { MigrationStatus } from '../../migration/migration-status.ts';
import { toStoredSchema } from '../../schema/schema.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { command, databasePositional, tablePositional, confirmed, yesOption } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { doToEvery, everyOptions } from '../database/every-database.ts';
import type { Each } from '../database/every-database.ts';
import { readBlock0, describePlace } from '../database/open-database.ts';
import type { OpenDatabase, Place } from '../database/open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatCount, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printFacts } from '../terminal/text-table.ts';
import { readSchemaFile } from '../values/schema-file.ts';

const [firstPollMs, lastPollMs] = [20, 250];
/** If other instances must do the work, and it does not progress for this long, no instance is doing it. */
const idleMs = 15_000;

const wayBack = 'It can be cancelled until --finish retires the old version.';

/** The options of one `migrate` command. */
interface Asked {
  readonly table: string;
  readonly schema: SchemaDefinition | undefined;
  readonly cancel: boolean;
  readonly finishes: boolean;
  readonly force: boolean;
  readonly yes: boolean;
}

interface Migrated {
  readonly status: MigrationStatus;
  readonly exitCode: ExitCode;
}

/** One database, and the options of the command. */
interface Task {
  readonly session: Session;
  readonly opened: OpenDatabase;
  readonly asked: Asked;
  /** Its entry, with `--all`. */
  readonly each: Each | undefined;
}

const versionsOf = ({ from, to }: MigrationStatus): string => {
  return to === null ? String(from ?? 'none') : `${from ?? 'none'} to ${to}`;
};

const rowsOf = ({ to, rowsDone, rowsTotal }: MigrationStatus): string => {
  return to === null ? formatCount(rowsTotal) : `${formatCount(rowsDone)} of ${formatCount(rowsTotal)}`;
};

function print(terminal: Terminal, status: MigrationStatus): void {
  if (terminal.json) {
    terminal.printJson(status);
    return;
  }
  printFacts(terminal, [
    ['state', status.state],
    ['version', versionsOf(status)],
    ['rows', rowsOf(status)],
    ...status.blockers.map((blocker) => ['in the way', blocker] as const),
  ]);
}

/** Describes the status in one line. */
function lineOf(status: MigrationStatus): string {
  const { state, blockers } = status;
  const first = state === 'blocked' && blockers[0] !== undefined ? `: ${blockers[0]}` : '';
  const rest = first !== '' && blockers.length > 1 ? ` (and ${formatCount(blockers.length - 1)} more)` : '';
  const parts = [...(state === 'none' ? [] : [state]), `version ${versionsOf(status)}`, `rows ${rowsOf(status)}`];
  return `${parts.join(', ')}${first}${rest}`;
}

const isUnderWay = ({ state }: MigrationStatus): boolean => state === 'building' || state === 'dual-write';

/** Waits until the migration is done or blocked, or until it makes no progress for `patienceMs`. */
async function untilDone(
  { session: { terminal, signal }, opened: { db }, asked: { table }, each }: Task,
  patienceMs = Number.POSITIVE_INFINITY,
): Promise<MigrationStatus> {
  using progress = new Progress(terminal, { what: `migrating ${table}`, total: 0, hidden: each !== undefined });
  let last = -1;
  let stillMs = 0;
  for (let pollMs = firstPollMs; ; pollMs = Math.min(2 * pollMs, lastPollMs)) {
    const status = await db.migrationStatus(table, { signal });
    if (status.rowsDone !== last) stillMs = 0;
    if (!isUnderWay(status) || stillMs >= patienceMs) return status;
    last = status.rowsDone;
    progress.set(status.rowsDone, status.rowsTotal);
    await wait(pollMs, undefined, { signal });
    stillMs += pollMs;
  }
}

/** Prints a message, with the name of the database if there are many. */
function tell({ session, each }: Task, line: string): void {
  session.terminal.tell(each === undefined ? line : `${each.name}: ${line}`);
}

/** Completes a migration under way, so that the old version can be retired. Undefined: the user declined. Throws `UsageError`. */
async function carryOn(task: Task, status: MigrationStatus): Promise<MigrationStatus | undefined> {
  const { session, opened, asked } = task;
  const { db, place } = opened;
  const { table, state, rowsDone, rowsTotal } = status;
  const [from, to] = [status.from as number, status.to as number];
  const { tables } = await readBlock0(place, session.signal);
  const definition = comingDefinition(tables, { table, from, to });
  if (definition === undefined && state === 'dual-write') {
    throw new UsageError(
      `Version ${to} of ${table} needs the migrate function of the application, which has not started the migration: ` +
        `call db.setTargetSchemaVersion('${table}', ${to}) there.`,
    );
  }
  const question =
    `Migrate the rest of ${table} to version ${to}, which has ${formatCount(rowsDone)} of ${formatCount(rowsTotal)} rows? ` +
    `Then version ${from} can be retired.`;
  if (!(await confirmed(session, question, asked.yes))) return undefined;
  if (definition === undefined) {
    tell(task, `Waiting for instances of the application: version ${to} of ${table} needs its migrate function.`);
    return untilDone(task, idleMs);
  }
  db.registerSchema(definition);
  // If the target is set already, this only makes this process take part.
  await db.setTargetSchemaVersion(table, to);
  return untilDone(task);
}

/** Retires the old version, once all rows are migrated and the instances that may use it were shown. */
async function finish(task: Task): Promise<ExitCode> {
  const { session, opened, asked } = task;
  const { db } = opened;
  const { table, yes, force } = asked;
  const { signal } = session;
  let status: MigrationStatus | undefined = await db.migrationStatus(table, { signal });
  if (isUnderWay(status)) status = await carryOn(task, status);
  if (status === undefined) return ExitCode.interrupted;
  const { state, from, users } = status;
  if (state === 'none') return ExitCode.done;
  // The printed status names the rows that block it.
  if (state !== 'switched') return ExitCode.found;
  for (const line of describeUsers(users)) tell(task, line);
  const who = users.length === 0 ? 'No instance is known to use it' : `${formatCount(users.length)} may still use it`;
  const question =
    `Retire version ${from} of ${table}? ${who}; replicas, and instances that have not looked at the store since the ` +
    'migration began, are not known. Instances that use it are refused from then on, and this cannot be undone.';
  if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
  // The user has seen the instances and agreed.
  await db.finishMigration(table, { signal, force: force || !yes });
  return ExitCode.done;
}

/** Migrates the table to the version of a schema. Undefined: the user declined. */
async function bring(task: Task, schema: SchemaDefinition): Promise<MigrationStatus | undefined> {
  const { session, opened, asked } = task;
  const { table, yes } = asked;
  const stored = opened.table(table);
  // Throws for a schema that does not fit the stored version.
  opened.db.registerSchema(schema);
  const { lines, loses } = fieldChanges(toStoredSchema(stored), toStoredSchema(schema));
  // With --yes, the log names the fields that are lost.
  if (!yes) for (const line of lines) session.terminal.tell(line);
  const how = loses ? ' as shown above, without a migrate function' : '';
  const question = `Bring ${table} to version ${schema.version}${how}? ${wayBack}`;
  if (!(await confirmed(session, question, yes))) return undefined;
  await opened.db.setTargetSchemaVersion(table, schema.version);
  return untilDone(task);
}

/** Runs the command in one database. Undefined: the user declined. */
async function migrateOne(session: Session, place: Place, asked: Asked, each?: Each): Promise<Migrated | undefined> {
  const { table, schema, cancel, finishes, yes } = asked;
  const { signal } = session;
  const role = schema === undefined && !cancel && !finishes ? 'replica' : 'writer';
  await using opened = await session.openAt(
    place,
    role,
    defined({ finishing: finishes ? table : undefined, memory: each?.memory }),
  );
  const task: Task = { session, opened, asked, each };
  const { db } = opened;
  // Throws if there is no such table.
  opened.table(table);
  if (schema !== undefined) {
    const status = await bring(task, schema);
    return status && { status, exitCode: status.state === 'blocked' ? ExitCode.found : ExitCode.done };
  }
  if (cancel) {
    if (!(await confirmed(session, `Go back to the old version of ${table}?`, yes))) return undefined;
    await db.cancelMigration(table, { signal });
  }
  const exitCode = finishes ? await finish(task) : ExitCode.done;
  if (exitCode === ExitCode.interrupted) return undefined;
  return { status: await db.migrationStatus(table, { signal }), exitCode };
}

/** Returns the question to ask with `--all`; undefined if nothing will change. */
function questionOf({ table, schema, cancel, finishes, force }: Asked): ((databases: string) => string) | undefined {
  if (schema !== undefined) {
    const what = `Bring ${table} to version ${schema.version}, without a migrate function, in`;
    return (databases) => `${what} ${databases}? ${wayBack}`;
  }
  if (cancel) return (databases) => `Go back to the old version of ${table} in ${databases}?`;
  if (!finishes) return undefined;
  const stays = force ? '' : 'It stays where an instance is known to use it. ';
  return (databases) =>
    `Complete the new version of ${table} in ${databases}, and retire the old one? ${stays}Instances that use a retired version are ` +
    'refused from then on, and this cannot be undone.';
}

/** Runs the command in every database of a store, or of a folder in it. */
function migrateAll(session: Session, url: string, asked: Asked, concurrency: number): Promise<ExitCode> {
  const { schema, yes } = asked;
  const question = questionOf(asked);
  return doToEvery(session, url, {
    what: `migrating ${asked.table}`,
    concurrency,
    yes,
    ...defined({
      question,
      prepare: schema && ((places: readonly Place[]) => tellChanges(session, places, schema)),
    }),
    run: async (each) => {
      // The user has agreed for all databases.
      const { status, exitCode } = (await migrateOne(session, each.place, { ...asked, yes: true }, each)) as Migrated;
      return { result: status, isFailure: exitCode !== ExitCode.done };
    },
    print: ({ name }, status) => session.terminal.print(`${name}: ${lineOf(status)}`),
  });
}

/** `migrate`: brings a table to another version of its schema. */
export const migrate: Command = command({
  name: 'migrate',
  summary: 'Bring a table to a new version of its schema, cancel that, or show its progress',
  positionals: { ...databasePositional, ...tablePositional },
  options: {
    to: {
      type: 'string',
      describe: 'File with the schema of the new version as JSON; without it, the status is shown',
    },
    cancel: { type: 'boolean', default: false, describe: 'Go back to the old version' },
    finish: {
      type: 'boolean',
      default: false,
      describe: 'Complete the new version, and retire the old one after showing which instances may still use it',
    },
    force: {
      type: 'boolean',
      default: false,
      describe: 'With --finish and --yes: retire it even if instances may use it',
    },
    ...everyOptions,
    ...yesOption,
  },
  examples: [
    ['migrate file:./data cities --to cities-v2.json', 'converts rows as registerSchema() without migrate does'],
    [
      'migrate file:./data cities --finish',
      'completes a migration under way and retires the old version; instances that still use it are refused',
    ],
    ['migrate s3://bucket/tenants notes --to notes-v2.json --all --yes', 'the table notes of all tenants'],
  ],
  run: async (session, { database, table, to, cancel, finish: finishes, all, concurrency, force, yes }) => {
    const wanted = Object.entries({ to: to !== undefined, cancel, finish: finishes }).filter(([, is]) => is);
    if (wanted.length > 1) {
      throw new UsageError(
        `${wanted.map(([name]) => `--${name}`).join(' and ')} exclude each other: pass one of them.`,
      );
    }
    const schema = to === undefined ? undefined : await readSchemaFile(to);
    if (schema !== undefined && schema.name !== table) {
      throw new UsageError(`The schema in ${to as string} is of table ${schema.name}, not of ${table}.`);
    }
    const asked: Asked = { table, schema, cancel, finishes, force, yes };
    if (all) return migrateAll(session, database, asked, concurrency);
    const migrated = await migrateOne(session, await session.place(database), asked);
    if (migrated === undefined) return ExitCode.interrupted;
    print(session.terminal, migrated.status);
    return migrated.exitCode;
  },
});

/** Describes the changes of a new version to the fields of one database's table, by its Block 0. Rejects if the signal is aborted. */
async function changesIn(place: Place, schema: SchemaDefinition, signal: AbortSignal): Promise<string> {
  let block0: Block0;
  try {
    block0 = await readBlock0(place, signal);
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
  const versions = block0.tables.find(({ name }) => name === schema.name)?.versions ?? [];
  const migration = block0.migrations.find(({ table }) => table === schema.name);
  const stored = versions.find((version) => migration === undefined || version.schema.version === migration.from);
  if (stored === undefined) return `there is no table ${schema.name}, or its first rows are still in the log.`;
  const { version } = stored.schema;
  if (version === schema.version) return `version ${version} is there already.`;
  const { lines } = fieldChanges(stored.schema, toStoredSchema(schema));
  return [`version ${version} goes to version ${schema.version}.`, ...lines].join('\n  ');
}

async function changesByText(
  { terminal, signal }: Session,
  places: readonly Place[],
  schema: SchemaDefinition,
): Promise<Map<string, Place[]>> {
  using progress = new Progress(terminal, { what: 'looking at databases', total: places.length });
  const found = new Map<string, Place[]>();
  for (const [i, place] of places.entries()) {
    const changes = await changesIn(place, schema, signal);
    found.set(changes, [...(found.get(changes) ?? []), place]);
    progress.set(i + 1);
  }
  return found;
}

/**
 * Prints, before the question of `--all`, the changes of the new version to the fields of each database. Databases with the same changes
 * share one message with their number.
 */
async function tellChanges(session: Session, places: readonly Place[], schema: SchemaDefinition): Promise<void> {
  for (const [changes, [first, ...others]] of await changesByText(session, places, schema)) {
    const more = others.length === 0 ? '' : ` and ${plural(others.length, 'other')}`;
    session.terminal.tellLines(messageLines(`In ${describePlace(first as Place)}${more}: ${changes}`));
  }
}
