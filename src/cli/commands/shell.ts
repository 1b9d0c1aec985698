import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { historyFile, ShellHistory } from '../shell/history.ts';
import { Shell } from '../shell/shell.ts';

/** `shell`: queries and commands on one database. `others`: the commands that it can run. */
export function shellOf(others: readonly Command[]): Command {
  return command({
    name: 'shell',
    summary: 'Ask for rows, and run commands, on one database: one line after the other',
    positionals: databasePositional,
    options: {},
    examples: [
      ['shell file:./data', 'at a prompt'],
      ['shell s3://bucket/shop < report.txt', 'what a file holds, up to the first statement that fails'],
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
