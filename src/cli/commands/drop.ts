import { messageOf } from '../../base/brands.ts';
import type { Block0 } from '../../format/block0.ts';
import { isSystemTable } from '../../format/stored-schema.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { ownObjects, refuseNodes, removeDatabase } from '../database/database-removal.ts';
import type { Removal } from '../database/database-removal.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, formatTime, plural } from '../terminal/figures.ts';
import { countObjects, totalOf } from '../database/object-counts.ts';
import { describePlace, readBlock0 } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
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
export async function dropAt(session: Session, place: Place, total: number): Promise<ExitCode> {
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
