/** All commands, in the order in which the help lists them. */
import type { Command } from './database/command.ts';
import { backup } from './commands/backup.ts';
import { backups } from './commands/backups.ts';
import { cat } from './commands/cat.ts';
import { clear } from './commands/clear.ts';
import { clone } from './commands/clone.ts';
import { completion } from './commands/completion.ts';
import { cost } from './commands/cost.ts';
import { doctor } from './commands/doctor.ts';
import { explain } from './commands/explain.ts';
import { drop } from './commands/drop.ts';
import { exportTable } from './commands/export.ts';
import { gc } from './commands/gc.ts';
import { indexes } from './commands/indexes.ts';
import { importTable } from './commands/import.ts';
import { log } from './commands/log.ts';
import { migrate } from './commands/migrate.ts';
import { prune } from './commands/prune.ts';
import { query } from './commands/query.ts';
import { rename } from './commands/rename.ts';
import { repair } from './commands/repair.ts';
import { restore } from './commands/restore.ts';
import { rewriteBackups } from './commands/rewrite-backups.ts';
import { rewrite } from './commands/rewrite.ts';
import { schema } from './commands/schema.ts';
import { shellOf } from './commands/shell.ts';
import { snapshots } from './commands/snapshots.ts';
import { stats } from './commands/stats.ts';
import { tables } from './commands/tables.ts';
import { tend } from './commands/tend.ts';
import { verify } from './commands/verify.ts';

const others: readonly Command[] = [
  stats,
  tables,
  indexes,
  query,
  explain,
  importTable,
  schema,
  exportTable,
  clear,
  verify,
  repair,
  gc,
  tend,
  backup,
  backups,
  prune,
  restore,
  clone,
  rename,
  drop,
  rewrite,
  rewriteBackups,
  snapshots,
  log,
  cat,
  migrate,
  doctor,
  cost,
  completion,
];

/** Commands of one database that the shell runs. */
const ofDatabase = others.filter(
  (one) => Object.keys(one.positionals)[0] === 'database' && one !== query && one !== explain,
);

export const commands: readonly Command[] = [shellOf(ofDatabase), ...others];
