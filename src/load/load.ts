/**
 * A load, from the rows of its source to the answer. All rows are one member of one commit, so they appear at once, at one place of
 * the log, and conflict with other commits as the rows of a batch do. The steps, in order:
 * 1. {@link RowReader} checks and encodes the rows, one buffer at a time, and a {@link RowStager} sorts them. Buffers that follow each
 *    other in the order of the keys become one sorted run, which is staged while it is read. Several runs are merged into one.
 * 2. {@link LoadCheck} checks the rows against the newest state, and then against the changes since, until there are few.
 * 3. The commit is appended to the log. Its check looks at the changes since step 2 only, so a lost slot costs little.
 *
 * Invariants:
 * - A commit was validated on exactly the state that it follows: the view whose tail is the slot before it.
 * - The commit names staged runs whose slot is its own or a later one, so gc keeps them for as long as the commit may be read.
 * - Staged runs are deleted only if no commit names them and no put of such a commit is open.
 * - A load of several buffers pins a state with its log, so that gc deletes none of its runs while it works. If it can be resumed, the pin
 *   and the runs that are recorded stay until it is finished ({@link Resumption}).
 */
import { compareBytes, encodeUtf8 } from '../base/bytes.ts';
import { anySignal, namingAborts } from '../base/abort.ts';
import {
  AbortedError,
  CommitOutcomeUnknownError,
  ContentionError,
  InvalidOptionError,
  MigrationActiveError,
  SnapshotExpiredError,
} from '../base/errors.ts';
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { kinds, OptionTable } from '../base/options.ts';
import { Pacer } from '../base/pacer.ts';
import type { FlushContext } from '../batch/flush.ts';
import { refuseRetired } from '../catalog/retired-versions.ts';
import { lastSlotOf } from '../format/commit.ts';
import type { CommitMember, TableChange } from '../format/commit.ts';
import { stagedName } from '../format/object-names.ts';
import type { BridgedTable } from '../migration/bridge.ts';
import { isSameShape } from '../schema/same-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { View } from '../view/view.ts';
import { LoadCheck } from './load-check.ts';
import type { LoadedRows } from './load-check.ts';
import { LoadThread } from './load-thread.ts';
import { Resumption } from './resumption.ts';
import type { HeldLog, LoadedRun } from './resumption.ts';
import type { RunLimits } from './row-run.ts';
import { RowReader } from './row-source.ts';
import type { SourcePlace } from './row-source.ts';
import { OwnStager, repeatedKey } from './row-stager.ts';
import type { RowStager, RunSink } from './row-stager.ts';
import { Staging } from './staged-trees.ts';
import type { StagedTree } from './staged-trees.ts';

/** Progress of a load. */
export interface LoadProgress {
  /** Rows that were read from the source so far. */
  readonly rows: number;
}

/** Options of `db.load()`. */
export interface LoadOptions {
  /** Gives the load up. If its rows had begun to be committed, the outcome is then unknown. */
  readonly signal?: AbortSignal;
  /** Called now and then while rows are read. */
  readonly onProgress?: (progress: LoadProgress) => void;
  /**
   * Names the load, so that it can be resumed: if it ends early, the next call with this name goes on behind the rows that are stored, for a
   * week. Default: a load that ends early leaves nothing.
   */
  readonly resume?: string;
  /**
   * Whether another thread sorts the rows and makes blocks of them, if they fill more than one buffer: a twenty-fourth of the memory of the
   * instance, at most 16 MiB. The rows are still read, checked and encoded by the thread of the call. Where the runtime has no threads, or
   * two loads of the instance have one, that does all the work. Default: false.
   */
  readonly thread?: boolean;
}

export const loadOptions: OptionTable<LoadOptions> = new OptionTable({
  signal: kinds.signal,
  onProgress: kinds.callback,
  resume: kinds.named,
  thread: kinds.flag,
});

/** The result of a load. */
export interface LoadReport {
  /** Rows that were loaded. */
  readonly rows: number;
}

export interface LoadInput {
  readonly shape: TableShape;
  /** The rows: an iterable or async iterable. */
  readonly source: unknown;
  readonly options: LoadOptions;
  readonly logger: Logger;
  /** Pins a state and the log from there on, until it is released. */
  readonly pinLog: (view: View) => Promise<HeldLog>;
  /** The threads of loads of the instance. */
  readonly threads: ThreadCount;
}

/** The number of threads that the loads of an instance have at present. */
export interface ThreadCount {
  running: number;
}

/** Names the call in errors. */
export const loadCallName = 'db.load()';
/** The share of the memory for work in which rows, or entries of an index, are sorted at once; and the most bytes of it. */
const bufferShare = 1 / 12;
const maxBufferBytes = 32 * 1024 * 1024;
/** With another thread there are up to three buffers at a time, and its own memory, so that each has half of the bytes. */
const threadBufferShare = 1 / 2;
/** The share of the memory for work that blocks may take in another thread, which reads them only when all rows are staged. */
const threadBlockShare = 1 / 8;
/** Loads of an instance that have a thread of their own at the same time. */
const maxThreads = 2;
/** Most bytes of the name of a load. */
const maxNameBytes = 200;
/** Runs of a load that can be resumed are recorded once they have so many buffers of rows, or so many bytes. */
const recordedBuffers = 2;
const recordedBytes = 32 * 1024 * 1024;
/** They are recorded once so many milliseconds have passed, however few there are. */
const recordedMs = 30_000;
/** So many sorted runs are merged at once with any memory. */
const minMerged = 16;
/** The part of the memory that a leaf of each run may take while runs are merged. */
const mergeShare = 8;
/** Attempts at appending the commit. */
const maxAttempts = 32;
/** Attempts at pinning the log. */
const maxPinAttempts = 8;
/** If checking the changes since the last check takes longer than this, in milliseconds, it is done once more before the commit. */
const shortCheckMs = 250;

/** The check of the last changes would take too long while the log is held up: it must be made before. */
class CheckFirst extends Error {}

/** The log has passed the slots in the names of the staged runs. */
class LogPassed extends Error {}

/** All rows of a load, staged. */
interface Loaded extends LoadedRows {
  staged: StagedTree;
}

export class Load {
  readonly #context: FlushContext;
  readonly #input: LoadInput;
  readonly #signal: AbortSignal;
  readonly #pacer: Pacer;
  readonly #staging: Staging;
  readonly #bufferBytes: number;
  readonly #resumption: Resumption | undefined;
  #held: Pick<HeldLog, 'release'> | undefined;

  constructor(context: FlushContext, input: LoadInput) {
    const { environment, engine, ending } = context;
    this.#context = context;
    this.#input = input;
    this.#signal = anySignal(input.options.signal, ending);
    this.#pacer = new Pacer(environment);
    const share = input.options.thread === true ? threadBufferShare : 1;
    this.#bufferBytes = Math.floor(Math.min(maxBufferBytes, engine.memory.workBytes * bufferShare) * share);
    this.#staging = new Staging({
      ...context,
      reader: engine.context.reader,
      pacer: this.#pacer,
      logger: input.logger,
      tail: () => engine.view.tail,
      maxMerged: Math.max(minMerged, Math.floor(engine.memory.workBytes / mergeShare / engine.memory.blockBytes)),
    });
    const { shape, logger } = input;
    const { resume: name } = input.options;
    if (name === undefined) return;
    checkName(name);
    const parts = { context, shape, name, logger, signal: this.#signal, staging: this.#staging };
    this.#resumption = new Resumption({ ...parts, callName: loadCallName });
  }

  /** Resolves once all rows are durable, and this instance shows them. If it rejects, none of them were written, or the outcome is unknown. */
  async run(): Promise<LoadReport> {
    try {
      return await namingAborts(loadCallName, this.#signal, () => this.#run());
    } catch (error) {
      const isStopped = this.#context.ending.aborted && this.#input.options.signal?.aborted !== true;
      if (!isStopped || !(error instanceof AbortedError)) throw error;
      throw new AbortedError(`${loadCallName} was given up because db.stop() was called`, { cause: error });
    }
  }

  async #run(): Promise<LoadReport> {
    let reader: RowReader | undefined;
    try {
      if (this.#resumption === undefined) reader = this.#readerFrom(undefined);
      await this.#refresh();
      await this.#refuse(this.#context.engine.view);
      const stored = await this.#resumed();
      reader ??= this.#readerFrom(stored.at(-1)?.end);
      const loaded = await this.#read(reader, stored);
      if (loaded === undefined) return { rows: 0 };
      await this.#commit(loaded);
      this.#resumption?.ended();
      await this.#staging.dropOthers([loaded.staged]);
      return { rows: loaded.tree.count };
    } catch (error) {
      reader?.close();
      const reason = isCollected(error) ? await this.#lost(error) : error;
      if (!(reason instanceof CommitOutcomeUnknownError)) await this.#staging.dropOthers();
      throw reason;
    } finally {
      // If it cannot be released now, it expires.
      await this.#held?.release().catch(() => undefined);
    }
  }

  #readerFrom(from: SourcePlace | undefined): RowReader {
    const { shape, source, options } = this.#input;
    return new RowReader(shape, source, {
      environment: this.#context.environment,
      pacer: this.#pacer,
      signal: this.#signal,
      bufferBytes: this.#bufferBytes,
      told: (rows) => options.onProgress?.({ rows }),
      validator: this.#context.validatorOf?.(shape),
      resume: options.resume === undefined ? undefined : { from, load: options.resume, maxFillMs: recordedMs },
    });
  }

  /** Returns the runs that an earlier call has stored. */
  async #resumed(): Promise<LoadedRun[]> {
    const resumption = this.#resumption;
    if (resumption === undefined) return [];
    this.#held = resumption;
    return resumption.begin();
  }

  /** Returns the error for staged rows that are gone. */
  async #lost(cause: BlockGone): Promise<unknown> {
    const error = collected(this.#input.shape.name, cause);
    // If that is not known now, the next call finds it out.
    return this.#resumption?.lost(error).catch(() => error) ?? error;
  }

  /** Keeps gc from the staged rows. Rejects if gc is faster several times in a row. */
  async #hold(): Promise<void> {
    if (this.#resumption?.isPinned === true) return;
    for (let attempt = 1; ; attempt++) {
      await this.#refresh();
      try {
        const held = await this.#input.pinLog(this.#context.engine.view);
        if (this.#resumption === undefined) this.#held = held;
        else this.#resumption.hold(held);
        return;
      } catch (error) {
        if (!(error instanceof SnapshotExpiredError) || attempt >= maxPinAttempts) throw error;
      }
    }
  }

  async #refresh(): Promise<void> {
    await this.#context.engine.refresh(this.#signal);
  }

  /** Stages all rows of the source as one sorted tree, with those that are stored. Undefined if there are none. */
  async #read(reader: RowReader, stored: readonly LoadedRun[]): Promise<Loaded | undefined> {
    const runs = new LoadedRuns(stored, this.#context.environment, this.#bufferBytes, this.#resumption);
    const rows = await reader.fill();
    if (rows !== undefined && !reader.isOver) await this.#hold();
    const stager = await this.#stager(reader);
    try {
      if (rows !== undefined) await stager.stageRuns(rows, runs);
      return await this.#merge(runs.all, stager);
    } finally {
      await stager.end();
    }
  }

  /** Returns what sorts and stages the rows of a source, whose first buffer is read. */
  async #stager(reader: RowReader): Promise<RowStager> {
    const { shape, logger, options, threads } = this.#input;
    const { environment, driver, prefix, blockSizeBytes, engine } = this.#context;
    const storesRoots = this.#resumption !== undefined;
    const parts = { shape, reader, staging: this.#staging, environment, pacer: this.#pacer, storesRoots };
    const own = new OwnStager(parts);
    if (options.thread !== true || reader.isOver || threads.running >= maxThreads) return own;
    threads.running++;
    const { workBytes, blockBytes } = engine.memory;
    const stager = await LoadThread.start({
      ...parts,
      driver,
      prefix,
      blockSizeBytes,
      signal: this.#signal,
      logger,
      callName: loadCallName,
      memoryBytes: Math.floor(workBytes * threadBlockShare),
      blockBytes,
      ended: () => void threads.running--,
    });
    return stager ?? own;
  }

  /** Merges sorted runs into one tree. Undefined if there are none. */
  async #merge(runs: readonly LoadedRun[], stager: RowStager): Promise<Loaded | undefined> {
    const [first] = runs;
    if (first === undefined) return undefined;
    let { firstKey, lastKey } = first;
    for (const run of runs) {
      if (isBelow(run.firstKey, firstKey)) firstKey = run.firstKey;
      if (isBelow(lastKey, run.lastKey)) lastKey = run.lastKey;
    }
    const parts = runs.map(({ part }) => part);
    const staged = await this.#staging.mergeBy(parts, (some) => stager.merge(some));
    return { staged, tree: staged.tree, firstKey, lastKey };
  }

  /** Checks the rows and appends their commit, until it has a slot. */
  async #commit(loaded: Loaded): Promise<void> {
    const { shape } = this.#input;
    const { name, changeShape } = shape;
    const check = new LoadCheck(loaded, {
      shape,
      staging: this.#staging,
      pacer: this.#pacer,
      environment: this.#context.environment,
      bufferBytes: this.#bufferBytes,
    });
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      this.#signal.throwIfAborted();
      try {
        await this.#checkAhead(check);
        await this.#append(loaded, check);
        return;
      } catch (error) {
        if (error instanceof LogPassed) {
          const before = loaded.staged;
          loaded.staged = await this.#staging.again(name, changeShape, before, (key) => repeatedKey(shape, key));
          check.moved(loaded.staged.tree);
          await this.#staging.drop([before]);
        } else if (error instanceof BlockGone) {
          // Either the block is of the state that was checked before, or the check began on a state that is gone.
          if (!check.forget() && !(await this.#hasMovedOn())) throw error;
        } else if (!(error instanceof CheckFirst)) throw error;
      }
    }
    throw new ContentionError(
      `${loadCallName} could not commit to table '${name}': other instances changed the table faster than the rows could be checked, ` +
        `${maxAttempts} times in a row. Nothing was written: call it again when there is less to do.`,
    );
  }

  #generation = 0;

  /** Whether a generation has come since the last check, so that a missing block was collected and is not lost. */
  async #hasMovedOn(): Promise<boolean> {
    await this.#refresh();
    return this.#context.engine.view.block0.generation > this.#generation;
  }

  /** Checks the rows against the newest state, until what remains to be checked takes little time. */
  async #checkAhead(check: LoadCheck): Promise<void> {
    const { environment, engine } = this.#context;
    for (let round = 1; ; round++) {
      await this.#refresh();
      const { view } = engine;
      this.#generation = view.block0.generation;
      const startedMs = environment.monotonicMs();
      const { state, checked } = await this.#refuse(view);
      await this.#resumption?.check(view);
      await check.against(state, checked);
      if (round >= maxAttempts || environment.monotonicMs() - startedMs <= shortCheckMs) return;
    }
  }

  /** Appends the commit to the log, in the first free slot after a state on which its rows are valid. */
  async #append({ staged: { node, staged } }: Loaded, check: LoadCheck): Promise<void> {
    const { engine } = this.#context;
    const lastSlot = lastSlotOf(staged);
    const { schema } = this.#input.shape;
    const change: TableChange = { schema, node, ...(staged.runs.length > 0 && { staged }) };
    const prepare = async (view: View): Promise<CommitMember> => {
      if (view.tail >= lastSlot) throw new LogPassed('The log has passed the names of the staged rows');
      const { state, checked } = await this.#refuse(view);
      const ending = await this.#resumption?.ending(view);
      if (!check.knows(state, checked)) throw new CheckFirst('The rows must be checked as a whole');
      try {
        await check.against(state, checked);
      } catch (error) {
        if (!(error instanceof BlockGone)) throw error;
        check.forget();
        throw new CheckFirst('A block of the state that was checked is gone');
      }
      return { changes: [change, ...(ending?.changes ?? [])] };
    };
    await engine.withDeadline(loadCallName, this.#signal, ({ signal }) =>
      // Nothing else fits into its commit.
      engine.append({ signal, sizeBytes: Number.MAX_SAFE_INTEGER, prepare }),
    );
  }

  /** Returns the table that rows are loaded into. Rejects where rows of this version must not be written alone. */
  async #refuse(view: View): Promise<BridgedTable> {
    const { shape } = this.#input;
    const { name } = shape;
    this.#context.dropped.refuseOn(view, shape);
    await refuseRetired(view, shape);
    if (view.nextVersion(name) === undefined) {
      const table = await this.#context.bridge.writableTable(view, name);
      if (table.active === undefined && isSameShape(table.state.shape, shape)) return table;
    }
    throw new MigrationActiveError(
      name,
      `${loadCallName} cannot load into table '${name}': it is being migrated to another version. Nothing was written: call it again ` +
        'when the migration has ended, or use batches.',
    );
  }
}

/** The runs of a load. If it can be resumed, they are recorded now and then. */
class LoadedRuns implements RunSink {
  readonly all: LoadedRun[];
  readonly #environment: Environment;
  readonly #resumption: Resumption | undefined;
  readonly #dueBytes: number;
  /** The runs that are not recorded yet, and their bytes. */
  #runs: LoadedRun[] = [];
  #sizeBytes = 0;
  #sinceMs: number;

  /** `stored`: the runs that an earlier call has stored. */
  constructor(
    stored: readonly LoadedRun[],
    environment: Environment,
    bufferBytes: number,
    resumption: Resumption | undefined,
  ) {
    this.all = [...stored];
    this.#environment = environment;
    this.#resumption = resumption;
    this.#dueBytes = Math.min(recordedBytes, recordedBuffers * bufferBytes);
    this.#sinceMs = environment.monotonicMs();
  }

  /** A run ends when it is due to be recorded with those before it. */
  limits(): RunLimits | undefined {
    if (this.#resumption === undefined) return undefined;
    const ms = this.#sinceMs + recordedMs - this.#environment.monotonicMs();
    return { bytes: this.#dueBytes - this.#sizeBytes, ms };
  }

  /** Adds a run. `isLast`: no other follows, so if there is a record, it gets the rest. */
  async add(run: LoadedRun, sizeBytes: number, isLast: boolean): Promise<void> {
    this.all.push(run);
    const resumption = this.#resumption;
    if (resumption === undefined) return;
    this.#runs.push(run);
    this.#sizeBytes += sizeBytes;
    const { bytes, ms } = this.limits() as RunLimits;
    const isDue = bytes <= 0 || ms <= 0;
    if (isLast ? !resumption.isRecorded : !isDue) return;
    await resumption.record(this.#runs);
    this.#runs = [];
    this.#sizeBytes = 0;
    this.#sinceMs = this.#environment.monotonicMs();
  }
}

/** Throws `InvalidOptionError` for a name that is too long for a key. */
function checkName(name: string): void {
  if (encodeUtf8(name).length <= maxNameBytes) return;
  const message = `The name of the load in option resume has more than ${maxNameBytes} bytes: choose a shorter one.`;
  throw new InvalidOptionError('resume', message);
}

function isBelow(a: Uint8Array, b: Uint8Array): boolean {
  return compareBytes(a, b) < 0;
}

/** Whether gc has deleted rows that the load had staged: the log has gone on by far more than expected, and nothing was pinned. */
function isCollected(error: unknown): error is BlockGone {
  return error instanceof BlockGone && error.key.includes(stagedName(''));
}

function collected(table: string, cause: unknown): ContentionError {
  const message =
    `${loadCallName} lost rows for table '${table}' that it had stored ahead: garbage was collected while it was held up. Nothing was ` +
    'written: call it again.';
  return new ContentionError(message, { cause });
}
