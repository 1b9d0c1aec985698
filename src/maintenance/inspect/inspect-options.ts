/** Options of the calls that show how a database is stored. */
import { kinds, OptionTable } from '../../base/options.ts';

/** Options of `db.log()`. */
export interface LogOptions {
  /** The most commits to return, 1 to 1,000. Default 20. */
  readonly limit?: number;
  /** Returns commits before this position only: that of the last commit of the page before. Default: the newest commits. */
  readonly before?: number;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** Options of `db.block()`. */
export interface BlockOptions {
  /** An index of the table, whose block is returned. Default: a block of the rows. */
  readonly index?: string;
  /** The name of the block: a `child` of another block. Default: the root. */
  readonly name?: string;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** Progress of `db.objects()`. */
export interface ObjectsProgress {
  /** Number of objects listed so far. */
  readonly objects: number;
}

/** Options of `db.objects()`. */
export interface ObjectsOptions {
  /** Called after every page of the listing: a thousand objects. */
  readonly onProgress?: (progress: ObjectsProgress) => void;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

const maxCommits = 1000;

export const logOptions: OptionTable<LogOptions> = new OptionTable({
  limit: kinds.whole(1, maxCommits),
  before: kinds.whole(1),
  signal: kinds.signal,
});

export const blockOptions: OptionTable<BlockOptions> = new OptionTable({
  index: kinds.named,
  name: kinds.named,
  signal: kinds.signal,
});

export const objectsOptions: OptionTable<ObjectsOptions> = new OptionTable({
  onProgress: kinds.callback,
  signal: kinds.signal,
});
