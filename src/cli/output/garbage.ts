/** What collecting garbage deleted, for people. */
import type { GcReport } from '../../maintenance/gc/collector.ts';
import { formatBytes, formatCount, plural } from '../terminal/figures.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';

export function printGarbage(terminal: Terminal, report: GcReport, dryRun: boolean): void {
  if (report.garbage.length > 0) {
    printTable(
      terminal,
      [{ name: 'kind' }, { name: 'bytes', align: 'right' }, { name: 'object' }, { name: 'why' }],
      report.garbage.map(({ kind, sizeBytes, name, reason }) => [kind, formatCount(sizeBytes), name, reason]),
    );
  }
  const kinds = Object.entries(report.counts).filter(([, count]) => count > 0);
  const total = kinds.reduce((sum, [, count]) => sum + count, 0);
  const what = kinds.map(([kind, count]) => `${kind}: ${formatCount(count)}`).join(', ');
  const verb = dryRun ? 'would be deleted' : 'deleted';
  terminal.print(
    total === 0
      ? 'Nothing to delete.'
      : `${plural(total, 'object')} ${verb} (${what}), ${formatBytes(report.freedBytes)}.`,
  );
  for (const { name, message } of report.failed) terminal.tell(`The store did not delete ${name}: ${message}`);
}
