/** Checks the options of `db.verify()` and `db.repair()`. */
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';

/** Progress of `db.verify()`. */
export interface VerifyProgress {
  /** Number of rows, index entries and, with `deep`, blobs that were checked. */
  readonly done: number;
  /** How many there are to check. A check that begins again, because the database has moved on too far, counts from 0 again. */
  readonly total: number;
}

/** Options of `db.verify()`. */
export interface VerifyOptions {
  /**
   * Also reads every blob and checks which row owns it, checks the trees of snapshots and history, and counts the objects that
   * nothing refers to. Default false.
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
   * How to repair a log with a hole, where an acknowledged commit is lost: `'stop'` gives up all commits behind the hole, `'skip'`
   * goes on with them, without the lost one. Default: nothing is done, and the report names the lost slots and the commits behind
   * them. Stop all other instances first. Cannot be combined with `table` and `index`.
   */
  readonly log?: 'stop' | 'skip';
  /** Checks and repairs this table only, and neither blobs nor snapshots. Default: everything. */
  readonly table?: string;
  /** Checks and repairs this index of the table only. */
  readonly index?: string;
  /** Writes nothing, and reports the repairs that a run would make. Default false. */
  readonly dryRun?: boolean;
  /** Gives the call up. Repairs made until then stay. */
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

/** Checks the options of `db.repair()`. Throws `InvalidOptionError`. */
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
