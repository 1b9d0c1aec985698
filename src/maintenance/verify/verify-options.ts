/** The options of `db.verify()` and `db.repair()`, checked. */
import { InvalidOptionError } from '../../base/errors.ts';
import { describeValue } from '../../base/describe-value.ts';
import { withOwnSignal } from '../../base/signals.ts';
import { checkKind } from '../rewrite/option-checks.ts';

/** How far `db.verify()` has come. */
export interface VerifyProgress {
  /** Rows, index entries and, with `deep`, blobs that were checked. */
  readonly checked: number;
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

const verifyNames: readonly (keyof VerifyOptions)[] = ['deep', 'onProgress', 'signal'];
const repairNames: readonly (keyof RepairOptions)[] = ['log', 'table', 'index', 'dryRun', 'signal'];

/** Throws `InvalidOptionError`. */
export function checkVerifyOptions(options: VerifyOptions): VerifyOptions {
  const checked = withOwnSignal('db.verify()', options, verifyNames);
  checkKind('deep', options.deep, 'boolean');
  checkKind('onProgress', options.onProgress, 'function');
  return checked;
}

/** Throws `InvalidOptionError`. */
export function checkRepairOptions(options: RepairOptions): RepairOptions {
  const checked = withOwnSignal('db.repair()', options, repairNames);
  checkKind('table', options.table, 'string');
  checkKind('index', options.index, 'string');
  checkKind('dryRun', options.dryRun, 'boolean');
  const { log } = options as { log?: unknown };
  if (log !== undefined && log !== 'stop' && log !== 'skip') {
    throw new InvalidOptionError('log', `Option log is ${describeValue(log)}; it must be 'stop' or 'skip'.`);
  }
  if (log !== undefined && options.table !== undefined) {
    throw new InvalidOptionError('log', 'Option log does not go with option table: the log is of all tables.');
  }
  if (options.index !== undefined && options.table === undefined) {
    throw new InvalidOptionError('index', 'Option index needs option table: indexes of two tables may share a name.');
  }
  return checked;
}
