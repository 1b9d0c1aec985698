import { defined } from '../../base/defined.ts';
import { realEnvironment } from '../../base/env.ts';
import { restoreFrom } from '../../maintenance/backup/restore.ts';
import type { CopyProgress } from '../../maintenance/backup/state-copy.ts';
import { command } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import { describePlace, newPlaceOf, targetOf } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';
import { backupsPositional } from './backups.ts';

/** `restore`: makes a database of a backup. */
export const restore: Command = command({
  name: 'restore',
  summary: 'Make a database of a backup, with a new id, where nothing is',
  positionals: {
    ...backupsPositional,
    to: { type: 'string', demandOption: true, describe: 'URL of the new database' },
  },
  options: { backup: { type: 'string', describe: 'Id of the backup; default: the newest' } },
  run: async ({ terminal, signal, storage }, args) => {
    const from = newPlaceOf(args.backups);
    const to = newPlaceOf(args.to);
    try {
      using progress = new Progress(terminal, { what: 'restoring', total: 0 });
      const options = {
        ...storage,
        from,
        to: targetOf(to, from),
        signal,
        onProgress: ({ done, total }: CopyProgress) => progress.set(done, total),
        ...defined({ backup: args.backup }),
      };
      const report = await restoreFrom(realEnvironment, options);
      progress[Symbol.dispose]();
      if (terminal.json) terminal.printJson(report);
      else
        terminal.print(
          `The database is in ${describePlace(to)}, with id ${report.databaseId}: ${plural(report.objects, 'object')}.`,
        );
      return ExitCode.done;
    } finally {
      await from.driver.close?.();
      await to.driver.close?.();
    }
  },
});
