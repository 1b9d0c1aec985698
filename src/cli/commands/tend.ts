import { messageOf } from '../../base/brands.ts';
import { messageText } from '../../base/message-text.ts';
import type { GcReport } from '../../maintenance/gc/collector.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { locate } from '../database/database-url.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import { findDatabases } from '../database/find-databases.ts';
import { printGarbage } from '../output/garbage.ts';
import { describePlace } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';

interface Tended {
  readonly merged: number;
  readonly garbage: GcReport;
}

/** Merges and collects. */
async function tendOne(session: Session, place: Place): Promise<Tended> {
  const { terminal, signal } = session;
  let requests = 0;
  using progress = new Progress(terminal, { what: 'tending', total: undefined, unit: 'requests' });
  await using opened = await session.openAt(place, 'writer', { onRequest: () => progress.set(++requests) });
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

/** Every database of a store, or of a folder in it, one after the other. Where one fails, the others are tended all the same. */
async function tendAll(session: Session, url: string, yes: boolean): Promise<ExitCode> {
  const { terminal, signal } = session;
  const { driver, store, storeId, prefix: under } = locate(url);
  const { prefixes } = await findDatabases(driver, signal, { under, patient: true });
  const where = under === undefined ? store : describePlace({ store, prefix: under });
  if (prefixes.length === 0) throw new UsageError(`There is no database in ${where}.`);
  const question = `Merge the logs of ${plural(prefixes.length, 'database')} in ${where}, and delete their garbage?`;
  if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
  let failed = 0;
  for (const prefix of prefixes) {
    const place: Place = { driver, store, storeId, prefix, storage: session.storage };
    const database = describePlace(place);
    try {
      const tended = await tendOne(session, place);
      if (tended.garbage.failed.length > 0) failed++;
      if (terminal.json) terminal.printJson({ database, ...tended });
      else {
        terminal.print(`${database}:`);
        print(session, tended);
      }
    } catch (error) {
      signal.throwIfAborted();
      failed++;
      const message = messageText(messageOf(error));
      if (terminal.json) terminal.printJson({ database, error: message });
      else terminal.tell(`${database}: ${message}`);
    }
  }
  if (failed > 0) terminal.tell(`${failed} of ${plural(prefixes.length, 'database')} failed.`);
  return failed > 0 ? ExitCode.found : ExitCode.done;
}

/** `tend`: what open instances do by and by, once: for databases that nobody has open. */
export const tend: Command = command({
  name: 'tend',
  summary: 'Do a round of upkeep: merge what waits in the log, and delete what nothing needs any more',
  positionals: databasePositional,
  options: {
    all: { type: 'boolean', default: false, describe: 'Every database in the store, or under the prefix of the URL' },
    ...yesOption,
  },
  examples: [
    ['tend s3://bucket/tenant-17 --yes', 'once a day by cron, for a database that is seldom open'],
    ['tend s3://bucket/tenants --all --yes', 'every database whose prefix begins with tenants/'],
  ],
  run: async (session, { database, all, yes }) => {
    if (all) return tendAll(session, database, yes);
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
