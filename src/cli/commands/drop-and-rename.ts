import { messageOf } from '../../base/brands.ts';
import { ContentionError } from '../../base/errors.ts';
import { oneOrList } from '../../base/one-or-list.ts';
import type { Block0 } from '../../format/block0.ts';
import { isSystemTable } from '../../format/stored-schema.ts';
import { Types } from '../../format/types.ts';
import { keyNamesOf } from '../../schema/schema.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { command, databasePositional, confirmed, yesOption, tablePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { ownObjects, refuseNodes, removeDatabase, countObjects, totalOf } from '../database/database-removal.ts';
import type { Removal } from '../database/database-removal.ts';
import { describePlace, readBlock0, newPlaceOf, targetOf } from '../database/open-database.ts';
import type { Place, OpenDatabase } from '../database/open-database.ts';
import { queryFrom, queryOptions } from '../language/asked-query.ts';
import type { AskedQuery } from '../language/asked-query.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, formatTime, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import { printable } from '../terminal/text-table.ts';

/** Reads Block 0. Resolves to `missing` or to the message of an error if that fails. */
async function look(place: Place, signal: AbortSignal): Promise<Block0 | string> {
  try {
    return await readBlock0(place, signal);
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof UsageError ? 'missing' : messageOf(error);
  }
}

/** Throws `UsageError` if the database must not be deleted without `--force`. */
function check(place: Place, found: Block0 | string, force: boolean): void {
  // Without Block 0, these are the remains of an earlier deletion.
  if (force || found === 'missing') return;
  if (typeof found === 'string') {
    throw new UsageError(
      `Block 0 of ${describePlace(place)} cannot be read, so its tables and nodes are not known: ${found} ` +
        'To delete the database anyway, pass --force.',
    );
  }
  refuseNodes(place, found, 'delete');
}

function reportRemoval({ terminal }: Session, place: Place, { deleted, failed, others }: Removal): ExitCode {
  const name = describePlace(place);
  if (terminal.json) terminal.printJson({ database: name, deleted, failed, others });
  else if (failed.length === 0) terminal.print(`${name} is deleted: ${plural(deleted, 'object')}.`);
  for (const { name: object, message } of failed) terminal.tell(`${object} could not be deleted: ${message}`);
  if (failed.length > 0) terminal.tell('The database is not completely deleted. Drop it again to delete the rest.');
  if (others > 0) terminal.tell(`${plural(others, 'object')} under its prefix do not belong to it, and stay.`);
  return failed.length > 0 ? ExitCode.found : ExitCode.done;
}

/** Deletes a database with a progress bar, and prints the result. */
async function dropAt(session: Session, place: Place, total: number): Promise<ExitCode> {
  const { terminal, signal } = session;
  using progress = new Progress(terminal, { what: `deleting ${describePlace(place)}`, total });
  const removal = await removeDatabase(place, signal, (deleted) => progress.set(deleted));
  progress[Symbol.dispose]();
  return reportRemoval(session, place, removal);
}

/** Returns how many blobs rows of a table refer to. */
async function countBlobs(
  { db }: OpenDatabase,
  { name, fields }: SchemaDefinition,
  signal: AbortSignal,
): Promise<number> {
  const hasSome = Object.values(fields).some(({ typeId }) => typeId === Types.blob);
  if (!hasSome) return 0;
  return db.query('_blobs').where('table', '=', name).count({ signal });
}

/** Drops a table after confirmation. */
async function dropOneTable(
  session: Session,
  database: string,
  { table, ifExists, yes }: { readonly table: string; readonly ifExists: boolean; readonly yes: boolean },
): Promise<ExitCode> {
  const { terminal, signal } = session;
  if (table === '') throw new UsageError('The name of the table is empty. Nothing was deleted.');
  await using opened = await session.open(database, 'writer');
  const { db, tables } = opened;
  const isThere = tables.some(({ name }) => name === table);
  if (!isThere && ifExists) {
    if (terminal.json) terminal.printJson({ table, dropped: false, rows: 0, blobs: 0 });
    else terminal.print(`There is no table ${table}.`);
    return ExitCode.done;
  }
  const schema = opened.table(table);
  const rows = await db.query(table).count({ signal });
  const blobs = await countBlobs(opened, schema, signal);
  const what = `${plural(rows, 'row')} and ${plural(blobs, 'blob')}`;
  const question =
    `Drop table ${table} with its schema and indexes, ${what}? Processes that write to it are refused from then on. Snapshots, the ` +
    'history and backups still show it.';
  if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
  const dropped = await db.dropTable(table, { ifExists, signal });
  if (terminal.json) terminal.printJson({ table, dropped, rows, blobs });
  else terminal.print(`Table ${table} was dropped: ${what}. gc deletes its blocks and blobs.`);
  return ExitCode.done;
}

/** Deletes a whole database after its name was typed. */
async function dropWholeDatabase(
  session: Session,
  database: string,
  { force, yes }: { readonly force: boolean; readonly yes: boolean },
): Promise<ExitCode> {
  const { terminal, signal } = session;
  const place = await session.place(database);
  try {
    const found = await look(place, signal);
    const counts = await countObjects(place, signal);
    const name = describePlace(place);
    if (ownObjects(counts) === 0) throw new UsageError(`There is no database in ${name}.`);
    check(place, found, force);
    const own = counts.filter(({ kind }) => kind !== 'other');
    const { objects, bytes } = totalOf(own);
    if (typeof found === 'string') terminal.tell(`${name}: the remains of a database.`);
    else tellTables(session, name, found);
    const question = `Delete ${name}, ${plural(objects, 'object')} of ${formatBytes(bytes)}? Only a backup can bring it back.`;
    if (!(await confirmed(session, question, yes, place.prefix))) return ExitCode.interrupted;
    // An instance may have opened the database while the question was open.
    check(place, await look(place, signal), force);
    return await dropAt(session, place, objects);
  } finally {
    await place.driver.close?.();
  }
}

function tellTables({ terminal }: Session, name: string, { tables, writer }: Block0): void {
  // System tables are not shown.
  const names = tables.filter(({ name: one }) => !isSystemTable(one)).map(({ name: one }) => printable(one));
  const told = names.length === 0 ? 'no tables' : `the ${names.length === 1 ? 'table' : 'tables'} ${names.join(', ')}`;
  terminal.tell(`${name}: ${told}.`);
  terminal.tell(`Its Block 0 was last written at ${formatTime(writer.atMs)}, by node ${writer.nodeId}.`);
}

/** `drop`: deletes a table, or a whole database. */
export const drop: Command = command({
  name: 'drop',
  summary: 'Delete a table, or with --whole-database a database, after showing what is in it; backups elsewhere stay',
  positionals: {
    ...databasePositional,
    table: {
      type: 'string',
      describe: 'Name of a table: drops only this table, with its schema, rows, indexes and blobs',
    },
  },
  options: {
    'if-exists': { type: 'boolean', default: false, describe: 'With a table: that there is none is no error' },
    'whole-database': {
      type: 'boolean',
      default: false,
      describe: 'Delete all tables and all other objects of the database; it asks for the name of the database',
    },
    force: {
      type: 'boolean',
      default: false,
      describe:
        'With --whole-database: even if nodes are registered, or if Block 0 is damaged and their number is not known',
    },
    ...yesOption,
  },
  examples: [
    ['drop file:./data sessions', 'one table; the others stay'],
    [
      'drop s3://bucket/tenant-17 --whole-database',
      'all objects of the database, and no other objects under the prefix',
    ],
  ],
  run: async (session, { database, table, 'if-exists': ifExists, 'whole-database': whole, force, yes }) => {
    if (table === undefined) {
      if (ifExists) throw new UsageError('--if-exists needs the name of a table. Nothing was deleted.');
      // A variable of a script that is not set must not turn a table into all of them.
      if (!whole) {
        throw new UsageError(
          'drop needs the name of a table. To delete the whole database, pass --whole-database. Nothing was deleted.',
        );
      }
      return dropWholeDatabase(session, database, { force, yes });
    }
    for (const [name, isGiven] of [
      ['--whole-database', whole],
      ['--force', force],
    ] as const) {
      if (isGiven) throw new UsageError(`${name} goes without the name of a table. Nothing was deleted.`);
    }
    return dropOneTable(session, database, { table, ifExists, yes });
  },
});

/** Copies the database. Resolves to false if there were commits meanwhile, which the copy lacks. */
async function copy(session: Session, from: Place, to: Place): Promise<boolean> {
  const { terminal, signal } = session;
  await using opened = await session.openAt(from, 'writer');
  await opened.db.refresh({ signal });
  const before = opened.db.position;
  using progress = new Progress(terminal, { what: 'copying', total: 0 });
  await opened.db.clone(targetOf(to, opened.place), {
    signal,
    onProgress: ({ done, total }) => progress.set(done, total),
  });
  await opened.db.refresh({ signal });
  return opened.db.position === before;
}

/** `rename`: moves a database to another prefix. */
export const rename: Command = command({
  name: 'rename',
  summary: 'Move a database to another prefix: copy it as clone does, and delete the old one',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      isRequired: true,
      describe: 'URL of the new place, which must be empty; within one bucket, the store itself copies the objects',
    },
  },
  options: {
    force: { type: 'boolean', default: false, describe: 'Rename it even if nodes are registered' },
    ...yesOption,
  },
  examples: [['rename s3://bucket/shop s3://bucket/shop-2026', 'applications then open it with the new dbPrefix']],
  run: async (session, { database, to, force, yes }) => {
    const { terminal, signal } = session;
    const from = await session.place(database);
    const target = newPlaceOf(to);
    try {
      const [old, renamed] = [describePlace(from), describePlace(target)];
      if (from.storeId === target.storeId && from.prefix === target.prefix) {
        throw new UsageError(`${renamed} is its present name.`);
      }
      const checkNodes = async (): Promise<void> => {
        const block0 = await readBlock0(from, signal);
        if (!force) refuseNodes(from, block0, 'rename');
      };
      await checkNodes();
      const question =
        `Copy ${old} to ${renamed}, and delete ${old}? The copy has its rows, blobs and indexes as they are now, ` +
        'and an id of its own: history, snapshots and the positions of changes() end.';
      if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
      // A place of its own: the copy closes its driver.
      const isWhole = await copy(session, await session.place(database), target);
      if (!isWhole) {
        throw new ContentionError(
          `Rows were written to ${old} meanwhile, and the copy in ${renamed} lacks them. Nothing was deleted: stop the processes that ` +
            `write, delete the copy with store-db drop ${renamed} --whole-database, and rename again.`,
        );
      }
      await checkNodes();
      if (!terminal.json) terminal.print(`The database is in ${renamed}.`);
      return await dropAt(session, from, totalOf(await countObjects(from, signal)).objects);
    } finally {
      await from.driver.close?.();
      await target.driver.close?.();
    }
  },
});

/** Rows that are deleted in one commit. */
const rowsPerFlush = 10_000;

/** Deletes the rows that a query finds, and resolves to their number. */
async function deleteRows(
  { signal }: Session,
  { db }: OpenDatabase,
  asked: AskedQuery,
  progress: Progress,
): Promise<number> {
  const { name } = asked.schema;
  const keyNames = keyNamesOf(asked.schema);
  let deleted = 0;
  let waiting = db.batch();
  let count = 0;
  const flush = async (): Promise<void> => {
    if (count === 0) return;
    // Stops only between flushes, so that finished flushes stay.
    signal.throwIfAborted();
    await waiting.flush();
    deleted += count;
    progress.set(deleted);
    waiting = db.batch();
    count = 0;
  };
  for await (const row of asked.answers(signal)) {
    await waiting.delete(name, oneOrList(keyNames.map((each) => row[each])));
    if (++count >= rowsPerFlush) await flush();
  }
  await flush();
  return deleted;
}

/** `clear`: deletes rows of a table. */
export const clear: Command = command({
  name: 'clear',
  summary: 'Delete all rows of a table, or the rows that match a condition; the table stays',
  positionals: { ...databasePositional, ...tablePositional },
  options: { where: queryOptions.where, ...yesOption },
  examples: [[`clear file:./data sessions --where "expires < 2026-01-01"`, 'sessions that have expired']],
  run: async (session, { database, table, where, yes }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'writer');
    const schema = opened.table(table);
    const { name } = schema;
    await using snapshot = await opened.db.snapshot({ signal });
    const fields = keyNamesOf(schema)
      .map((field) => `"${field.replaceAll('"', '""')}"`)
      .join(',');
    const asked = queryFrom(opened, name, { where, fields }, (of) => snapshot.query(of));
    const total = await asked.query.count({ signal });
    const which = where === undefined ? 'all rows' : 'the matching rows';
    const question = `Delete ${which} of ${name}, ${plural(total, 'row')}, with their blobs?`;
    if (total > 0 && !(await confirmed(session, question, yes))) return ExitCode.interrupted;
    using progress = new Progress(terminal, { what: `clearing ${name}`, total });
    const deleted = await deleteRows(session, opened, asked, progress);
    progress[Symbol.dispose]();
    if (terminal.json) terminal.printJson({ table: name, deleted });
    else terminal.print(`${plural(deleted, 'row')} of ${name} deleted.`);
    return ExitCode.done;
  },
});
