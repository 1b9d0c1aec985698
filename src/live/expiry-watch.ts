/**
 * Tells the watched queries of a table when rows of it expire, which no commit does.
 *
 * Invariant: the queries have been told of all rows that had expired at {@link ExpiryWatch.#coveredMs}; the next one expires at `#dueMs`
 * or later.
 */
import type { Timer } from '../base/env.ts';
import { isNull, readField } from '../format/row-decode.ts';
import { RowsByExpiry } from '../query/rows-by-expiry.ts';
import type { KeyValue, TableShape } from '../schema/table-shape.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import type { ChangedRow } from './changed-rows.ts';
import type { LiveSource } from './recording-host.ts';

/** The least time from one look to the next, in milliseconds, and how many times longer than a look it is. */
const restMs = 100;
const restShare = 10;
/** The longest time that a timer waits: the clock may be set forward meanwhile. */
const maxWaitMs = 60_000;
/** The most keys of expired rows that queries are told of one by one. */
const maxKeys = 1000;

export interface ExpiryWatchOptions {
  readonly source: LiveSource;
  readonly table: string;
  /** How long a look rests after a failure, in milliseconds. */
  readonly intervalMs: number;
  /** Rows have expired at a time: those with these keys; undefined: others than were known. */
  readonly expired: (nowMs: number, keys: readonly Uint8Array[] | undefined) => void;
}

export class ExpiryWatch {
  readonly #options: ExpiryWatchOptions;
  #coveredMs: number;
  /** By the wall clock. */
  #dueMs = Number.NEGATIVE_INFINITY;
  /** No look begins before this time of the monotonic clock. */
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #isLooking = false;
  #hasEnded = false;

  constructor(options: ExpiryWatchOptions) {
    this.#options = options;
    this.#coveredMs = options.source.environment.now();
    this.#arm();
  }

  end(): void {
    this.#hasEnded = true;
    this.#timer?.cancel();
  }

  /** Takes the rows of a commit into account; undefined: rows that are not known. */
  note(shape: TableShape, rows: readonly ChangedRow[] | undefined): void {
    if (rows === undefined) return this.noteAny();
    let dueMs = Number.POSITIVE_INFINITY;
    for (const row of rows) dueMs = Math.min(dueMs, expiryOf(shape, row));
    return this.#lower(dueMs);
  }

  /** Takes into account that any rows may have changed. */
  noteAny(): void {
    this.#lower(Number.NEGATIVE_INFINITY);
  }

  #lower(dueMs: number): void {
    if (dueMs >= this.#dueMs) return;
    this.#dueMs = dueMs;
    this.#arm();
  }

  /** Sets the timer for the next look. */
  #arm(): void {
    if (this.#hasEnded || this.#isLooking) return;
    this.#timer?.cancel();
    const { environment } = this.#options.source;
    const untilDueMs = Math.min(this.#dueMs - environment.now(), maxWaitMs);
    const delayMs = Math.max(1, untilDueMs, this.#restsUntilMs - environment.monotonicMs());
    this.#timer = environment.setTimer(() => this.#ring(), delayMs, { background: true });
  }

  #ring(): void {
    const nowMs = this.#options.source.environment.now();
    if (nowMs < this.#coveredMs) {
      // The clock was set back: rows have not expired yet that had before.
      this.#coveredMs = nowMs;
      this.#dueMs = Number.NEGATIVE_INFINITY;
      this.#options.expired(Number.POSITIVE_INFINITY, undefined);
    }
    if (this.#dueMs > nowMs) this.#arm();
    else void this.#look(nowMs);
  }

  async #look(nowMs: number): Promise<void> {
    const { source, table, expired, intervalMs } = this.#options;
    const { environment, engine, bridge, prices, databaseId } = source;
    const startedMs = environment.monotonicMs();
    let leastMs = restMs;
    this.#isLooking = true;
    // A commit that comes meanwhile may set an earlier time.
    this.#dueMs = Number.POSITIVE_INFINITY;
    try {
      const rows = new RowsByExpiry({
        environment,
        prices,
        databaseId,
        state: () => bridge.stateOf(engine.view, table),
        viewMovedOn: (state) => source.viewMovedOn(state),
      });
      const keys = await rows.keys({ afterMs: this.#coveredMs, untilMs: nowMs, limit: maxKeys + 1 });
      const nextMs = await rows.nextMs(nowMs);
      if (this.#hasEnded) return;
      this.#coveredMs = nowMs;
      this.#dueMs = Math.min(this.#dueMs, nextMs);
      if (keys.length > 0) expired(nowMs, keys.length > maxKeys ? undefined : keysIn(source.shapeOf(table), keys));
    } catch (error) {
      if (this.#hasEnded) return;
      engine.failures.report('Watching queries', error);
      this.#dueMs = Number.NEGATIVE_INFINITY;
      leastMs = intervalMs;
    } finally {
      this.#isLooking = false;
      const tookMs = environment.monotonicMs() - startedMs;
      this.#restsUntilMs = startedMs + Math.max(leastMs, restShare * tookMs);
      this.#arm();
    }
  }
}

/** Returns the bytes of primary keys; undefined if the table is not registered any more, so that they mean nothing here. */
function keysIn(shape: TableShape | undefined, keys: readonly unknown[]): Uint8Array[] | undefined {
  return shape && keys.map((key) => shape.keyBytes(key as KeyValue));
}

/** Returns the time at which a row of a commit expires; infinite if it does not, or was deleted. */
function expiryOf({ expiry }: TableShape, { node, at }: ChangedRow): number {
  const base = node.rowBase(at);
  if (expiry === undefined || isDeleted(node, at) || isNull(node, base, expiry.field)) return Number.POSITIVE_INFINITY;
  return Number(readField(node, base, expiry.field)) + expiry.afterMs;
}
