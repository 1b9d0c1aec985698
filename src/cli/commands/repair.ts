import { defined } from '../../base/defined.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { confirmed, yesOption } from '../database/confirmation.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatCount, plural } from '../terminal/figures.ts';
import { printFindings } from '../output/findings.ts';
import type { RepairedLog } from '../../maintenance/verify/repair.ts';
import { describePlace } from '../database/open-database.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';

/** Commits that are listed, at most. */
const shownCommits = 50;

/** `repair`: makes damaged indexes anew, and goes on behind a hole in the log. */
export const repair: Command = command({
  name: 'repair',
  summary: 'Make damaged indexes anew, and go on behind a hole in the log; exit status 1 if something stays wrong',
  positionals: databasePositional,
  options: {
    log: {
      choices: ['stop', 'skip'] as const,
      describe: 'Where a commit is lost: give up those behind it (stop), or keep them (skip)',
    },
    table: { type: 'string', describe: 'Only this table' },
    index: { type: 'string', describe: 'Only this index of the table' },
    'dry-run': { type: 'boolean', default: false, describe: 'Write nothing, and tell what would be done' },
    ...yesOption,
  },
  run: async (session, { database, log, table, index, 'dry-run': dryRun, yes }) => {
    const { terminal, signal } = session;
    const place = await session.place(database);
    const loses =
      log === 'stop'
        ? 'Commits behind a hole in the log are given up, with all that they changed.'
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
        const verb = dryRun ? 'would be made anew' : 'made anew';
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

/** What is lost of the log, what lies behind it, and what became of that or can be done. */
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
      `Behind the hole ${stranded.length === 1 ? 'lies' : 'lie'} ${commits}. Stop all other instances, and then: --log stop gives them ` +
        'up, --log skip keeps them and goes on without what is lost.',
    );
  } else {
    const verb = dryRun ? 'would be' : stranded.length === 1 ? 'was' : 'were';
    terminal.print(`${commits} behind the hole ${verb} ${way === 'stop' ? 'given up' : 'kept'}.`);
  }
}
