import { keyNamesOf } from '../../schema/schema.ts';
import { command, databasePositional, tablePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import type { AskedQuery } from '../language/asked-query.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';
import { queryFrom, queryOptions } from '../language/written-query.ts';

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
