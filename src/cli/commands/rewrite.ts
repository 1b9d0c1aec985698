import { command, databasePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import type { RewriteReport } from '../../maintenance/rewrite/rewrite.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, formatCount, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';

/** Tells what was stored anew. */
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
  'dry-run': { type: 'boolean', default: false, describe: 'Write nothing, and tell which keys are still needed' },
} as const;

/** Throws `UsageError` unless the command line says how to compress: what is compressed already would be expanded. */
export function checkCompressionGiven(session: Session): void {
  if (session.isCompressionGiven) return;
  throw new UsageError('Say how everything is to be compressed: --compression none, deflate or zstd.');
}

/** `rewrite`: encrypts and compresses what is stored otherwise than the options say. */
export const rewrite: Command = command({
  name: 'rewrite',
  summary: 'Store anew what is not encrypted with the current key, or not compressed as asked',
  positionals: databasePositional,
  options: dryRunOption,
  examples: [
    [
      'rewrite --keys keys.json --compression none s3://bucket/shop',
      'after keys.json got a new current key, as all instances did',
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
