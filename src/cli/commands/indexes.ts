import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatCount } from '../terminal/figures.ts';
import type { IndexStatus } from '../../migration/index-status.ts';
import { describeConditions } from '../../schema/index-condition.ts';
import { printTable } from '../terminal/text-table.ts';

/** What is registered here is what is stored: all of them are declared. */
function withoutDeclared(status: IndexStatus): Omit<IndexStatus, 'declared'> {
  const { declared: _, ...index } = status;
  return index;
}

/** `indexes`: which indexes a table has, and how far those are that are being added. */
export const indexes: Command = command({
  name: 'indexes',
  summary: 'List the indexes of a table, and how far those are that are being added',
  positionals: {
    ...databasePositional,
    table: { type: 'string', demandOption: true, describe: 'Name of the table' },
  },
  options: {},
  run: async (session, { database, table }) => {
    await using opened = await session.open(database, 'replica');
    const { terminal, signal } = session;
    const { name } = opened.table(table);
    const found = (await opened.db.indexes(name, { signal })).map(withoutDeclared);
    if (terminal.json) terminal.printJson(found);
    else if (found.length === 0) terminal.tell(`Table ${name} has no indexes.`);
    else {
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
    return ExitCode.done;
  },
});
