/**
 * One loop over the results of a watched query. It keeps the last result, decides which commits can change it, and runs the query again
 * when its caller waits for the next result.
 *
 * Invariants:
 * - Each result is that of one state of the database, and of a later state than the result before.
 * - A commit is passed over only if it leaves the result as it is.
 */
import { abortedError, untilAborted } from '../base/abort.ts';
import { toLatin1 } from '../base/bytes.ts';
import { NotStartedError } from '../base/errors.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { LiveCursor } from '../query/live-results.ts';
import type { QueryRead, WatchedQuery } from '../query/planner/query-host.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import { isInRange } from '../tree/cursor.ts';
import type { TableState } from '../view/table-state.ts';
import type { ChangedRow, ChangedRows } from './changed-rows.ts';
import { HeldRows } from './held-rows.ts';
import { RecordingHost } from './recording-host.ts';
import type { LiveSource } from './recording-host.ts';
import { isSameValue } from './same-value.ts';
import type { PlacedRows, Row } from './placed-rows.ts';
import { cut, ShownRows } from './shown-rows.ts';

/** The watched queries of an instance, as one of them sees it. */
export interface LiveOwner {
  /** Adds a query, unless it is there. Returns the instance for its runs; undefined while that is stopped. */
  add(query: LiveQuery): LiveSource | undefined;
  remove(query: LiveQuery): void;
  /** Runs a query when it is its turn. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /** Waits after a failure that time may mend, unless the instance was stopped. Throws every other one. */
  afterFailure(failure: unknown, source: LiveSource, signal: AbortSignal | undefined): Promise<void>;
}

/** A read of the last run: the rows that can affect its result. */
interface Read extends QueryRead {
  readonly keyTexts: ReadonlySet<string> | undefined;
}

/** The reads of the last run. */
interface Known {
  readonly shape: TableShape;
  readonly reads: readonly Read[];
  /** The state of the table that it has read, if that was one. */
  readonly state: TableState | undefined;
  /** The position of the state. */
  readonly tail: number;
  /** The time at which rows that had expired were left out. */
  readonly expiryMs: number;
  /** Whether rows of commits can be put into the result as they are. */
  readonly isInPlace: boolean;
}

function readOf({ keys, range, matches }: QueryRead): Read {
  return { keys, range, matches, keyTexts: keys && new Set(keys.map(toLatin1)) };
}

function isWithin(key: Uint8Array, text: string, { keyTexts, range }: Read): boolean {
  return keyTexts === undefined ? range === undefined || isInRange(key, range) : keyTexts.has(text);
}

/** More changed keys than this are not remembered one by one. */
const maxTouched = 1000;

/** The keys of rows that commits changed; undefined: any row may be another one. */
type Touched = Set<string> | undefined;

/** A run that is under way. */
interface Run {
  /** The position of the state that it reads; undefined before it has one. */
  tail: number | undefined;
  /** The time at which it leaves out rows that have expired; undefined before it reads a state. */
  expiryMs: number | undefined;
  /** Whether a commit came that it may not show. */
  missed: boolean;
  /** Rows that may differ from those of the run before. */
  touched: Touched;
}

/** The effect of a changed row on a result: none, the row is shown as it is now, or it is not shown any more. */
type Effect = 'none' | 'shown' | 'gone';

export class LiveQuery implements LiveCursor<object> {
  readonly query: WatchedQuery;
  readonly #all: LiveOwner;
  /** The last run; undefined if its result is not that of the present state, for all that is known. */
  #known: Known | undefined;
  #running: Run | undefined;
  /** Rows that may differ from those of the last run. */
  #touched: Touched;
  /** The version of the table that the last run has read. */
  #version: number | undefined;
  #shown: ShownRows | undefined;
  /** The rows of the last result as commits have changed them since, in place; undefined if none has. */
  #placed: PlacedRows | undefined;
  /** The last commit that has changed them since the last result. */
  #placedAt: number | undefined;
  readonly #held = new HeldRows();
  #value: { readonly value: unknown } | undefined;
  #wake: (() => void) | undefined;
  /** Whether nothing but time has passed since the last run. */
  #hasOnlyAged = false;
  #isOver = false;
  /** Calls are answered in turn, whether or not the caller waits for them. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #ending = (): void => this.#wake?.();

  constructor(query: WatchedQuery, all: LiveOwner) {
    this.query = query;
    this.#all = all;
    query.options.signal?.addEventListener('abort', this.#ending, { once: true });
  }

  next(): Promise<object | undefined> {
    const answer = this.#last.then(() => this.#next());
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  end(): void {
    this.#isOver = true;
    this.#forget();
    this.#wake?.();
  }

  #forget(): void {
    this.#all.remove(this);
    this.query.options.signal?.removeEventListener('abort', this.#ending);
    this.#known = undefined;
    this.#shown = undefined;
    this.#placed = undefined;
    this.#placedAt = undefined;
    this.#held.release();
  }

  async #next(): Promise<object | undefined> {
    const { callName, options } = this.query;
    const { signal } = options;
    try {
      while (!this.#isOver) {
        if (signal?.aborted === true) throw abortedError(callName, signal.reason);
        const source = this.#all.add(this);
        const placed = this.#takePlaced();
        if (placed !== undefined) return placed;
        const isDue = this.#known === undefined && source !== undefined;
        const result = isDue ? await this.#run(source) : await this.#rest();
        if (result !== undefined) return result;
      }
    } catch (error) {
      this.#isOver = true;
      this.#forget();
      throw error;
    }
    return undefined;
  }

  /** Waits until the result may have changed. */
  #rest(): Promise<undefined> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve(undefined);
      };
      if (this.#isOver) this.#wake();
    });
  }

  /** The present result has to be found out. */
  touch(): void {
    this.#known = undefined;
    this.#hasOnlyAged = false;
    this.#touched = undefined;
    if (this.#running === undefined) return;
    this.#running.missed = true;
    this.#running.touched = undefined;
  }

  /** Lets the caller go on that waits for another result, if there may be one. */
  wakeIfTouched(): void {
    if (this.#known === undefined || this.#placedAt !== undefined) this.#wake?.();
  }

  /** Returns the result with what commits have changed in place, if that is all that has changed. */
  #takePlaced(): object | undefined {
    const position = this.#placedAt;
    if (this.#known === undefined || position === undefined) return undefined;
    this.#placedAt = undefined;
    this.#touched = new Set();
    const differing = this.#placed?.take();
    if (differing !== undefined) this.#held.holdAgain(differing.rows);
    return differing && { ...differing, position };
  }

  /** Runs the query. Resolves to undefined if its result is the same as before. */
  async #run(source: LiveSource): Promise<object | undefined> {
    const { query } = this;
    const { signal } = query.options;
    const running: Run = { tail: undefined, expiryMs: undefined, missed: false, touched: this.#touched };
    this.#running = running;
    this.#touched = new Set();
    const isNewest = this.#hasOnlyAged;
    this.#hasOnlyAged = false;
    try {
      const run = new RecordingHost(source, isNewest, ({ tail, expiryMs }) =>
        Object.assign(running, { tail, expiryMs }),
      );
      const work = this.#all.inTurn(() => query.run(run, this.#fields(source)));
      const result = await untilAborted(work, signal);
      if (this.#isOver) return undefined;
      if (query.kind !== 'value') this.#held.hold(source.engine.memory, result as readonly Row[]);
      const { reads, state, shape, tail, expiryMs } = run;
      if (shape !== undefined && tail !== undefined && !running.missed) {
        const isInPlace = query.kind === 'rows' && run.isActiveVersion && shape.expiry === undefined;
        this.#known = { shape, reads: reads.map(readOf), state, tail, expiryMs, isInPlace };
      }
      // A row of another version may have other values though no commit changed it.
      if (this.#version !== shape?.version) running.touched = undefined;
      this.#version = shape?.version;
      return this.#differing(result, run, running.touched);
    } catch (error) {
      this.#touched = undefined;
      if (signal?.aborted === true) throw abortedError(query.callName, signal.reason);
      const isStopped = error instanceof NotStartedError || this.#isOver;
      if (!isStopped) await this.#all.afterFailure(error, source, signal);
      return undefined;
    } finally {
      this.#running = undefined;
    }
  }

  /** Returns the fields that rows are read with: those that the caller gets, and those that identify rows and put them in order. */
  #fields(source: LiveSource): string[] | undefined {
    const { table, asked } = this.query;
    if (asked.fields === undefined) return undefined;
    const keyFields = source.shapeOf(table)?.keyFields ?? [];
    return [...new Set([...asked.fields, ...[...keyFields, ...asked.orders].map(({ name }) => name)])];
  }

  #differing(result: unknown, { shape, tail: position = 0 }: RecordingHost, touched: Touched): object | undefined {
    const { query } = this;
    if (query.kind === 'value') {
      if (this.#value !== undefined && isSameValue(this.#value.value, result)) return undefined;
      this.#value = { value: result };
      return { value: result, position };
    }
    const rows = result as readonly Row[];
    const shown =
      query.kind === 'groups' || shape === undefined
        ? ShownRows.ofGroups(rows, query.groupedBy)
        : ShownRows.ofRows(rows, shape, query.asked);
    const before = this.#placed === undefined ? this.#shown : ShownRows.ofKeyed(this.#placed.told);
    const differing = shown.since(before ?? ShownRows.none, query.kind === 'rows' ? touched : undefined);
    this.#shown = differing.shown;
    this.#placed = undefined;
    this.#placedAt = undefined;
    if (differing.isSame && before !== undefined) return undefined;
    const { added, changed, removed } = differing;
    return { rows: differing.rows, added, changed, removed, position };
  }

  /** Takes a flush of a commit into account. */
  apply(slot: number, changed: ChangedRows): void {
    const running = this.#running;
    const known = this.#known;
    if (known !== undefined && slot <= known.tail) return;
    const version = known?.shape.version ?? this.#version;
    const rows = version === undefined ? undefined : changed.of(version);
    if (known !== undefined && rows !== undefined && this.#leaves(known, slot, rows)) return;
    this.#known = undefined;
    this.#hasOnlyAged = false;
    this.#touched = withKeys(this.#touched, rows);
    if (running === undefined) return;
    if (running.tail === undefined || slot > running.tail) running.missed = true;
    running.touched = withKeys(running.touched, rows);
  }

  /** Takes into account that rows have expired at a time. `keys`: theirs; undefined if they are too many to look at each of them. */
  expire(nowMs: number, keys: readonly Uint8Array[] | undefined): void {
    const running = this.#running;
    const known = this.#known;
    if (known !== undefined) {
      if (known.expiryMs >= nowMs) return;
      if (keys?.some((key) => this.#shows(known, key)) === false) return;
      this.#known = undefined;
      this.#hasOnlyAged = true;
    }
    if (running?.expiryMs !== undefined && running.expiryMs < nowMs) running.missed = true;
  }

  /** Whether a row that has just expired may be part of the result. */
  #shows({ reads, state }: Known, key: Uint8Array): boolean {
    const text = toLatin1(key);
    if (this.#wholeRows !== undefined) return this.#wholeRows.has(text);
    const suspects = reads.filter((read) => isWithin(key, text, read));
    return suspects.length > 0 && matchedBefore(suspects, state, key);
  }

  /** The rows of the last result, if all rows that it depends on are among them. */
  get #wholeRows(): Pick<ShownRows, 'has'> | undefined {
    const { kind, asked } = this.query;
    return kind === 'rows' && asked.offset === 0 ? (this.#placed ?? this.#shown) : undefined;
  }

  /** Whether the result is known after rows were changed: they do not change it, or change it in place. */
  #leaves(known: Known, slot: number, rows: readonly ChangedRow[]): boolean {
    const affecting: (readonly [ChangedRow, Effect])[] = [];
    for (const row of rows) {
      const effect = this.#effectOf(known, row);
      if (effect === undefined || (effect !== 'none' && !known.isInPlace)) return false;
      if (effect !== 'none') affecting.push([row, effect]);
    }
    if (affecting.length === 0) return true;
    const { asked } = this.query;
    // The rows of commits have no properties for values inside of JSON.
    if (asked.fields?.some((name) => known.shape.layout.field(name) === undefined) === true) return false;
    this.#placed ??= this.#shown?.placed(asked);
    const placed = this.#placed;
    if (placed === undefined) return false;
    // Rows that follow may fit nowhere: the next run finds the differences from the result before.
    for (const [row, effect] of affecting) {
      const now = effect === 'gone' ? undefined : cut(row.row(known.shape), asked.fields);
      if (!placed.place(row.text, now)) return false;
    }
    this.#placedAt = slot;
    this.#touched = withKeys(this.#touched, rows);
    return true;
  }

  /** Returns what a changed row does to the result; undefined if only a run tells. */
  #effectOf({ reads, state }: Known, { key, text, node, at }: ChangedRow): Effect | undefined {
    // Every row counts for the scores of others.
    const { search, orders } = this.query.asked;
    if (search !== undefined && orders.length === 0) return undefined;
    const shown = this.#wholeRows;
    const isShown = shown?.has(text) === true;
    const suspects = reads.filter((read) => isWithin(key, text, read));
    if (suspects.length === 0) return isShown ? 'gone' : 'none';
    if (!isDeleted(node, at)) {
      const base = node.rowBase(at);
      const isMatch = matchOf(suspects, node, base);
      if (isMatch === undefined) return undefined;
      if (isMatch && shown === undefined) return undefined;
      if (isMatch) return isShown || !this.#isBeyond({ key, text, node }, base) ? 'shown' : 'none';
    }
    // It does not match any more, or has not matched before. All rows that do, up to the last one, are shown.
    if (shown === undefined) return matchedBefore(suspects, state, key) ? undefined : 'none';
    return isShown ? 'gone' : 'none';
  }

  #isBeyond({ key, text, node }: Pick<ChangedRow, 'key' | 'text' | 'node'>, base: number): boolean {
    if (this.#placed !== undefined) return this.#placed.isBeyond(text, node, base);
    return this.#shown?.isBeyond(key, node, base) === true;
  }
}

/** Whether a row of a state matches one of several reads, for all that is in memory. */
function matchedBefore(reads: readonly Read[], state: TableState | undefined, key: Uint8Array): boolean {
  const before = state?.lookupCached(key, key.length);
  return before === undefined || (before !== null && matchOf(reads, before.source, before.base) !== false);
}

function withKeys(touched: Touched, rows: readonly ChangedRow[] | undefined): Touched {
  if (touched === undefined || rows === undefined || touched.size + rows.length > maxTouched) return undefined;
  for (const { text } of rows) touched.add(text);
  return touched;
}

/** Whether a row matches one of several reads; undefined if a registered function throws: the run gives the error. */
function matchOf(reads: readonly Read[], source: RowSource, base: number): boolean | undefined {
  try {
    return reads.some(({ matches }) => matches?.(source, base) ?? true);
  } catch {
    return undefined;
  }
}
