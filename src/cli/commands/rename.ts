import { ContentionError } from '../../base/errors.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { refuseNodes } from '../database/database-removal.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { countObjects, totalOf } from '../database/object-counts.ts';
import { describePlace, newPlaceOf, readBlock0, targetOf } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';
import { dropAt } from './drop.ts';

/** Makes the copy. False: somebody wrote meanwhile, and it lacks that. */
async function copy(session: Session, from: Place, to: Place): Promise<boolean> {
  const { terminal, signal } = session;
  await using opened = await session.openAt(from, 'writer');
  await opened.db.refresh({ signal });
  const before = opened.db.position;
  using progress = new Progress(terminal, { what: 'copying', total: 0 });
  await opened.db.clone(targetOf(to, opened.place), {
    signal,
    onProgress: ({ done, total }) => progress.set(done, total),
  });
  await opened.db.refresh({ signal });
  return opened.db.position === before;
}

/** `rename`: a database under another prefix. */
export const rename: Command = command({
  name: 'rename',
  summary: 'Give a database another prefix: copy it there as clone does, and delete it here',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      demandOption: true,
      describe: 'URL of the new place, where nothing is; in the same bucket, the store copies by itself',
    },
  },
  options: {
    force: { type: 'boolean', default: false, describe: 'Also while nodes are registered' },
    ...yesOption,
  },
  examples: [['rename s3://bucket/shop s3://bucket/shop-2026', 'applications then open it with the new dbPrefix']],
  run: async (session, { database, to, force, yes }) => {
    const { terminal, signal } = session;
    const from = await session.place(database);
    const target = newPlaceOf(to);
    try {
      const [old, renamed] = [describePlace(from), describePlace(target)];
      if (from.storeId === target.storeId && from.prefix === target.prefix) {
        throw new UsageError(`${renamed} is the name that it has.`);
      }
      const check = async (): Promise<void> => {
        const block0 = await readBlock0(from, signal);
        if (!force) refuseNodes(from, block0, 'rename');
      };
      await check();
      const question =
        `Copy ${old} to ${renamed}, and delete ${old}? The copy has its rows, blobs and indexes as they are now, ` +
        'and an id of its own: history, snapshots and the positions of changes() end.';
      if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
      // The driver goes with what was opened.
      const isWhole = await copy(session, await session.place(database), target);
      if (!isWhole) {
        throw new ContentionError(
          `Rows were written to ${old} meanwhile, and the copy in ${renamed} lacks them. Nothing was deleted: stop what writes, ` +
            `delete the copy with store-db drop ${renamed}, and rename again.`,
        );
      }
      await check();
      if (!terminal.json) terminal.print(`The database is in ${renamed}.`);
      return await dropAt(session, from, totalOf(await countObjects(from, signal)).objects);
    } finally {
      await from.driver.close?.();
      await target.driver.close?.();
    }
  },
});
