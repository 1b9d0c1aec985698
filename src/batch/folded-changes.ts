/**
 * Folds a batch's operations on one table into one row per key, as it is after them, on top of a table's state: an
 * update is resolved to the whole row, and operations that contradict the state are rejected.
 */
import { isPromise } from '../base/brands.ts';
import { copyRange } from '../base/bytes.ts';
import { DuplicateKeyError, RowNotFoundError } from '../base/errors.ts';
import type { Pacer } from '../base/pacer.ts';
import { appendNullRow, copyField, copyRow, RowArena } from '../format/row-encode.ts';
import { sameRow } from '../format/row-decode.ts';
import { rowDeletedFlag, rowUpdatedFlag } from '../format/row-layout.ts';
import type { RowSource } from '../format/row-layout.ts';
import { widthOf } from '../format/types.ts';
import { describeKey } from '../base/messages.ts';
import { addTo } from './increments.ts';
import { conditionFailed, failingField } from './row-condition.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import type { RowRef } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';
import { LookupPace } from '../query/operators/lookups.ts';
import type { Found } from '../query/operators/lookups.ts';
import { Operation } from './table-operations.ts';
import type { TableOperations } from './table-operations.ts';

/** For fewer operations, checking the range of their keys costs as much as it saves. */
const minToProbe = 4;

/** Operations whose outcome depends on the row that is there. */
const dependsOnRow: ReadonlySet<Operation> = new Set([
  Operation.insert,
  Operation.update,
  Operation.upsertFields,
  Operation.increment,
  Operation.expire,
]);

interface FoldOptions {
  /** Leaves out rows that would not change. Default: false. */
  readonly skipsEqual?: boolean;
  /** For an overlay: an operation that contradicts the state is shown as far as it can be; the flush will reject it. Default: false. */
  readonly forOverlay?: boolean;
  /** The time at which rows that have expired count as not there. Default: the present one. */
  readonly nowMs?: number;
}

/** The folded rows in key order. A deletion is a row that is marked as deleted. */
export class FoldedChanges implements ChangeStream {
  readonly #operations: TableOperations;
  readonly #state: TableState;
  readonly #order: Uint32Array;
  readonly #pacer: Pacer;
  readonly #forOverlay: boolean;
  readonly #skipsEqual: boolean;
  readonly #nowMs: number;
  /** Whether there is no row between the first key and the last, so that none need be looked up. */
  readonly #isFree: boolean;
  /** Rows that are neither in the batch nor in the state: updates resolved, and marks of deletions. */
  readonly #resolved = new RowArena('memory/batch');
  #next = 0;
  #scratch = new Uint8Array(64);
  /** Rows that are read ahead, by the beginning of their operations in {@link #order}. */
  readonly #readAhead = new Map<number, Found | Promise<Found>>();
  /** The position in {@link #order} up to which rows are read ahead. */
  #readAheadTo = 0;
  /** Made when a row must be waited for. */
  #pace: LookupPace | undefined;
  done = false;
  keyStart = 0;
  keyEnd = 0;
  readonly remove = false;
  source: RowSource | undefined = undefined;
  base = 0;
  /** The row as it is stored under the present key. Looked up only where it matters. */
  stored: RowRef | undefined = undefined;

  private constructor(
    operations: TableOperations,
    state: TableState,
    order: Uint32Array,
    pacer: Pacer,
    { forOverlay = false, skipsEqual = false, nowMs = operations.nowMs }: FoldOptions,
  ) {
    this.#operations = operations;
    this.#pacer = pacer;
    this.#state = state;
    this.#order = order;
    this.#forOverlay = forOverlay;
    this.#skipsEqual = skipsEqual;
    this.#nowMs = nowMs;
    const [first, last] = [order[0], order[order.length - 1]];
    const { keys } = operations;
    this.#isFree =
      first !== undefined &&
      last !== undefined &&
      order.length >= minToProbe &&
      state.holdsNone(keys.key(first), keys.key(last));
  }

  static async of(
    operations: TableOperations,
    state: TableState,
    order: Uint32Array,
    pacer: Pacer,
    options: FoldOptions = {},
  ): Promise<FoldedChanges> {
    const folded = new FoldedChanges(operations, state, order, pacer, options);
    await folded.advance();
    return folded;
  }

  get key(): Uint8Array {
    return this.#operations.keys.bytes;
  }

  /** Moves to the next key whose row must be committed. Returns no promise where the rows to look up are in memory. */
  advance(): void | Promise<void> {
    for (let passed = 0; ; passed++) {
      const step = this.#pacedStep(passed);
      if (isPromise(step)) return this.#advanceFrom(step);
      if (step) return undefined;
    }
  }

  /** Continues with a loop: there may be a million rows, none of which must be committed. */
  async #advanceFrom(late: Promise<boolean>): Promise<void> {
    let step: boolean | Promise<boolean> = late;
    for (let passed = 1; !(await step); passed++) step = this.#pacedStep(passed);
  }

  /** A step, or now and then a pause instead of one, which passes nothing on. */
  #pacedStep(passed: number): boolean | Promise<boolean> {
    if ((passed & 0xff) === 0xff && this.#pacer.due()) return this.#pacer.pause().then(() => false);
    return this.#step();
  }

  /** Folds the next key. True if its row is to be committed, and at the end. */
  #step(): boolean | Promise<boolean> {
    if (this.#next >= this.#order.length) {
      this.done = true;
      return true;
    }
    const { keys } = this.#operations;
    const from = this.#next;
    const first = this.#order[from] as number;
    const to = this.#endOfKey(from);
    this.#next = to;
    this.keyStart = keys.start(first);
    this.keyEnd = keys.endOf(first);
    if (this.#isFree || !this.#needsLookup(first)) return this.#fold(from, to, undefined);
    const found = this.#found(from);
    if (!isPromise(found)) return this.#fold(from, to, found);
    this.#lookUpNext();
    return found.then((rowRef) => this.#fold(from, to, rowRef));
  }

  /** Returns the end of the operations on the key that begin at `from`. */
  #endOfKey(from: number): number {
    const { keys } = this.#operations;
    const first = this.#order[from] as number;
    let to = from + 1;
    while (to < this.#order.length && keys.compare(first, this.#order[to] as number) === 0) to++;
    return to;
  }

  /** Returns the row of the key whose operations begin at `from`. */
  #found(from: number): Found | Promise<Found> {
    if (from >= this.#readAheadTo) return this.#lookup(from);
    const found = this.#readAhead.get(from);
    this.#readAhead.delete(from);
    return found;
  }

  /** Looks up a key, from a reused buffer. */
  #lookup(from: number): Found | Promise<Found> {
    const { keys } = this.#operations;
    const first = this.#order[from] as number;
    const start = keys.start(first);
    const end = keys.endOf(first);
    const length = end - start;
    if (this.#scratch.length < length) this.#scratch = new Uint8Array(length * 2);
    copyRange(this.key, start, end, this.#scratch, 0);
    return this.#state.lookup(this.#scratch, length);
  }

  /** Reads the rows of the next keys ahead: since the present one must be awaited anyway, the others arrive in the same time. */
  #lookUpNext(): void {
    if (this.#readAhead.size > 0) return;
    this.#pace ??= new LookupPace(this.#state.tree.source.memory);
    let at = Math.max(this.#next, this.#readAheadTo);
    for (let left = this.#pace.step(Number.POSITIVE_INFINITY); left > 0 && at < this.#order.length; left--) {
      if (this.#needsLookup(this.#order[at] as number)) {
        const found = this.#lookup(at);
        // If one fails, the others are still under way: their failures must not go unhandled.
        if (isPromise(found)) found.catch(() => undefined);
        this.#readAhead.set(at, found);
      }
      at = this.#endOfKey(at);
    }
    this.#readAheadTo = at;
  }

  /** Only the first operation on a key depends on the stored row. */
  #needsLookup(first: number): boolean {
    const kind = this.#operations.kind(first);
    // Whose blobs go with a row shows only in the row itself.
    if (this.#operations.shape.blobFields.length > 0) return true;
    if (kind === Operation.upsert && this.#skipsEqual) return true;
    return dependsOnRow.has(kind) || this.#operations.condition(first) !== undefined;
  }

  /** Applies the operations of one key to its row. False if nothing of them is to be committed. */
  #fold(from: number, to: number, stored: RowRef | undefined): boolean {
    const operations = this.#operations;
    // A row that has expired is not there any more; its blobs and index entries are.
    const visible = stored !== undefined && operations.shape.isExpired(stored, this.#nowMs) ? undefined : stored;
    let row = visible;
    let marks = rowDeletedFlag;
    for (let at = from; at < to; at++) {
      const i = this.#order[at] as number;
      switch (operations.kind(i)) {
        case Operation.insert:
          if (row !== undefined && !this.#forOverlay) throw this.#duplicate(i);
          row = this.#given(i);
          break;
        case Operation.upsert:
          row = this.#given(i);
          break;
        case Operation.upsertFields:
          row = row === undefined ? this.#given(i) : this.#update(i, row, row === stored);
          break;
        case Operation.update:
        case Operation.increment:
          if (row !== undefined) {
            this.#checkCondition(i, row);
            row = this.#update(i, row, row === stored);
          } else if (!this.#forOverlay) throw this.#notFound(i);
          break;
        case Operation.delete:
          this.#checkCondition(i, row);
          row = undefined;
          break;
        case Operation.expire:
          if (visible !== undefined) return false;
          row = undefined;
          marks |= rowUpdatedFlag;
          break;
      }
    }
    if (row === undefined && stored === undefined && this.#needsLookup(this.#order[from] as number)) return false;
    if (row !== undefined && visible !== undefined && this.#isAsStored(row, visible)) return false;
    this.stored = stored;
    const rowRef = row ?? this.#deletion(marks);
    this.source = rowRef.source;
    this.base = rowRef.base;
    return true;
  }

  /** The row that an operation gives. */
  #given(i: number): RowRef {
    return { source: this.#operations.arena, base: this.#operations.base(i) };
  }

  /** Throws `ConditionFailedError` unless the row meets the operation's condition. An overlay assumes that it does. */
  #checkCondition(i: number, row: RowRef | undefined): void {
    const condition = this.#operations.condition(i);
    if (condition === undefined || this.#forOverlay) return;
    const { shape, arena } = this.#operations;
    const field = row === undefined ? condition.fields[0] : failingField(shape.layout, condition, arena, row);
    if (field === undefined) return;
    throw conditionFailed(shape, this.#keyValue(i), field, { source: arena, base: condition.base }, row);
  }

  /** Whether a row would not change. That is certain: the state ends at the slot right before the commit's. */
  #isAsStored(row: RowRef, stored: RowRef): boolean {
    return this.#skipsEqual && (row === stored || sameRow(this.#operations.shape.layout, row, stored));
  }

  #update(i: number, row: RowRef, wasStored: boolean): RowRef {
    const operations = this.#operations;
    const { shape } = operations;
    const { layout } = shape;
    const { writer, heapWriter } = this.#resolved;
    const base = copyRow(layout, row.source, row.base, writer, heapWriter);
    for (const field of layout.fields) {
      if (!operations.names(i, field)) continue;
      copyField(field, widthOf(field.typeId), operations.arena, operations.base(i), writer, base, heapWriter);
    }
    if (operations.kind(i) === Operation.increment) {
      const changed = { shape, arena: this.#resolved, base, primaryKey: () => this.#keyValue(i) };
      addTo(changed, operations.increments(i), this.#forOverlay);
    }
    if (wasStored) writer.bytes[base] = (writer.bytes[base] as number) | rowUpdatedFlag;
    return { source: this.#resolved, base };
  }

  #deletion(marks: number): RowRef {
    const { writer } = this.#resolved;
    const base = appendNullRow(this.#operations.shape.layout, writer);
    writer.bytes[base] = (writer.bytes[base] as number) | marks;
    return { source: this.#resolved, base };
  }

  #keyValue(i: number): unknown {
    return this.#operations.shape.keyValue(this.#operations.keys.key(i));
  }

  #duplicate(i: number): DuplicateKeyError {
    const { keys, shape } = this.#operations;
    return duplicateKey(shape, keys.key(i));
  }

  #notFound(i: number): RowNotFoundError {
    const { name } = this.#operations.shape;
    const value = this.#keyValue(i);
    const message = `Table '${name}' has no row with primary key ${describeKey(value)} to update. Nothing was written.`;
    return new RowNotFoundError(name, value, message);
  }
}

/** Returns the error for an insert of a key that exists already. */
export function duplicateKey(shape: TableShape, key: Uint8Array): DuplicateKeyError {
  const value = shape.keyValue(key);
  const message = `Table '${shape.name}' has a row with primary key ${describeKey(value)} already. Nothing was written.`;
  return new DuplicateKeyError(shape.name, value, message);
}
