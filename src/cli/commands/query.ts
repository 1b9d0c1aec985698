import { printAnswers } from '../output/answers.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { queryFrom, queryOptions, queryPositional } from '../language/written-query.ts';

/** `query`: rows of a table, or groups of them. */
export const query: Command = command({
  name: 'query',
  summary: 'Print rows of a table, or groups of them',
  positionals: { ...databasePositional, ...queryPositional },
  options: {
    ...queryOptions,
    fields: { type: 'string', describe: 'Fields to print, separated by commas; default all' },
    count: { type: 'boolean', default: false, describe: 'Print only how many rows there are' },
    pager: {
      type: 'boolean',
      default: true,
      describe: 'Show the rows in a pager, where a terminal shows them: STOREDB_PAGER, PAGER or less',
    },
    'max-requests': { type: 'number', describe: 'Fail rather than make more requests than that' },
  },
  examples: [
    [`query file:./data "cities where country = 'FR' order by people desc limit 10"`, 'the largest ones'],
    [
      `query file:./data "select country, sum(people) as all from cities group by country order by all desc"`,
      'by country',
    ],
    ['query s3://bucket/shop orders --where "total >= 100" --count', 'how many there are'],
  ],
  run: async (session, { database, query: text, count, pager, 'max-requests': requests, ...written }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica');
    const asked = queryFrom(opened, text, written, (table) => {
      const all = opened.db.query(table);
      return requests === undefined ? all : all.budget({ requests });
    });
    if (count) {
      if (asked.isGrouped) throw new UsageError('--count counts rows: leave out group by, or say select count() from.');
      const found = await asked.query.count({ signal });
      if (terminal.json) terminal.printJson({ count: found });
      else terminal.print(String(found));
      return ExitCode.done;
    }
    await printAnswers(session, asked, { pager, isLimited: asked.isLimited });
    return ExitCode.done;
  },
});
