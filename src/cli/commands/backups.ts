import { realEnvironment } from '../../base/env.ts';
import { inspect } from '../../maintenance/backup/backup-keys.ts';
import { backupsAt } from '../../maintenance/backup/backup.ts';
import { command } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatCount, formatTime, plural } from '../terminal/figures.ts';
import { newPlaceOf } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { printTable } from '../terminal/text-table.ts';

export const backupsPositional = {
  backups: { type: 'string', demandOption: true, describe: 'URL of the backups, as `backup` was given it' },
} as const;

/** Keys and how many objects need each: `2026: 3, 2027: 22, none: 1`. */
function needsText({ keys, unencrypted }: { keys: Readonly<Record<string, number>>; unencrypted: number }): string {
  const needs = Object.entries(keys).map(([id, count]) => `${id}: ${formatCount(count)}`);
  if (unencrypted > 0) needs.push(`none: ${formatCount(unencrypted)}`);
  return needs.join(', ');
}

/** Which keys each backup needs. */
async function printKeys({ terminal, signal, storage }: Session, from: Place): Promise<ExitCode> {
  const report = await inspect(realEnvironment, { ...storage, from, signal });
  const { backups: found, objects } = report;
  const problems = found.filter(({ problem }) => problem !== undefined);
  if (terminal.json) terminal.printJson(report);
  else if (found.length === 0) terminal.tell('There are no backups.');
  else {
    printTable(
      terminal,
      [{ name: 'backup' }, { name: 'made' }, { name: 'objects', align: 'right' }, { name: 'keys' }],
      found.map((each) => {
        const { id, createdAt, objects: count, problem } = each;
        const needs = problem === undefined ? needsText(each) : `${needsText(each)}, and more`;
        return [id, formatTime(createdAt.getTime()), problem === undefined ? formatCount(count) : '', needs];
      }),
    );
    terminal.print(`${plural(objects, 'object')} in all, by their keys: ${needsText(report)}.`);
    for (const { id, problem } of problems) terminal.tell(`Backup ${id} was not read: ${problem}`);
  }
  return problems.length > 0 ? ExitCode.found : ExitCode.done;
}

/** `backups`: what can be restored. */
export const backups: Command = command({
  name: 'backups',
  summary: 'List the backups of a place, the oldest first; with --keys, the keys that each needs',
  positionals: backupsPositional,
  options: {},
  examples: [['backups file:./backups#shop --keys keys.json', 'before a key is thrown away']],
  run: async (session, args) => {
    const { terminal, signal } = session;
    const place = newPlaceOf(args.backups);
    try {
      if (session.areKeysGiven) return await printKeys(session, place);
      const found = await backupsAt(place, signal);
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
