import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatBytes, plural } from '../terminal/figures.ts';
import { describePlace, newPlaceOf, targetOf } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';

/** `backup`: copies a database to a place for backups. */
export const backup: Command = command({
  name: 'backup',
  summary: 'Copy the present state to a place for backups: what is not there yet',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      demandOption: true,
      describe: 'URL of the backups: file:./backups#shop or s3://bucket/backups/shop',
    },
  },
  options: {},
  examples: [
    [
      'backup s3://bucket/shop file:./backups#shop',
      'every night, for instance: each is a full one, and copies what is new',
    ],
  ],
  run: async (session, { database, to }) => {
    const { terminal, signal } = session;
    const target = newPlaceOf(to);
    try {
      await using opened = await session.open(database, 'writer');
      using progress = new Progress(terminal, { what: 'backing up', total: 0 });
      const report = await opened.db.backup(targetOf(target, opened.place), {
        signal,
        onProgress: ({ done, total }) => progress.set(done, total),
      });
      progress[Symbol.dispose]();
      if (terminal.json) terminal.printJson(report);
      else {
        const { id, objects, copiedObjects, copiedBytes } = report;
        const how = copiedBytes === 0 && copiedObjects > 0 ? 'by the store itself' : formatBytes(copiedBytes);
        const copied = `${plural(copiedObjects, 'object')} of ${objects} copied, ${how}`;
        terminal.print(`Backup ${id} is in ${describePlace(target)}: ${copied}.`);
        if (report.hasOutdated) {
          terminal.tell(
            'Older backups there need another key, or are not encrypted: `store-db backups --keys` shows them, and ' +
              '`store-db rewrite-backups` encrypts them with the current key.',
          );
        }
      }
      return ExitCode.done;
    } finally {
      await target.driver.close?.();
    }
  },
});
