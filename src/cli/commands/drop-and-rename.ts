import { messageOf } from '../../base/brands.ts';
import { ContentionError } from '../../base/errors.ts';
import type { Block0 } from '../../format/block0.ts';
import { isSystemTable } from '../../format/stored-schema.ts';
import { keyNamesOf } from '../../schema/schema.ts';
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

/** Block 0, or what stands in the way of reading it. */
async function look(place: Place, signal: AbortSignal): Promise<Block0 | string> {
  try {
    return await readBlock0(place, signal);
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof UsageError ? 'missing' : messageOf(error);
  }
}

/** Throws `UsageError` where the database is not to be deleted without `--force`. */
function check(place: Place, found: Block0 | string, force: boolean): void {
  // What is left of a database goes: it was to go before.
  if (force || found === 'missing') return;
  if (typeof found === 'string') {
    throw new UsageError(
      `Block 0 of ${describePlace(place)} cannot be read, so nobody knows what is in it and who uses it: ${found} ` +
        'If it is to go all the same, say --force.',
    );
  }
  refuseNodes(place, found, 'delete');
}

function reportRemoval({ terminal }: Session, place: Place, { deleted, failed, others }: Removal): ExitCode {
  const name = describePlace(place);
  if (terminal.json) terminal.printJson({ database: name, deleted, failed, others });
  else if (failed.length === 0) terminal.print(`${name} is deleted: ${plural(deleted, 'object')}.`);
  for (const { name: object, message } of failed) terminal.tell(`${object} could not be deleted: ${message}`);
  if (failed.length > 0) terminal.tell('Not all of the database is gone. Drop it again to delete the rest.');
  if (others > 0) terminal.tell(`${plural(others, 'object')} under its prefix belong to something else, and stay.`);
  return failed.length > 0 ? ExitCode.found : ExitCode.done;
}

/** Deletes a database with progress shown, and tells what became of it. */
async function dropAt(session: Session, place: Place, total: number): Promise<ExitCode> {
  const { terminal, signal } = session;
  using progress = new Progress(terminal, { what: `deleting ${describePlace(place)}`, total });
  const removal = await removeDatabase(place, signal, (deleted) => progress.set(deleted));
  progress[Symbol.dispose]();
  return reportRemoval(session, place, removal);
}

/** `drop`: deletes a database. */
export const drop: Command = command({
  name: 'drop',
  summary: 'Delete a whole database, after showing what goes; backups elsewhere stay',
  positionals: databasePositional,
  options: {
    force: {
      type: 'boolean',
      default: false,
      describe: 'Also while nodes are registered, and where nobody can tell, since Block 0 is damaged',
    },
    ...yesOption,
  },
  examples: [['drop s3://bucket/tenant-17', 'all objects of the database, and nothing else that is under the prefix']],
  run: async (session, { database, force, yes }) => {
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
      if (typeof found === 'string') terminal.tell(`${name}: what is left of a database.`);
      else {
        // Those of the engine go without saying.
        const tables = found.tables.filter((table) => !isSystemTable(table.name)).map((table) => printable(table.name));
        terminal.tell(
          `${name}: ${tables.length === 0 ? 'no tables' : `the ${tables.length === 1 ? 'table' : 'tables'} ${tables.join(', ')}`}.`,
        );
        terminal.tell(
          `Its Block 0 was last written at ${formatTime(found.writer.atMs)}, by node ${found.writer.nodeId}.`,
        );
      }
      const question = `Delete ${name}, ${plural(objects, 'object')} of ${formatBytes(bytes)}? There is no way back but a backup.`;
      if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
      // Somebody may have opened it while the question stood there.
      check(place, await look(place, signal), force);
      return await dropAt(session, place, objects);
    } finally {
      await place.driver.close?.();
    }
  },
});

/** Makes the copy. False: somebody wrote meanwhile, and it lacks that. */
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

/** `rename`: a database under another prefix. */
export const rename: Command = command({
  name: 'rename',
  summary: 'Give a database another prefix: copy it there as clone does, and delete it here',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      demandOption: true,
      describe: 'URL of the new place, where nothing is; in the same bucket, the store copies by itself',
    },
  },
  options: {
    force: { type: 'boolean', default: false, describe: 'Also while nodes are registered' },
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
        throw new UsageError(`${renamed} is the name that it has.`);
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
      // The driver goes with what was opened.
      const isWhole = await copy(session, await session.place(database), target);
      if (!isWhole) {
        throw new ContentionError(
          `Rows were written to ${old} meanwhile, and the copy in ${renamed} lacks them. Nothing was deleted: stop what writes, ` +
            `delete the copy with store-db drop ${renamed}, and rename again.`,
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

/** Deletes the rows that a query finds, and resolves to how many were. */
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
    // Between flushes, so that what is done is done.
    signal.throwIfAborted();
    await waiting.flush();
    deleted += count;
    progress.set(deleted);
    waiting = db.batch();
    count = 0;
  };
  for await (const row of asked.answers(signal)) {
    const key = keyNames.map((each) => row[each]);
    await waiting.delete(name, key.length === 1 ? key[0] : key);
    if (++count >= rowsPerFlush) await flush();
  }
  await flush();
  return deleted;
}

/** `clear`: deletes rows of a table. */
export const clear: Command = command({
  name: 'clear',
  summary: 'Delete the rows of a table, all or those that a condition finds; the table stays',
  positionals: { ...databasePositional, ...tablePositional },
  options: { where: queryOptions.where, ...yesOption },
  examples: [[`clear file:./data sessions --where "expires < 2026-01-01"`, 'rows that nobody needs']],
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
    const which = where === undefined ? 'all rows' : 'the rows that are asked for';
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
