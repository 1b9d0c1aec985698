/** The options of `db.verify()` and `db.repair()`, checked. */
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';

/** How far `db.verify()` has come. */
export interface VerifyProgress {
  /** Rows, index entries and, with `deep`, blobs that were checked. */
  readonly done: number;
  /** How many there are to check. It begins anew where the database has moved on too far meanwhile. */
  readonly total: number;
}

/** Options of `db.verify()`. */
export interface VerifyOptions {
  /**
   * Reads every blob as well, and checks who owns it; checks the trees of snapshots and history; and counts what nothing
   * refers to. Default false.
   */
  readonly deep?: boolean;
  /** Called after every block and blob. */
  readonly onProgress?: (progress: VerifyProgress) => void;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** Options of `db.repair()`. */
export interface RepairOptions {
  /**
   * What becomes of a log with a hole, where an acknowledged commit is lost: `'stop'` gives up all commits behind the hole,
   * `'skip'` goes on with them, without the lost one. Default: the report says what is lost and what lies behind it, and nothing
   * is done. Stop all other instances before. Does not go with `table` and `index`.
   */
  readonly log?: 'stop' | 'skip';
  /** Looks at this table only, and neither at blobs nor at snapshots. Default: at everything. */
  readonly table?: string;
  /** Looks at this index of the table only. */
  readonly index?: string;
  /** Writes nothing, and reports what would be done. Default false. */
  readonly dryRun?: boolean;
  /** Gives the call up. What was repaired until then stays so. */
  readonly signal?: AbortSignal;
}

export const verifyOptions: OptionTable<VerifyOptions> = new OptionTable({
  deep: kinds.flag,
  onProgress: kinds.callback,
  signal: kinds.signal,
});

const repairOptions = new OptionTable<RepairOptions>({
  log: kinds.choice('stop', 'skip'),
  table: kinds.named,
  index: kinds.named,
  dryRun: kinds.flag,
  signal: kinds.signal,
});

/** Throws `InvalidOptionError`. */
export function checkRepairOptions(options: RepairOptions): RepairOptions {
  const checked = repairOptions.check('db.repair()', options);
  const { log, table, index } = checked;
  if (log !== undefined && table !== undefined) {
    throw new InvalidOptionError(
      'log',
      'Option `log` of db.repair() does not go with `table`: the log is of all tables.',
    );
  }
  if (index !== undefined && table === undefined) {
    throw new InvalidOptionError(
      'index',
      'Option `index` of db.repair() needs `table`: indexes of two tables may share a name.',
    );
  }
  return checked;
}
