import { command, databasePositional } from '../command.ts';
import type { Command } from '../command.ts';
import { confirmed, yesOption } from '../confirmation.ts';
import { ExitCode } from '../exit-code.ts';
import { plural } from '../figures.ts';
import { printFindings } from '../findings.ts';
import { describePlace } from '../open-database.ts';

/** `repair`: makes damaged indexes anew. */
export const repair: Command = command({
  name: 'repair',
  summary: 'Make damaged indexes anew from the rows; exit status 1 if something stays wrong',
  positionals: databasePositional,
  options: {
    table: { type: 'string', describe: 'Only this table' },
    index: { type: 'string', describe: 'Only this index of the table' },
    'dry-run': { type: 'boolean', default: false, describe: 'Write nothing, and tell what would be done' },
    ...yesOption,
  },
  run: async (session, { database, table, index, 'dry-run': dryRun, yes }) => {
    const { terminal, signal } = session;
    const place = await session.place(database);
    const question = `Repair ${describePlace(place)}? Rows, blobs and snapshots are never changed.`;
    if (!dryRun && !(await confirmed(session, question, yes))) return ExitCode.interrupted;
    await using opened = await session.openAt(place, 'writer');
    const report = await opened.db.repair({
      dryRun,
      signal,
      ...(table !== undefined && { table }),
      ...(index !== undefined && { index }),
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
      if (report.repaired.length === 0 && report.ok) terminal.print('Nothing to repair.');
    }
    return report.ok ? ExitCode.done : ExitCode.found;
  },
});
