import { realEnvironment } from '../../base/env.ts';
import { defined } from '../../base/options.ts';
import { inspect, rewriteBackupsAt } from '../../maintenance/backup/backup-keys.ts';
import { backupsAt } from '../../maintenance/backup/backup.ts';
import { checkPrune } from '../../maintenance/backup/copy-options.ts';
import { prune as pruneBackups } from '../../maintenance/backup/prune.ts';
import type { PruneReport } from '../../maintenance/backup/prune.ts';
import { restoreFrom } from '../../maintenance/backup/restore.ts';
import type { CopyProgress } from '../../maintenance/backup/state-copy.ts';
import { command, databasePositional, confirmed, yesOption } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { newPlaceOf, describePlace, targetOf } from '../database/open-database.ts';
import type { Place } from '../database/open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatCount, formatTime, plural, formatBytes } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';
import { checkCompressionGiven, dryRunOption, printRewrite } from './maintenance.ts';

const backupsPositional = {
  backups: { type: 'string', isRequired: true, describe: 'URL of the backups, as passed to `backup`' },
} as const;

/** Formats the number of objects that need each key: `2026: 3, 2027: 22, none: 1`. */
function needsText({ keys, unencrypted }: { keys: Readonly<Record<string, number>>; unencrypted: number }): string {
  const needs = Object.entries(keys).map(([id, count]) => `${id}: ${formatCount(count)}`);
  if (unencrypted > 0) needs.push(`none: ${formatCount(unencrypted)}`);
  return needs.join(', ');
}

/** Prints the keys that each backup needs. */
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

/** `backups`: lists the backups that can be restored. */
export const backups: Command = command({
  name: 'backups',
  summary: 'List the backups at a place, oldest first; with --keys, the keys that each needs',
  positionals: backupsPositional,
  options: {},
  examples: [['backups file:./backups#shop --keys keys.json', 'before you discard a key']],
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

/** `backup`: copies a database to a place for backups. */
export const backup: Command = command({
  name: 'backup',
  summary: 'Back up the present state: copy the objects that the place for backups does not have yet',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      isRequired: true,
      describe: 'URL of the backups: file:./backups#shop or s3://bucket/backups/shop',
    },
  },
  options: {},
  examples: [
    [
      'backup s3://bucket/shop file:./backups#shop',
      'every night, for example: each backup is complete, and copies only new objects',
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

/** `restore`: creates a database from a backup. */
export const restore: Command = command({
  name: 'restore',
  summary: 'Create a database from a backup, with a new id, at an empty place',
  positionals: {
    ...backupsPositional,
    to: { type: 'string', isRequired: true, describe: 'URL of the new database' },
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

/** `clone`: creates an independent copy of a database. */
export const clone: Command = command({
  name: 'clone',
  summary: 'Create an independent database from the present state, at an empty place',
  positionals: {
    ...databasePositional,
    to: {
      type: 'string',
      isRequired: true,
      describe: 'URL of the new database; within one bucket, the store itself copies the objects',
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

const dayMs = 86_400_000;
const unitsMs: Readonly<Record<string, number>> = { h: dayMs / 24, d: dayMs, w: 7 * dayMs };

/** Parses a time such as `36h`, `30d` or `8w` to milliseconds. Throws `UsageError`. */
function span(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d{1,6})([hdw])$/.exec(text);
  if (match !== null) return Number(match[1]) * (unitsMs[match[2] as string] as number);
  throw new UsageError(`--${option} is ${text}; it must be hours, days or weeks, such as 36h, 30d or 8w.`);
}

function print(terminal: Terminal, report: PruneReport, dryRun: boolean): void {
  const { kept, removed, deletedObjects, freedBytes, isPostponed } = report;
  const listed = [...kept.map((each) => ['kept', each] as const), ...removed.map((each) => ['removed', each] as const)];
  printTable(
    terminal,
    [{ name: 'backup' }, { name: 'made' }, { name: '' }],
    listed
      .toSorted(([, a], [, b]) => a.createdAt.getTime() - b.createdAt.getTime())
      .map(([what, { id, createdAt }]) => [id, formatTime(createdAt.getTime()), what]),
  );
  const [were, deleted] = dryRun ? ['would be removed', 'would be deleted'] : ['removed', 'deleted'];
  const objects = `${plural(deletedObjects, 'object')} ${deleted}, ${formatBytes(freedBytes)}`;
  terminal.print(`${plural(removed.length, 'backup')} ${were}, ${plural(kept.length, 'backup')} kept; ${objects}.`);
  if (isPostponed) {
    terminal.tell(
      'A backup is under way, or was killed less than a day ago: no objects were deleted. Prune again later.',
    );
  }
}

/** `prune`: removes old backups. */
export const prune: Command = command({
  name: 'prune',
  summary: 'Remove the backups that no --keep option keeps, and the objects that only they need',
  positionals: backupsPositional,
  options: {
    'keep-last': { type: 'number', describe: 'Keep this many of the newest backups' },
    'keep-within': { type: 'string', describe: 'Keep backups at most this much older than the newest: 36h, 30d, 8w' },
    'keep-daily': { type: 'number', describe: 'Keep the last backup of each day, for this many days, in UTC' },
    'keep-weekly': { type: 'number', describe: 'Keep the last backup of each week, for this many weeks' },
    'keep-monthly': { type: 'number', describe: 'Keep the last backup of each month, for this many months' },
    'dry-run': { type: 'boolean', default: false, describe: 'Remove nothing, and print what would be removed' },
    ...yesOption,
  },
  examples: [
    ['prune file:./backups#shop --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --yes', 'after every backup'],
  ],
  run: async ({ terminal, signal, storage }, args) => {
    const { yes, 'dry-run': dryRun, 'keep-last': keepLast, 'keep-daily': keepDaily } = args;
    const { 'keep-weekly': keepWeekly, 'keep-monthly': keepMonthly } = args;
    const keepWithinMs = span('keep-within', args['keep-within']);
    const rules = {
      ...defined({ keepLast, keepWithinMs, keepDaily, keepWeekly, keepMonthly }),
    };
    if (Object.keys(rules).length === 0) {
      throw new UsageError('Choose the backups to keep: --keep-last 10, --keep-daily 7 or --keep-within 30d.');
    }
    const from = newPlaceOf(args.backups);
    try {
      const question = `Remove backups of ${describePlace(from)}?`;
      if (!dryRun && !(await confirmed({ terminal, signal }, question, yes))) return ExitCode.interrupted;
      using progress = new Progress(terminal, { what: 'pruning', total: 0 });
      const onProgress = ({ done, total }: { done: number; total: number }): void => progress.set(done, total);
      const options = checkPrune({
        ...storage,
        from: { driver: from.driver, prefix: from.prefix },
        ...rules,
        dryRun,
        signal,
        onProgress,
      });
      const report = await pruneBackups(realEnvironment, options);
      progress[Symbol.dispose]();
      if (terminal.json) terminal.printJson(report);
      else if (report.kept.length === 0) terminal.tell('There are no backups.');
      else print(terminal, report, dryRun);
      return ExitCode.done;
    } finally {
      await from.driver.close?.();
    }
  },
});

/** `rewrite-backups`: encrypts and compresses backups as the options ask. */
export const rewriteBackups: Command = command({
  name: 'rewrite-backups',
  summary: 'Rewrite the backups that are not encrypted with the current key, or not compressed as requested',
  positionals: backupsPositional,
  options: dryRunOption,
  examples: [
    [
      'rewrite-backups --keys keys.json --compression none file:./backups#shop',
      'after the database was rewritten, so that the backups do not need the old key either',
    ],
  ],
  run: async (session, { backups: url, 'dry-run': dryRun }) => {
    const { terminal, signal, storage } = session;
    checkCompressionGiven(session);
    const from = newPlaceOf(url);
    try {
      using progress = new Progress(terminal, { what: dryRun ? 'looking' : 'rewriting', total: 0 });
      const onProgress = ({ done, total }: { done: number; total: number }): void => progress.set(done, total);
      const report = await rewriteBackupsAt(realEnvironment, { ...storage, from, dryRun, signal, onProgress });
      progress[Symbol.dispose]();
      return printRewrite(terminal, report, dryRun);
    } finally {
      await from.driver.close?.();
    }
  },
});
