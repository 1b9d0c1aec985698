/** The commands that maintain a database: gc, rewrite, clear and snapshots. */
import { defined } from '../../base/options.ts';
import type { RewriteReport } from '../../maintenance/backup/rewrite.ts';
import { command, databasePositional, confirmed, yesOption } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { describePlace } from '../database/open-database.ts';
import { printGarbage } from '../output/reports.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { plural, formatBytes, formatCount, formatTime } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';

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

/** `gc`: deletes the objects that nothing needs any more. */
export const gc: Command = command({
  name: 'gc',
  summary: 'Delete the objects that nothing needs any more',
  positionals: databasePositional,
  options: {
    'dry-run': { type: 'boolean', default: false, describe: 'Delete nothing, and list what would be deleted and why' },
    'grace-hours': { type: 'number', describe: 'Keep blobs that were uploaded in the last so many hours; default: 24' },
    'log-hours': { type: 'number', describe: 'Keep merged commits for so many hours; default: 1' },
    'loop-seconds': {
      type: 'number',
      describe:
        'Wait so many seconds for the loops of other processes, and keep the objects that they may read; default: 30 if other nodes take turns, else 0',
    },
    'trust-clock': {
      type: 'boolean',
      default: false,
      describe:
        'Let snapshots, history, commits and uploads expire by their age even if the clock is more than a day after the last write',
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

/** Prints the report of a rewrite, and returns the exit status. */
export function printRewrite(terminal: Terminal, report: RewriteReport, dryRun: boolean): ExitCode {
  if (terminal.json) terminal.printJson(report);
  else {
    const { objects, rewritten, rewrittenBytes, keys, unencrypted, failed } = report;
    const rows = Object.entries(keys).map(([id, count]) => [id, formatCount(count)]);
    if (unencrypted > 0) rows.push(['(none)', formatCount(unencrypted)]);
    printTable(terminal, [{ name: 'key' }, { name: 'objects', align: 'right' }], rows);
    const verb = dryRun ? 'would be rewritten' : 'rewritten';
    terminal.print(
      `${plural(rewritten, 'object')} of ${formatCount(objects)} ${verb}, ${formatBytes(rewrittenBytes)}.`,
    );
    for (const { name, message } of failed) terminal.tell(`${name} stays as it is: ${message}`);
  }
  return report.failed.length > 0 ? ExitCode.found : ExitCode.done;
}

export const dryRunOption = {
  'dry-run': { type: 'boolean', default: false, describe: 'Write nothing, and print which keys are still needed' },
} as const;

/** Throws `UsageError` without `--compression`: its default would decompress objects that are compressed. */
export function checkCompressionGiven(session: Session): void {
  if (session.isCompressionGiven) return;
  throw new UsageError('Choose the compression of all objects: --compression none, deflate or zstd.');
}

/** `rewrite`: stores objects again whose encryption or compression is not as the options ask. */
export const rewrite: Command = command({
  name: 'rewrite',
  summary: 'Rewrite the objects that are not encrypted with the current key, or not compressed as requested',
  positionals: databasePositional,
  options: dryRunOption,
  examples: [
    [
      'rewrite --keys keys.json --compression none s3://bucket/shop',
      'after keys.json and all instances got a new current key',
    ],
  ],
  run: async (session, { database, 'dry-run': dryRun }) => {
    const { terminal, signal } = session;
    checkCompressionGiven(session);
    await using opened = await session.open(database, 'writer');
    using progress = new Progress(terminal, { what: dryRun ? 'looking' : 'rewriting', total: 0 });
    const report = await opened.db.rewrite({
      dryRun,
      signal,
      onProgress: ({ done, total }) => progress.set(done, total),
    });
    progress[Symbol.dispose]();
    return printRewrite(terminal, report, dryRun);
  },
});

const release: Command = command({
  name: 'release',
  summary: 'End a snapshot whose holder is gone, so that gc can delete the objects that only it needs',
  positionals: {
    ...databasePositional,
    snapshot: { type: 'string', isRequired: true, describe: 'Id of the snapshot, as listed by snapshots' },
  },
  options: yesOption,
  run: async (session, { database, snapshot, yes }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'writer');
    const found = (await opened.db.snapshots({ signal })).find(({ id }) => id === snapshot);
    if (found === undefined) {
      throw new UsageError(
        `There is no snapshot ${snapshot} in ${describePlace(opened.place)}: store-db snapshots lists them.`,
      );
    }
    const { nodeId, createdAt, expiresAt } = found;
    const question =
      `End the snapshot that node ${nodeId} took at ${formatTime(createdAt.getTime())}? Otherwise it lasts until ` +
      `${formatTime(expiresAt.getTime())}, or longer if its holder renews it. For its holder it expires now: a backup or an export that reads it fails.`;
    if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
    const isReleased = await opened.db.releaseSnapshot(snapshot, { signal });
    if (terminal.json) terminal.printJson({ snapshot, released: isReleased });
    else terminal.print(isReleased ? `Snapshot ${snapshot} has ended.` : `Snapshot ${snapshot} had ended already.`);
    return ExitCode.done;
  },
});

/** `snapshots`: lists the snapshots that are held. */
export const snapshots: Command = command({
  name: 'snapshots',
  summary: 'List the snapshots that are held',
  positionals: databasePositional,
  options: {},
  subcommands: [release],
  run: async (session, { database }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica');
    const found = await opened.db.snapshots({ signal });
    if (terminal.json) terminal.printJson(found);
    else if (found.length === 0) terminal.tell('No snapshot is held.');
    else {
      printTable(
        terminal,
        [
          { name: 'snapshot' },
          { name: 'generation', align: 'right' },
          { name: 'node', align: 'right' },
          { name: 'taken' },
          { name: 'expires' },
        ],
        found.map(({ id, generation, nodeId, createdAt, expiresAt }) => [
          id,
          String(generation),
          String(nodeId),
          formatTime(createdAt.getTime()),
          formatTime(expiresAt.getTime()),
        ]),
      );
    }
    return ExitCode.done;
  },
});
