import { realEnvironment } from '../../base/env.ts';
import { rewriteBackupsAt } from '../../maintenance/backup/backup-keys.ts';
import { command } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { newPlaceOf } from '../database/open-database.ts';
import { Progress } from '../terminal/progress.ts';
import { backupsPositional } from './backups.ts';
import { checkCompressionGiven, dryRunOption, printRewrite } from './rewrite.ts';

/** `rewrite-backups`: encrypts and compresses backups as the options say. */
export const rewriteBackups: Command = command({
  name: 'rewrite-backups',
  summary: 'Store backups anew that are not encrypted with the current key, or not compressed as asked',
  positionals: backupsPositional,
  options: dryRunOption,
  examples: [
    [
      'rewrite-backups --keys keys.json --compression none file:./backups#shop',
      'after the database was rewritten, so that backups do not need the old key either',
    ],
  ],
  run: async (session, { backups, 'dry-run': dryRun }) => {
    const { terminal, signal, storage } = session;
    checkCompressionGiven(session);
    const from = newPlaceOf(backups);
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
