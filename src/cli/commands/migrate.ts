import { setTimeout as wait } from 'node:timers/promises';
import { fieldChanges } from '../../migration/field-changes.ts';
import { describeUsers } from '../../migration/migration-status.ts';
import type { MigrationStatus } from '../../migration/migration-status.ts';
import { readSchema } from '../../schema/schema.ts';
import { comingDefinition } from '../../catalog/stored-definition.ts';
import { command, databasePositional, tablePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatCount } from '../terminal/figures.ts';
import { readBlock0 } from '../database/open-database.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';
import { readSchemaFile } from '../values/schema-text.ts';
import { printFacts } from '../terminal/text-table.ts';
import type { Terminal } from '../terminal/terminal.ts';

const pollMs = 250;
/** Where others do the work, and none of them is seen to do it for so long, nobody does. */
const idlePolls = 60;

interface FinishFlags {
  readonly yes: boolean;
  readonly force: boolean;
}

function print(terminal: Terminal, status: MigrationStatus): void {
  if (terminal.json) {
    terminal.printJson(status);
    return;
  }
  const { state, from, to, rowsDone, rowsTotal, blockers } = status;
  printFacts(terminal, [
    ['state', state],
    ['version', to === null ? String(from ?? 'none') : `${from ?? 'none'} to ${to}`],
    ['rows', to === null ? formatCount(rowsTotal) : `${formatCount(rowsDone)} of ${formatCount(rowsTotal)}`],
    ...blockers.map((blocker) => ['in the way', blocker] as const),
  ]);
}

const isUnderWay = ({ state }: MigrationStatus): boolean => state === 'building' || state === 'beside';

/** Waits until the work is done, or cannot be. `patience`: how often it may stand still. */
async function untilDone(
  { terminal, signal }: Session,
  { db }: OpenDatabase,
  table: string,
  patience = Number.POSITIVE_INFINITY,
): Promise<MigrationStatus> {
  using progress = new Progress(terminal, { what: `migrating ${table}`, total: 0 });
  let last = -1;
  for (let still = 0; ; still++) {
    const status = await db.migrationStatus(table, { signal });
    if (status.rowsDone !== last) still = 0;
    if (!isUnderWay(status) || still >= patience) return status;
    last = status.rowsDone;
    progress.set(status.rowsDone, status.rowsTotal);
    await wait(pollMs, undefined, { signal });
  }
}

/** Brings a migration under way to where the old version can go. Undefined: it is not to. Throws `UsageError`. */
async function carryOn(
  session: Session,
  opened: OpenDatabase,
  status: MigrationStatus,
  yes: boolean,
): Promise<MigrationStatus | undefined> {
  const { terminal, signal } = session;
  const { db, place } = opened;
  const { table, state, rowsDone, rowsTotal } = status;
  const [from, to] = [status.from as number, status.to as number];
  const { tables } = await readBlock0(place, signal);
  const definition = comingDefinition(tables, { table, from, to });
  if (definition === undefined && state === 'beside') {
    throw new UsageError(
      `Version ${to} of ${table} is made by the migrate function of the application, and nobody has asked for it: ` +
        `call db.setTargetSchemaVersion('${table}', ${to}) there.`,
    );
  }
  const question =
    `Make the rest of version ${to} of ${table}, of which ${formatCount(rowsDone)} of ${formatCount(rowsTotal)} rows are there? ` +
    `Then version ${from} can be retired.`;
  if (!(await confirmed(session, question, yes))) return undefined;
  if (definition === undefined) {
    terminal.tell(
      `Waiting for instances of the application: version ${to} of ${table} is made by its migrate function.`,
    );
    return untilDone(session, opened, table, idlePolls);
  }
  db.registerSchema(definition);
  // Where somebody has asked for it already, this only sets this process to work.
  await db.setTargetSchemaVersion(table, to);
  return untilDone(session, opened, table);
}

/** Has the old version go, once all rows are there and everybody who may use it was shown. */
async function finish(session: Session, opened: OpenDatabase, table: string, options: FinishFlags): Promise<ExitCode> {
  const { terminal, signal } = session;
  const { db } = opened;
  let status: MigrationStatus | undefined = await db.migrationStatus(table, { signal });
  if (isUnderWay(status)) status = await carryOn(session, opened, status, options.yes);
  if (status === undefined) return ExitCode.interrupted;
  const { state, from, users } = status;
  if (state === 'none') return ExitCode.done;
  // What stands in the way is in the status, which is printed.
  if (state !== 'switched') return ExitCode.found;
  for (const line of describeUsers(users)) terminal.tell(line);
  const who = users.length === 0 ? 'No instance is known to use it' : `${formatCount(users.length)} may still use it`;
  const question =
    `Retire version ${from} of ${table}? ${who}; replicas, and instances that have not looked at the store since the ` +
    'migration began, are not known. Whatever uses it is refused from then on, and there is no way back.';
  if (!(await confirmed(session, question, options.yes))) return ExitCode.interrupted;
  // Who was asked has seen them.
  await db.finishMigration(table, { signal, force: options.force || !options.yes });
  return ExitCode.done;
}

/** `migrate`: brings a table to another version of its schema. */
export const migrate: Command = command({
  name: 'migrate',
  summary: 'Bring a table to a new version of its schema, cancel that, or tell how far it is',
  positionals: { ...databasePositional, ...tablePositional },
  options: {
    to: { type: 'string', describe: 'File with the schema of the new version as JSON; without it, the status is told' },
    cancel: { type: 'boolean', default: false, describe: 'Go back to the old version' },
    finish: {
      type: 'boolean',
      default: false,
      describe: 'Make what is left of the new version, and retire the old one, after showing who may still use it',
    },
    force: { type: 'boolean', default: false, describe: 'With --finish and --yes: also while instances may use it' },
    ...yesOption,
  },
  examples: [
    ['migrate file:./data cities --to cities-v2.json', 'rows are made as registerSchema() without migrate does'],
    [
      'migrate file:./data cities --finish',
      'a migration under way ends, the old version goes, and what still uses it is refused',
    ],
  ],
  run: async (session, { database, table, to, cancel, finish: finishes, force, yes }) => {
    const { terminal, signal } = session;
    const asked = Object.entries({ to: to !== undefined, cancel, finish: finishes }).filter(([, is]) => is);
    if (asked.length > 1) {
      throw new UsageError(`${asked.map(([name]) => `--${name}`).join(' and ')} ask for different things: say one.`);
    }
    const schema = to === undefined ? undefined : await readSchemaFile(to);
    if (schema !== undefined && schema.name !== table) {
      throw new UsageError(`The schema in ${to as string} is of table ${schema.name}, not of ${table}.`);
    }
    await using opened = await session.open(
      database,
      schema === undefined && !cancel && !finishes ? 'replica' : 'writer',
      finishes ? { finishing: table } : {},
    );
    const stored = opened.table(table);
    if (cancel) {
      if (!(await confirmed(session, `Go back to the old version of ${table}?`, yes))) return ExitCode.interrupted;
      await opened.db.cancelMigration(table, { signal });
    }
    const finished = finishes ? await finish(session, opened, table, { yes, force }) : ExitCode.done;
    if (finished === ExitCode.interrupted) return finished;
    if (schema === undefined) {
      print(terminal, await opened.db.migrationStatus(table, { signal }));
      return finished;
    }
    // Refuses what does not go with the stored version.
    opened.db.registerSchema(schema);
    const { lines, loses } = fieldChanges(readSchema(stored), readSchema(schema));
    // With --yes, the log names what is lost.
    if (!yes) for (const line of lines) terminal.tell(line);
    const how = loses ? ' as said above, with no migrate function' : '';
    const question = `Bring ${table} to version ${schema.version}${how}? It can be cancelled until --finish retires the old version.`;
    if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
    await opened.db.setTargetSchemaVersion(table, schema.version);
    const status = await untilDone(session, opened, table);
    print(terminal, status);
    return status.state === 'blocked' ? ExitCode.found : ExitCode.done;
  },
});
