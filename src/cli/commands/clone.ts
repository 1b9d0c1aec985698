import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import { describePlace, newPlaceOf, targetOf } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';

/** `clone`: a copy that lives by itself. */
export const clone: Command = command({
  name: 'clone',
  summary: 'Make a database of its own out of the present state, where nothing is',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      demandOption: true,
      describe: 'URL of the new database; in the same bucket, the store copies by itself',
    },
  },
  options: {},
  run: async (session, { database, to }) => {
    const { terminal, signal } = session;
    const target = newPlaceOf(to);
    await using opened = await session.open(database, 'writer');
    try {
      using progress = new Progress(terminal, { what: 'cloning', total: 0 });
      const report = await opened.db.clone(targetOf(target, opened.place), {
        signal,
        onProgress: ({ done, total }) => progress.set(done, total),
      });
      progress[Symbol.dispose]();
      if (terminal.json) terminal.printJson(report);
      else
        terminal.print(
          `The clone is in ${describePlace(target)}, with id ${report.databaseId}: ${plural(report.objects, 'object')}.`,
        );
      return ExitCode.done;
    } finally {
      await target.driver.close?.();
    }
  },
});
