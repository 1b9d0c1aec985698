import { listBackups } from '../../care/backup.ts';
import { command } from '../command.ts';
import type { Command } from '../command.ts';
import { ExitCode } from '../exit-code.ts';
import { formatTime } from '../figures.ts';
import { newPlaceOf } from '../open-database.ts';
import { printTable } from '../text-table.ts';

export const backupsPositional = {
  backups: { type: 'string', demandOption: true, describe: 'URL of the backups, as `backup` was given it' },
} as const;

/** `backups`: what can be restored. */
export const backups: Command = command({
  name: 'backups',
  summary: 'List the backups of a place, the oldest first',
  positionals: backupsPositional,
  options: {},
  run: async ({ terminal, signal }, args) => {
    const place = newPlaceOf(args.backups);
    try {
      const found = await listBackups(place, signal);
      if (terminal.json) for (const each of found) terminal.printJson(each);
      else if (found.length === 0) terminal.tell('There are no backups.');
      else {
        printTable(
          terminal,
          [{ name: 'backup' }, { name: 'made' }, { name: 'generation', align: 'right' }],
          found.map(({ id, createdAt, generation }) => [id, formatTime(createdAt.getTime()), String(generation)]),
        );
      }
      return ExitCode.done;
    } finally {
      await place.driver.close?.();
    }
  },
});
