import { createDatabase } from '../../api/database.ts';
import { realEnvironment } from '../../base/env.ts';
import { defined } from '../../base/options.ts';
import { formatStoreReport } from '../../maintenance/store-report.ts';
import type { RepairedLog } from '../../maintenance/verify/repair.ts';
import { command, databasePositional, confirmed, yesOption } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { describePlace, locate, findPlace } from '../database/open-database.ts';
import { printFindings } from '../output/reports.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatBytes, formatCount, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';

/** `verify`: reads and checks the whole database. */
export const verify: Command = command({
  name: 'verify',
  summary: 'Read and check the whole database; exit status 1 if it has a problem',
  positionals: databasePositional,
  options: {
    deep: {
      type: 'boolean',
      default: false,
      describe: 'Also check blobs, snapshots, history and the list of all objects',
    },
  },
  run: async (session, { database, deep }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica', { damaged: true });
    using progress = new Progress(terminal, { what: 'checking', total: 0 });
    const report = await opened.db.verify({
      deep,
      signal,
      onProgress: ({ done, total }) => progress.set(done, total),
    });
    progress[Symbol.dispose]();
    if (terminal.json) {
      terminal.printJson(report);
      return report.ok ? ExitCode.done : ExitCode.found;
    }
    printTable(
      terminal,
      [{ name: 'table' }, { name: 'rows', align: 'right' }, { name: 'blocks', align: 'right' }, { name: 'indexes' }],
      report.tables.map(({ name, rows, blocks, indexes }) => [
        name,
        formatCount(rows),
        formatCount(blocks),
        indexes.map((index) => `${index.name} (${formatCount(index.entries)})`).join(', '),
      ]),
    );
    printFindings(terminal, report.findings);
    const { blobs, garbage, unknownObjects = [], keptStates } = report;
    if (blobs !== undefined) terminal.print(`${plural(blobs.objects, 'blob')} read, ${formatBytes(blobs.bytes)}.`);
    if (keptStates !== undefined && keptStates > 0) terminal.print(`${plural(keptStates, 'earlier state')} checked.`);
    if (garbage !== undefined && garbage.objects > 0) {
      terminal.print(
        `${plural(garbage.objects, 'object')} of garbage, ${formatBytes(garbage.bytes)}: gc would delete them.`,
      );
    }
    if (unknownObjects.length > 0) {
      terminal.print(
        `${plural(unknownObjects.length, 'object')} of somebody else: ${unknownObjects.slice(0, 5).join(', ')}`,
      );
    }
    if (report.ok) terminal.print(terminal.style('green', 'Nothing is wrong.'));
    else {
      const count = plural(report.findings.length, 'thing is', 'things are');
      terminal.print(`${terminal.style('red', `${count} wrong.`)} \`store-db repair\` says what can be done.`);
    }
    return report.ok ? ExitCode.done : ExitCode.found;
  },
});

/** The number of commits to list. */
const shownCommits = 50;

/** `repair`: rebuilds damaged indexes, and continues after a hole in the log. */
export const repair: Command = command({
  name: 'repair',
  summary: 'Rebuild damaged indexes, and continue after a hole in the log; exit status 1 if a problem remains',
  positionals: databasePositional,
  options: {
    log: {
      choices: ['stop', 'skip'] as const,
      describe: 'If a commit is lost: give up the commits after it (stop), or keep them (skip)',
    },
    table: { type: 'string', describe: 'Only this table' },
    index: { type: 'string', describe: 'Only this index of the table' },
    'dry-run': { type: 'boolean', default: false, describe: 'Write nothing, and print what would be done' },
    ...yesOption,
  },
  run: async (session, { database, log, table, index, 'dry-run': dryRun, yes }) => {
    const { terminal, signal } = session;
    const place = await session.place(database);
    const loses =
      log === 'stop'
        ? 'Commits after a hole in the log are given up with all their changes, including commits that other instances write meanwhile: stop the instances first.'
        : 'Rows, blobs and snapshots are never changed.';
    const question = `Repair ${describePlace(place)}? ${loses}`;
    if (!dryRun && !(await confirmed(session, question, yes))) return ExitCode.interrupted;
    await using opened = await session.openAt(place, 'writer', { damaged: true });
    const report = await opened.db.repair({
      dryRun,
      signal,
      ...defined({ log, table, index }),
    });
    if (terminal.json) terminal.printJson(report);
    else {
      for (const repaired of report.repaired) {
        const verb = dryRun ? 'would be rebuilt' : 'rebuilt';
        terminal.print(
          `Index ${repaired.index} of ${repaired.table} ${verb}: ${plural(repaired.entries, 'entry', 'entries')}.`,
        );
      }
      printFindings(terminal, report.unrepairable);
      if (report.log !== undefined) printLog(terminal, report.log, dryRun);
      if (report.repaired.length === 0 && report.log === undefined && report.ok) terminal.print('Nothing to repair.');
    }
    return report.ok ? ExitCode.done : ExitCode.found;
  },
});

/** Prints the lost slots, the commits after the hole, and whether those were kept, given up, or are undecided. */
function printLog(terminal: Terminal, { way, lostSlots, stranded }: RepairedLog, dryRun: boolean): void {
  if (lostSlots.length > 0) {
    terminal.print(`Lost: ${plural(lostSlots.length, 'acknowledged commit')}, in slot ${lostSlots.join(', ')}.`);
  }
  const shown = stranded.slice(0, shownCommits);
  printTable(
    terminal,
    [{ name: 'slot', align: 'right' }, { name: 'node', align: 'right' }, { name: 'written at' }, { name: 'rows' }],
    shown.map(({ slot, nodeId, at, rows }) => [
      String(slot),
      nodeId === undefined ? '' : String(nodeId),
      at === undefined ? 'unreadable' : at.toISOString(),
      Object.entries(rows)
        .map(([name, count]) => `${name} ${formatCount(count)}`)
        .join(', '),
    ]),
  );
  if (stranded.length > shown.length) terminal.print(`… and ${plural(stranded.length - shown.length, 'commit')} more.`);
  const commits = plural(stranded.length, 'commit');
  if (way === undefined) {
    terminal.print(
      `After the hole there ${stranded.length === 1 ? 'is' : 'are'} ${commits}. Stop all other instances, and then: --log stop gives them ` +
        'up, --log skip keeps them and continues without the lost commits.',
    );
  } else {
    const verb = dryRun ? 'would be' : stranded.length === 1 ? 'was' : 'were';
    terminal.print(`${commits} after the hole ${verb} ${way === 'stop' ? 'given up' : 'kept'}.`);
  }
}

/** `doctor`: tests whether a store is safe for a database, and checks the state of the database there. */
export const doctor: Command = command({
  name: 'doctor',
  summary: 'Test whether a store is safe for a database; exit status 1 if not',
  positionals: databasePositional,
  options: {
    'read-only': {
      type: 'boolean',
      default: false,
      describe: 'Test as a replica, whose credentials only need to read',
    },
  },
  run: async ({ terminal, signal, nodeId, storage }, { database, 'read-only': readOnly }) => {
    // The database need not exist: a store should be tested before one is created.
    const located = locate(database);
    const { driver, prefix: dbPrefix } =
      located.prefix === undefined
        ? await findPlace(database, signal).catch(() => ({ ...locate(database), prefix: 'store-db' }))
        : { ...located, prefix: located.prefix };
    const db = createDatabase(
      { ...storage, dbPrefix, nodeId, driver, role: readOnly ? 'replica' : 'writer', logLevel: 'silent' },
      realEnvironment,
    );
    const report = await db.doctor({ signal });
    if (terminal.json) terminal.printJson(report);
    else terminal.printLines(formatStoreReport(report));
    const isFine = report.safe && !['damaged', 'unknown format', 'unreadable'].includes(report.database.status);
    return isFine ? ExitCode.done : ExitCode.found;
  },
});
