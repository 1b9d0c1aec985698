/**
 * Makes a load resumable, by a record that names the runs that are stored, and a pin that keeps them.
 *
 * Invariants:
 * - The record changes by commits, each validated on the state that it follows. So of two calls that work on a load, the one that took
 *   it over last goes on, and the other one ends with the next commit that it tries.
 * - The pin is in Block 0 before the record names it, and before a run is staged. It keeps the log, and so the runs, from every gc. It is
 *   a short one until there is something to record, so that a process that is killed before leaves nothing for long.
 * - A run that the record names, or may name, is deleted by the call that has removed the record, and by no other.
 * - Only the commit of the rows is one whose outcome a caller may have to ask for: if that of a record is unknown, no rows were committed.
 * - The commit that adds the rows removes the record.
 * - A clock decides only when a load is forgotten: the record counts for as long as its pin is in Block 0.
 */
import { CommitOutcomeUnknownError, LoadResumeError, StorageError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import type { Logger } from '../base/logger.ts';
import { defined } from '../base/options.ts';
import type { FlushContext } from '../batch/flush.ts';
import { Operation, TableOperations } from '../batch/table-operations.ts';
import {
  findLoad,
  loadRunsShape,
  loadsShape,
  objectsOf,
  runsOfLoad,
  schemaOfLoad,
} from '../catalog/unfinished-loads.ts';
import type { StoredLoad, StoredLoadRun } from '../catalog/unfinished-loads.ts';
import type { CommitMember } from '../format/commit.ts';
import { commitName } from '../format/object-names.ts';
import { canonicalRows } from '../format/stored-schema.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';
import type { SourcePlace } from './row-source.ts';
import type { StagedPart, Staging } from './staged-trees.ts';
import { removalOf, systemChanges } from './system-changes.ts';
import { readView } from './unfinished.ts';

/** An unfinished load is kept for so long after somebody has worked on it, in milliseconds. */
export const unfinishedMs: number = 7 * 86_400_000;
/** The pin is renewed after so many milliseconds of work. */
const renewMs = 86_400_000;

/** A pinned state, and the log from there on. The pin is short, and is renewed until it is released or let go. */
export interface HeldLog {
  readonly pin: { readonly id: string };
  release(): Promise<void>;
  /** Renews the pin no more, and leaves it. */
  letGo(): Promise<void>;
}

export interface ResumptionOptions {
  readonly context: FlushContext;
  readonly shape: TableShape;
  readonly name: string;
  /** Names the call in errors. */
  readonly callName: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly staging: Staging;
}

/** A run of sorted rows, its first and last key, and the place in the source behind it. */
export interface LoadedRun {
  readonly part: StagedPart;
  readonly firstKey: Uint8Array;
  readonly lastKey: Uint8Array;
  readonly end: SourcePlace;
}

/** The record has another worker than the one that was read. */
class TakenMeanwhile extends Error {}

/** The record may have changed or not. No rows were committed, so for the caller this is no commit whose outcome is unknown. */
class RecordInDoubt extends StorageError {}

export class Resumption {
  readonly #options: ResumptionOptions;
  /** The random name of this call. */
  readonly #worker: string;
  /** The worker that the record must have now: another call's before this one takes the load over; undefined for no record. */
  #expected: string | undefined;
  #pin: string | undefined;
  /** The pin, while there is no record that names it. */
  #held: HeldLog | undefined;
  #renewedMs = 0;
  #startedAt: Date | undefined;
  /** Whether the record may name the pin, so that it must stay. */
  #isPinKept = false;
  #runs = 0;

  constructor(options: ResumptionOptions) {
    this.#options = options;
    this.#worker = newId(options.context.environment, 16);
  }

  /** Whether the load has a record of this call. */
  get isRecorded(): boolean {
    return this.#expected === this.#worker;
  }

  get isPinned(): boolean {
    return this.#pin !== undefined;
  }

  /** Takes the load over from an earlier call, on a view that is new, and returns the runs that it has stored. Rejects with `LoadResumeError`. */
  async begin(): Promise<LoadedRun[]> {
    const { context, name, signal, logger } = this.#options;
    const { engine } = context;
    for (;;) {
      this.#pin = undefined;
      this.#isPinKept = false;
      const found = await readView(engine, signal, (view) => findLoad(view, name));
      this.#expected = found?.worker;
      if (found === undefined) return [];
      this.#refuseOther(found);
      this.#noteRenewal();
      const isKept = await engine.pins.renew(found.pin, unfinishedMs, signal);
      if (!isKept)
        logger.warn(
          `The load '${name}' begins again with its first row: nobody has worked on it for a week, so that its rows are gone`,
        );
      try {
        if (isKept) return await this.#take(found);
        await this.#remove();
        return [];
      } catch (error) {
        // Another call takes it over at the same time: the last one goes on.
        if (!(error instanceof TakenMeanwhile)) throw error;
        await engine.refresh(signal);
      }
    }
  }

  async #take(found: StoredLoad): Promise<LoadedRun[]> {
    const { name, context, signal } = this.#options;
    this.#isPinKept = true;
    this.#pin = found.pin;
    this.#startedAt = found.startedAt;
    await this.#commit(async () => this.#withHeader([]));
    this.#expected = this.#worker;
    const runs = await readView(context.engine, signal, (view) => runsOfLoad(view, name));
    this.#runs = runs.length === 0 ? 0 : (runs.at(-1) as StoredLoadRun).run + 1;
    return runs.map((run) => this.#opened(run));
  }

  #opened(run: StoredLoadRun): LoadedRun {
    const { staging, shape } = this.#options;
    const { firstKey, lastKey, sourceRows: rows, sourceKeys: keys, sourceKey } = run;
    const objects = objectsOf(run.objects) as readonly string[];
    const root = {
      birth: objects.length - 1,
      id: run.rootOffset.toString(16).padStart(16, '0'),
      count: run.count,
      sizeBytes: run.rootBytes,
      level: run.level,
    };
    const part = staging.open(shape.changeShape, objects, root);
    return { part, firstKey, lastKey, end: { rows, keys, lastKey: sourceKey } };
  }

  /** Throws `LoadResumeError` if the record is of a load of other rows. */
  #refuseOther({ table, schema }: StoredLoad): void {
    const { name, shape, callName } = this.#options;
    const give = `Nothing was changed: choose another name, or give that load up with db.discardLoad('${name}').`;
    if (table !== shape.name) {
      const message = `${callName} cannot resume the load '${name}' into table '${shape.name}': it is one into table '${table}'. ${give}`;
      throw new LoadResumeError(name, shape.name, 'table', message);
    }
    const stored = schemaOfLoad(schema);
    if (stored !== undefined && canonicalRows(stored) === canonicalRows(shape.schema)) return;
    const message =
      `${callName} cannot resume the load '${name}' into table '${table}': its rows are stored in version ${stored?.version} of the ` +
      `table, with other fields than version ${shape.schema.version}, which is registered here. ${give}`;
    throw new LoadResumeError(name, table, 'schema', message);
  }

  /** Takes a pin, which keeps what is staged from now on from gc. Until there is a record, the end of this process ends it. */
  hold(held: HeldLog): void {
    this.#held = held;
    this.#pin = held.pin.id;
  }

  #noteRenewal(): void {
    this.#renewedMs = this.#options.context.environment.monotonicMs();
  }

  /** Ends the pin, unless an unfinished load needs it. */
  async release(): Promise<void> {
    if (this.#pin === undefined || this.#isPinKept) return;
    if (this.#held === undefined) await this.#options.context.engine.pins.release(this.#pin);
    else await this.#held.release();
  }

  /** Records runs, so that a later call goes on behind them. Rejects with `LoadResumeError` if another call has taken the load over. */
  async record(runs: readonly LoadedRun[]): Promise<void> {
    if (runs.length === 0) return;
    const { staging, context } = this.#options;
    if (this.#held !== undefined || context.environment.monotonicMs() - this.#renewedMs >= renewMs) await this.#renew();
    const wasKept = this.#isPinKept;
    const parts = runs.map(({ part }) => part);
    // From the put on the record may name them, also if this call ends before it is known.
    this.#isPinKept = true;
    staging.keep(parts);
    try {
      await this.#commit(async () => {
        const rows = new TableOperations(loadRunsShape, context.environment);
        for (const [i, run] of runs.entries()) rows.addDocument(Operation.insert, this.#rowOf(run, this.#runs + i));
        return this.isRecorded ? [rows] : this.#withHeader([rows]);
      });
    } catch (error) {
      if (!(error instanceof RecordInDoubt)) {
        this.#isPinKept = wasKept;
        staging.letGo(parts);
      }
      throw error instanceof TakenMeanwhile ? this.taken() : error;
    }
    this.#expected = this.#worker;
    this.#runs += runs.length;
  }

  /** Keeps the pin for as long as an unfinished load is kept. */
  async #renew(): Promise<void> {
    const { context, signal } = this.#options;
    await this.#held?.letGo();
    this.#held = undefined;
    this.#noteRenewal();
    // If it is gone, so may be the runs. Then reading one of them says so.
    await context.engine.pins.renew(this.#pin as string, unfinishedMs, signal);
  }

  #rowOf({ part, firstKey, lastKey, end }: LoadedRun, run: number): object {
    const { tree, staged, root } = part;
    return {
      load: this.#options.name,
      run,
      sourceRows: end.rows,
      sourceKeys: end.keys,
      sourceKey: end.lastKey,
      firstKey,
      lastKey,
      objects: JSON.stringify(staged.runs),
      rootOffset: Number.parseInt(root?.id ?? '0', 16),
      rootBytes: root?.sizeBytes,
      level: tree.ref?.level,
      count: tree.count,
    };
  }

  /** Adds the row of the load, with this call as its worker. */
  #withHeader(operations: readonly TableOperations[]): TableOperations[] {
    const { name, shape, context } = this.#options;
    const takenAt = new Date(context.environment.now());
    this.#startedAt ??= takenAt;
    const header = new TableOperations(loadsShape, context.environment);
    header.addDocument(Operation.upsert, {
      name,
      table: shape.name,
      schema: JSON.stringify(shape.schema),
      worker: this.#worker,
      nodeId: context.engine.node.id,
      startedAt: this.#startedAt,
      takenAt,
      pin: this.#pin,
    });
    return [header, ...operations];
  }

  /** Removes the record of a load whose runs are gone. */
  async #remove(): Promise<void> {
    const { context, name } = this.#options;
    await this.#commit((view) => removalOf(context, view, name));
    this.#expected = undefined;
  }

  /**
   * Commits changes of the record. Rejects with {@link TakenMeanwhile} if it is not as this call expects it, and with
   * {@link RecordInDoubt} if it may have changed.
   */
  async #commit(operations: (view: View) => Promise<TableOperations[]>): Promise<void> {
    const { context, signal, callName } = this.#options;
    const { engine } = context;
    const prepare = async (view: View): Promise<CommitMember> => {
      if (!(await this.#isAsExpected(view))) throw new TakenMeanwhile('The record of the load has changed');
      return systemChanges(context, view, await operations(view));
    };
    try {
      await engine.withDeadline(callName, signal, ({ signal: inner }) =>
        engine.append({ signal: inner, sizeBytes: 2048, prepare }),
      );
    } catch (error) {
      throw error instanceof CommitOutcomeUnknownError ? this.#inDoubt(error) : error;
    }
  }

  #inDoubt(error: CommitOutcomeUnknownError): RecordInDoubt {
    const { name, shape, callName } = this.#options;
    const reason = error.cause instanceof StorageError ? error.cause.reason : undefined;
    const message =
      `${callName} has ended for the load '${name}' into table '${shape.name}': the store did not tell whether it has recorded how far the ` +
      'load has come. No rows were committed: call it again with this name, and it goes on behind the rows that are recorded.';
    return new RecordInDoubt(commitName(error.slot), 'unknown', message, { cause: error, ...defined({ reason }) });
  }

  async #isAsExpected(view: View): Promise<boolean> {
    return (await findLoad(view, this.#options.name))?.worker === this.#expected;
  }

  /** Rejects with `LoadResumeError` if another call has the load: its rows would be refused as if they were others. */
  async check(view: View): Promise<void> {
    if (!(await this.#isAsExpected(view))) throw this.taken();
  }

  /** The changes by which the commit of the rows removes the record. Rejects with `LoadResumeError` if another call has it. */
  async ending(view: View): Promise<CommitMember> {
    const { context, name } = this.#options;
    await this.check(view);
    if (!this.isRecorded) return { changes: [] };
    return systemChanges(context, view, await removalOf(context, view, name));
  }

  /** Notes that the rows are committed: nothing needs the pin and the runs any more. */
  ended(): void {
    this.#isPinKept = false;
    this.#options.staging.letGo();
  }

  /** Notes that a stored run is missing, and returns the error: a later call begins with the first row, unless another call has the load now. */
  async lost(error: Error): Promise<Error> {
    const { context, signal } = this.#options;
    await context.engine.refresh(signal);
    if (!(await readView(context.engine, signal, (view) => this.#isAsExpected(view)))) return this.taken();
    if (this.isRecorded) {
      await this.#remove();
      this.ended();
    }
    return error;
  }

  taken(): LoadResumeError {
    const { name, shape, callName } = this.#options;
    const message =
      `${callName} has ended for the load '${name}' into table '${shape.name}': another call has taken it over or given it up meanwhile. ` +
      'This call has committed no rows. Make sure that one process at a time works on a load.';
    return new LoadResumeError(name, shape.name, 'taken', message);
  }
}
