import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { formatBytes, formatCount, plural } from '../terminal/figures.ts';
import { printFindings } from '../output/findings.ts';
import { Progress } from '../terminal/progress.ts';
import { printTable } from '../terminal/text-table.ts';

/** `verify`: reads everything and checks it. */
export const verify: Command = command({
  name: 'verify',
  summary: 'Read everything and check it; exit status 1 if something is wrong',
  positionals: databasePositional,
  options: {
    deep: { type: 'boolean', default: false, describe: 'Also blobs, snapshots, history and the list of all objects' },
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
