import { createDatabase } from '../../api/create.ts';
import { realEnvironment } from '../../base/env.ts';
import { formatStoreReport } from '../../maintenance/doctor.ts';
import { command, databasePositional } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { locate } from '../database/database-url.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { placeOf } from '../database/open-database.ts';

/** `doctor`: whether a store is fit for a database, and what is there. */
export const doctor: Command = command({
  name: 'doctor',
  summary: 'Try out whether a store is safe for a database; exit status 1 if not',
  positionals: databasePositional,
  options: {
    'read-only': { type: 'boolean', default: false, describe: 'The credentials need only read, as those of a replica' },
  },
  run: async ({ terminal, signal, nodeId, storage }, { database, 'read-only': readOnly }) => {
    // Also where there is no database yet: that is when a store should be looked at.
    const located = locate(database);
    const { driver, prefix: dbPrefix } =
      located.prefix === undefined
        ? await placeOf(database, signal).catch(() => ({ ...locate(database), prefix: 'store-db' }))
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
