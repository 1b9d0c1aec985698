/** Sorts the rows of a load, one buffer at a time, and joins buffers that follow each other to sorted runs. */
import { compareBytes } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import type { Pacer } from '../base/pacer.ts';
import type { KeyList } from '../format/key-list.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { ChangeStream } from '../tree/write.ts';
import type { SourcePlace } from './row-source.ts';

/** Rows of one buffer: each has a key, and a place in the arena. */
export interface EncodedRows {
  readonly keys: KeyList;
  readonly arena: RowSource;
  /** Bytes that the rows take. */
  readonly sizeBytes: number;
  base(i: number): number;
}

/** One buffer of rows in the order of the source. */
export interface UnsortedRows {
  readonly rows: EncodedRows;
  /** The place in the source behind these rows. */
  readonly end: SourcePlace;
}

/** Rows in the order of their keys, which all differ. */
export interface SortedRows extends UnsortedRows {
  readonly order: Uint32Array;
}

/** Gives one buffer of rows after the other; undefined at the end. */
export type NextRows = () => Promise<SortedRows | undefined>;

/** Sorts a buffer of rows. Rejects with the error that `refused` returns for a key that two of them have. */
export async function sortRows(
  { rows, end }: UnsortedRows,
  pacer: Pacer,
  refused: (key: Uint8Array) => Error,
): Promise<SortedRows> {
  const { keys } = rows;
  const order = await keys.sorted(pacer);
  for (let i = 1; i < order.length; i++) {
    const [before, at] = [order[i - 1] as number, order[i] as number];
    if (keys.isSame(before, at)) throw refused(keys.key(at));
    if ((i & 0xfff) === 0 && pacer.due()) await pacer.pause();
  }
  return { rows, order, end };
}

/** One sorted run of rows: buffers for as long as each begins behind the last key of the one before, and the run is not large. */
class RowRun implements ChangeStream {
  readonly #nextRows: NextRows;
  readonly #isFull: (run: RowRun) => boolean;
  /** Bytes of the rows. */
  sizeBytes: number;
  #buffer: SortedRows;
  #at = 0;
  done = false;
  keyStart = 0;
  keyEnd = 0;
  base = 0;
  readonly remove = false;
  /** The buffer that the next run begins with; undefined if the source has no more rows. */
  next: SortedRows | undefined;
  readonly firstKey: Uint8Array;
  lastKey: Uint8Array;

  /** `isFull`: whether the run ends with the rows that were read for it. */
  constructor(nextRows: NextRows, first: SortedRows, isFull: (run: RowRun) => boolean) {
    this.#nextRows = nextRows;
    this.#isFull = isFull;
    this.#buffer = first;
    this.sizeBytes = first.rows.sizeBytes;
    this.firstKey = keyAt(first, 0);
    this.lastKey = keyAt(first, first.order.length - 1);
    this.#take();
  }

  /** The place in the source behind the rows that were read for the run. */
  get end(): SourcePlace {
    return this.#buffer.end;
  }

  get key(): Uint8Array {
    return this.#buffer.rows.keys.bytes;
  }

  get source(): RowSource {
    return this.#buffer.rows.arena;
  }

  advance(): void | Promise<void> {
    if (++this.#at >= this.#buffer.order.length) return this.#refill();
    this.#take();
    return undefined;
  }

  #take(): void {
    const { rows, order } = this.#buffer;
    const i = order[this.#at] as number;
    this.keyStart = rows.keys.start(i);
    this.keyEnd = rows.keys.endOf(i);
    this.base = rows.base(i);
  }

  async #refill(): Promise<void> {
    const buffer = await this.#nextRows();
    if (buffer === undefined || this.#isFull(this) || compareBytes(keyAt(buffer, 0), this.lastKey) <= 0) {
      this.next = buffer;
      this.done = true;
      return;
    }
    this.#buffer = buffer;
    this.sizeBytes += buffer.rows.sizeBytes;
    this.#at = 0;
    this.lastKey = keyAt(buffer, buffer.order.length - 1);
    this.#take();
  }
}

function keyAt({ rows, order }: SortedRows, position: number): Uint8Array {
  return rows.keys.key(order[position] as number);
}

/** The limits of a run: it ends when it has so many bytes of rows, and after so many milliseconds. */
export interface RunLimits {
  readonly bytes: number;
  readonly ms: number;
}

/** Facts about a run that is staged. */
export interface RunEnd {
  readonly firstKey: Uint8Array;
  readonly lastKey: Uint8Array;
  /** The place in the source behind its rows. */
  readonly end: SourcePlace;
  /** Bytes of its rows. */
  readonly sizeBytes: number;
  /** Whether no other run follows. */
  readonly isLast: boolean;
}

/** The steps in which the runs of a load are staged. */
export interface RunSteps<T> {
  readonly environment: Environment;
  readonly nextRows: NextRows;
  /** The limits of the first run; undefined for none. */
  readonly limits: RunLimits | undefined;
  stage(run: ChangeStream): Promise<T>;
  /** Takes a run that is staged, and returns the limits of the next one. */
  staged(tree: T, run: RunEnd): Promise<RunLimits | undefined>;
}

/** Stages all rows of a source, as few sorted runs as their order and the limits allow. */
export async function stageRuns<T>({ environment, nextRows, ...steps }: RunSteps<T>): Promise<void> {
  let { limits } = steps;
  let next = await nextRows();
  while (next !== undefined) {
    const { bytes, ms } = limits ?? { bytes: Infinity, ms: Infinity };
    const endMs = environment.monotonicMs() + ms;
    const run = new RowRun(
      nextRows,
      next,
      ({ sizeBytes }) => sizeBytes >= bytes || (ms < Infinity && environment.monotonicMs() >= endMs),
    );
    const tree = await steps.stage(run);
    const { firstKey, lastKey, end, sizeBytes } = run;
    next = run.next;
    limits = await steps.staged(tree, { firstKey, lastKey, end, sizeBytes, isLast: next === undefined });
  }
}
