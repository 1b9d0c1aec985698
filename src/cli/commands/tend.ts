import { command, databasePositional } from '../command.ts';
import type { Command } from '../command.ts';
import { confirmed, yesOption } from '../confirmation.ts';
import { ExitCode } from '../exit-code.ts';
import { plural } from '../figures.ts';
import { printGarbage } from '../garbage.ts';
import { describePlace } from '../open-database.ts';
import { Progress } from '../progress.ts';

/** `tend`: what open instances do by and by, once: for databases that nobody has open. */
export const tend: Command = command({
  name: 'tend',
  summary: 'Do a round of upkeep: merge what waits in the log, and delete what nothing needs any more',
  positionals: databasePositional,
  options: yesOption,
  examples: [['tend s3://bucket/tenant-17 --yes', 'once a day by cron, for a database that is seldom open']],
  run: async (session, { database, yes }) => {
    const { terminal, signal } = session;
    const place = await session.place(database);
    const question = `Merge the log of ${describePlace(place)}, and delete its garbage?`;
    if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
    let requests = 0;
    using progress = new Progress(terminal, { what: 'tending', total: undefined, unit: 'requests' });
    await using opened = await session.openAt(place, 'writer', { onRequest: () => progress.set(++requests) });
    const { db } = opened;
    await db.refresh({ signal });
    const merged = db.stats().log?.pendingCommits ?? 0;
    await db.checkpoint({ signal });
    const garbage = await db.gc({ signal });
    progress[Symbol.dispose]();
    if (terminal.json) terminal.printJson({ merged, garbage });
    else {
      terminal.print(`${plural(merged, 'commit')} merged.`);
      printGarbage(terminal, garbage, false);
    }
    return garbage.failed.length > 0 ? ExitCode.found : ExitCode.done;
  },
});
