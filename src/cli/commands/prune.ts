import { defined } from '../../base/defined.ts';
import { realEnvironment } from '../../base/env.ts';
import { checkPrune } from '../../maintenance/backup/copy-options.ts';
import { prune as pruneBackups } from '../../maintenance/backup/prune.ts';
import type { PruneReport } from '../../maintenance/backup/prune.ts';
import { command } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, formatTime, plural } from '../terminal/figures.ts';
import { describePlace, newPlaceOf } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';
import { backupsPositional } from './backups.ts';

const dayMs = 86_400_000;
const unitsMs: Readonly<Record<string, number>> = { h: dayMs / 24, d: dayMs, w: 7 * dayMs };

/** A time such as `36h`, `30d` or `8w`. Throws `UsageError`. */
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
      'A backup is under way, or was killed less than a day ago: objects were left alone. Prune again later.',
    );
  }
}

/** `prune`: removes old backups. */
export const prune: Command = command({
  name: 'prune',
  summary: 'Remove the backups that no --keep option keeps, and what only they consist of',
  positionals: backupsPositional,
  options: {
    'keep-last': { type: 'number', describe: 'Keep the newest so many' },
    'keep-within': { type: 'string', describe: 'Keep those at most so much older than the newest: 36h, 30d, 8w' },
    'keep-daily': { type: 'number', describe: 'Keep the last of each of so many days, in UTC' },
    'keep-weekly': { type: 'number', describe: 'Keep the last of each of so many weeks' },
    'keep-monthly': { type: 'number', describe: 'Keep the last of each of so many months' },
    'dry-run': { type: 'boolean', default: false, describe: 'Remove nothing, and tell what would be removed' },
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
      throw new UsageError('Say which backups are to be kept: --keep-last 10, --keep-daily 7 or --keep-within 30d.');
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
