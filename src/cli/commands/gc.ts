import { defined } from '../../base/defined.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { printGarbage } from '../output/garbage.ts';
import { describePlace } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';

function hours(option: string, value: number | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (Number.isFinite(value) && value >= 0) return Math.round(value * 3_600_000);
  throw new UsageError(`--${option} is ${value}; it must be hours, at least 0.`);
}

function milliseconds(seconds: number | undefined): number | undefined {
  if (seconds === undefined) return undefined;
  if (Number.isFinite(seconds) && seconds >= 0) return Math.round(seconds * 1000);
  throw new UsageError(`--loop-seconds is ${seconds}; it must be seconds, at least 0.`);
}

/** `gc`: deletes what nothing needs any more. */
export const gc: Command = command({
  name: 'gc',
  summary: 'Delete what nothing needs any more',
  positionals: databasePositional,
  options: {
    'dry-run': { type: 'boolean', default: false, describe: 'Delete nothing, and list what would be deleted and why' },
    'grace-hours': { type: 'number', describe: 'Leave blobs alone that were uploaded since; default 24' },
    'log-hours': { type: 'number', describe: 'Keep merged commits for so long; default 1' },
    'loop-seconds': {
      type: 'number',
      describe:
        'Wait for so long for loops of other processes, and leave alone what they may read; default 30 where other nodes take turns, else 0',
    },
    'trust-clock': {
      type: 'boolean',
      default: false,
      describe:
        'Let snapshots, history, commits and uploads go by their age although the clock is more than a day after the last write',
    },
    ...yesOption,
  },
  run: async (
    session,
    {
      database,
      'dry-run': dryRun,
      'grace-hours': grace,
      'log-hours': log,
      'loop-seconds': loop,
      'trust-clock': trustClock,
      yes,
    },
  ) => {
    const { terminal, signal } = session;
    const graceMs = hours('grace-hours', grace);
    const logRetentionMs = hours('log-hours', log);
    const loopGraceMs = milliseconds(loop);
    const place = await session.place(database);
    const question = `Delete the garbage of ${describePlace(place)}?`;
    if (!dryRun && !(await confirmed(session, question, yes))) return ExitCode.interrupted;
    let requests = 0;
    using progress = new Progress(terminal, { what: 'collecting garbage', total: undefined, unit: 'requests' });
    await using opened = await session.openAt(place, 'writer', { onRequest: () => progress.set(++requests) });
    const report = await opened.db.gc({
      dryRun,
      trustClock,
      signal,
      ...defined({ graceMs, logRetentionMs, loopGraceMs }),
    });
    progress[Symbol.dispose]();
    if (terminal.json) terminal.printJson(report);
    else printGarbage(terminal, report, dryRun);
    return report.failed.length > 0 ? ExitCode.found : ExitCode.done;
  },
});
