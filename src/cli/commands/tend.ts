import type { GcReport } from '../../maintenance/gc/collector.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { doToEvery, everyOptions } from '../database/every-database.ts';
import type { Each } from '../database/every-database.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import { printGarbage } from '../output/garbage.ts';
import { describePlace } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';

interface Tended {
  readonly merged: number;
  readonly garbage: GcReport;
}

/** Merges and collects. */
async function tendOne(session: Session, place: Place, each?: Each): Promise<Tended> {
  const { terminal, signal } = session;
  let requests = 0;
  // Of many there is a bar for all.
  const hidden = each !== undefined;
  using progress = new Progress(terminal, { what: 'tending', total: undefined, unit: 'requests', hidden });
  const onRequest = (): void => progress.set(++requests);
  await using opened = await session.openAt(place, 'writer', { ...(each && { memory: each.memory }), onRequest });
  const { db } = opened;
  await db.refresh({ signal });
  const merged = db.stats().log?.pendingCommits ?? 0;
  await db.checkpoint({ signal });
  return { merged, garbage: await db.gc({ signal }) };
}

function print({ terminal }: Session, { merged, garbage }: Tended): void {
  terminal.print(`${plural(merged, 'commit')} merged.`);
  printGarbage(terminal, garbage, false);
}

/** Tends every database of a store, or of a folder in it. */
function tendAll(session: Session, url: string, concurrency: number, yes: boolean): Promise<ExitCode> {
  return doToEvery(session, url, {
    what: 'tending',
    concurrency,
    question: (databases) => `Merge the logs of ${databases}, and delete their garbage?`,
    yes,
    run: async (each) => {
      const result = await tendOne(session, each.place, each);
      return { result, isFailure: result.garbage.failed.length > 0 };
    },
    print: ({ name }, tended) => {
      session.terminal.print(`${name}:`);
      print(session, tended);
    },
  });
}

/** `tend`: what open instances do by and by, once: for databases that nobody has open. */
export const tend: Command = command({
  name: 'tend',
  summary: 'Do a round of upkeep: merge what waits in the log, and delete what nothing needs any more',
  positionals: databasePositional,
  options: {
    ...everyOptions,
    ...yesOption,
  },
  examples: [
    ['tend s3://bucket/tenant-17 --yes', 'once a day by cron, for a database that is seldom open'],
    ['tend s3://bucket/tenants --all --yes', 'every database whose prefix begins with tenants/'],
  ],
  run: async (session, { database, all, concurrency, yes }) => {
    if (all) return tendAll(session, database, concurrency, yes);
    const { terminal } = session;
    const place = await session.place(database);
    const question = `Merge the log of ${describePlace(place)}, and delete its garbage?`;
    if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
    const tended = await tendOne(session, place);
    if (terminal.json) terminal.printJson(tended);
    else print(session, tended);
    return tended.garbage.failed.length > 0 ? ExitCode.found : ExitCode.done;
  },
});
