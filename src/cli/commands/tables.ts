import { keyNamesOf } from '../../schema/schema.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatCount } from '../terminal/figures.ts';
import { describeField, describeIndexes } from '../values/schema-text.ts';
import { printTable } from '../terminal/text-table.ts';

/** `tables`: what is in a database. */
export const tables: Command = command({
  name: 'tables',
  summary: 'List the tables: versions, rows, fields and indexes',
  positionals: databasePositional,
  options: {},
  examples: [['tables file:./data', 'the tables of the only database in a folder']],
  run: async (session, { database }) => {
    await using opened = await session.open(database, 'replica');
    const { terminal, signal } = session;
    const found = await Promise.all(
      opened.tables.map(async (schema) => ({ schema, rows: await opened.db.query(schema.name).count({ signal }) })),
    );
    if (terminal.json) {
      terminal.printJson(found.map(({ schema, rows }) => ({ ...schema, rows })));
      return ExitCode.done;
    }
    if (found.length === 0) terminal.tell('The database has no tables yet.');
    else {
      printTable(
        terminal,
        [
          { name: 'table' },
          { name: 'version', align: 'right' },
          { name: 'rows', align: 'right' },
          { name: 'primary key' },
          { name: 'indexes' },
          { name: 'fields' },
        ],
        found.map(({ schema, rows }) => [
          schema.name,
          String(schema.version),
          formatCount(rows),
          keyNamesOf(schema).join(', '),
          describeIndexes(schema),
          Object.entries(schema.fields)
            .map(([name, field]) => describeField(name, field))
            .join(', '),
        ]),
      );
    }
    return ExitCode.done;
  },
});
