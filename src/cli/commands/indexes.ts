import type { IndexStatus } from '../../migration/index-status.ts';
import { didYouMean } from '../../base/known-names.ts';
import { describeConditions } from '../../schema/index-condition.ts';
import { command, databasePositional, tablePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatCount, plural } from '../terminal/figures.ts';
import { printTable } from '../terminal/text-table.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** What is registered here is what is stored: all of them are declared. */
function withoutDeclared(status: IndexStatus): Omit<IndexStatus, 'declared'> {
  const { declared: _, ...index } = status;
  return index;
}

function print(terminal: Terminal, found: readonly IndexStatus[]): void {
  printTable(
    terminal,
    [
      { name: 'index' },
      { name: 'on' },
      { name: 'unique' },
      { name: 'where' },
      { name: 'state' },
      { name: 'rows done', align: 'right' },
      { name: 'entries', align: 'right' },
      { name: 'problem' },
    ],
    found.map((index) => [
      index.name,
      index.function === undefined ? index.fields.join(', ') : `function ${index.function}`,
      index.unique ? 'unique' : '',
      index.where === undefined ? '' : describeConditions(index.where),
      index.state,
      `${formatCount(index.rowsDone)} of ${formatCount(index.rowsTotal)}`,
      formatCount(index.entries),
      index.problem ?? '',
    ]),
  );
}

/** Drops an index, once somebody has said yes. Throws `UsageError` where there is none of the name. */
async function drop(
  session: Session,
  { db }: OpenDatabase,
  { table, index, yes }: { readonly table: string; readonly index: string; readonly yes: boolean },
): Promise<ExitCode> {
  const { terminal, signal } = session;
  const found = await db.indexes(table, { signal });
  const status = found.find(({ name }) => name === index);
  if (status === undefined) {
    const names = found.map(({ name }) => name);
    const others = names.length === 0 ? 'It has none.' : `They are ${names.join('; ')}.`;
    throw new UsageError(`Table ${table} has no index ${index}${didYouMean(index, names) || '.'} ${others}`);
  }
  const { entries, unique } = status;
  const until = unique ? ' What it kept unique is checked no more.' : '';
  const question =
    `Drop index ${index} of ${table}, which has ${plural(entries, 'entry', 'entries')}?${until} ` +
    'Processes whose definition of the table has the index add it again: deploy one without it first.';
  if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
  await db.dropIndex(table, index, { signal });
  if (terminal.json) terminal.printJson({ table, dropped: index, entries });
  else terminal.print(`Index ${index} of ${table} was dropped. gc deletes its blocks.`);
  return ExitCode.done;
}

/** `indexes`: which indexes a table has, and how far those are that are being added. */
export const indexes: Command = command({
  name: 'indexes',
  summary: 'List the indexes of a table, and how far those are that are being added, or drop one',
  positionals: { ...databasePositional, ...tablePositional },
  options: {
    drop: { type: 'string', describe: 'Name of an index that is to go, without a new version of the table' },
    ...yesOption,
  },
  examples: [['indexes file:./data cities --drop country', 'for all processes; rows stay']],
  run: async (session, { database, table, drop: index, yes }) => {
    const isDropped = index !== undefined;
    const more = isDropped ? { unregistered: table } : {};
    await using opened = await session.open(database, isDropped ? 'writer' : 'replica', more);
    const { terminal, signal } = session;
    const { name } = opened.table(table);
    // Open until it is done.
    if (isDropped) return await drop(session, opened, { table: name, index, yes });
    const found = await opened.db.indexes(name, { signal });
    if (terminal.json) terminal.printJson(found.map(withoutDeclared));
    else if (found.length === 0) terminal.tell(`Table ${name} has no indexes.`);
    else print(terminal, found);
    return ExitCode.done;
  },
});
