import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { printExplanation } from '../output/explanation.ts';
import { queryFrom, queryOptions, queryPositional } from '../language/written-query.ts';

/** `explain`: how a query would be run, and what that takes. */
export const explain: Command = command({
  name: 'explain',
  summary: 'Tell how a query would be run, and what it would take',
  positionals: { ...databasePositional, ...queryPositional },
  options: {
    ...queryOptions,
    run: { type: 'boolean', default: false, describe: 'Run it, and tell what it did take as well' },
  },
  examples: [[`explain file:./data cities --where "country = 'FR'" --run`, 'estimates and what was measured']],
  run: async (session, { database, query: text, run, ...written }) => {
    await using opened = await session.open(database, 'replica');
    await printExplanation(session, queryFrom(opened, text, written), run);
    return ExitCode.done;
  },
});
