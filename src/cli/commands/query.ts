import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { queryFrom, queryOptions, queryPositional } from '../language/asked-query.ts';
import { searchOptions } from '../language/search-arguments.ts';
import { printAnswers, printExplanation } from '../output/reports.ts';
import { historyFile, ShellHistory } from '../shell/history.ts';
import { Shell } from '../shell/shell.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';

/** `query`: prints rows of a table, or groups of them. */
export const query: Command = command({
  name: 'query',
  summary: 'Print rows of a table, or groups of them',
  positionals: { ...databasePositional, ...queryPositional },
  options: {
    ...queryOptions,
    ...searchOptions,
    fields: { type: 'string', describe: 'Fields to print, separated by commas; default: all' },
    count: { type: 'boolean', default: false, describe: 'Print only how many rows there are' },
    pager: {
      type: 'boolean',
      default: true,
      describe: 'Show the rows in a pager if the output is a terminal: STOREDB_PAGER, PAGER or less',
    },
    'max-requests': { type: 'number', describe: 'Fail instead of making more requests than this' },
  },
  examples: [
    [`query file:./data "cities where country = 'FR' order by people desc limit 10"`, 'the largest ones'],
    [
      `query file:./data "select country, sum(people) as all from cities group by country order by all desc"`,
      'by country',
    ],
    ['query s3://bucket/shop orders --where "total >= 100" --count', 'how many there are'],
    [`query file:./data articles --search "red wine" --limit 10`, 'the best rows with these words'],
    [`query file:./data articles --search wine --in title`, 'only in their titles'],
  ],
  run: async (session, { database, query: text, count, pager, 'max-requests': requests, ...written }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica');
    const asked = queryFrom(opened, text, written, (table) => {
      const all = opened.db.query(table);
      return requests === undefined ? all : all.budget({ requests });
    });
    if (count) {
      if (asked.isGrouped)
        throw new UsageError('--count counts rows: leave out group by, or write select count() from.');
      const found = await asked.query.count({ signal });
      if (terminal.json) terminal.printJson({ count: found });
      else terminal.print(String(found));
      return ExitCode.done;
    }
    await printAnswers(session, asked, { pager, isLimited: asked.isLimited });
    return ExitCode.done;
  },
});

/** `explain`: prints the plan of a query and its cost. */
export const explain: Command = command({
  name: 'explain',
  summary: 'Show the plan of a query and its estimated cost',
  positionals: { ...databasePositional, ...queryPositional },
  options: {
    ...queryOptions,
    ...searchOptions,
    run: { type: 'boolean', default: false, describe: 'Also run the query, and show its actual cost' },
  },
  examples: [[`explain file:./data cities --where "country = 'FR'" --run`, 'estimates and measured values']],
  run: async (session, { database, query: text, run, ...written }) => {
    await using opened = await session.open(database, 'replica');
    await printExplanation(session, queryFrom(opened, text, written), run);
    return ExitCode.done;
  },
});

/** Returns the command `shell`: queries and commands on one database. `others`: the commands that it can run. */
export function shellOf(others: readonly Command[]): Command {
  return command({
    name: 'shell',
    summary: 'Run queries and commands on one database, line by line',
    positionals: databasePositional,
    options: {},
    examples: [
      ['shell file:./data', 'at a prompt'],
      ['shell s3://bucket/shop < report.txt', 'the statements of a file, up to the first that fails'],
    ],
    run: async (session, { database }) => {
      const { terminal } = session;
      const isTyped = terminal.isInteractive && terminal.output.isTTY === true && !terminal.json;
      const history = await ShellHistory.read(isTyped ? historyFile() : undefined);
      await using shell = new Shell({ session, database, commands: others, history });
      return isTyped ? await shell.runPrompt() : await shell.runInput();
    },
  });
}
