/**
 * The rows of a watched query that the rows of commits change in place, so that the query need not run again. It holds the rows as they are
 * now beside the rows of the result that the caller has.
 *
 * Invariant: the rows are those that a run of the query would return, all of them or as many as the limit allows.
 */
import { compareValues } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import type { Node } from '../format/node.ts';
import { readField } from '../format/row-decode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { LiveRows } from '../query/live-results.ts';
import { isSameValue } from './same-value.ts';

export type Row = Readonly<Record<string, unknown>>;

/** A field of an order. */
export interface OrderedField {
  readonly field: LayoutField;
  readonly isDescending: boolean;
}

/** Rows with their keys, in order. */
export interface KeyedRows {
  readonly keys: readonly string[];
  readonly rows: readonly Row[];
}

export interface PlacedOptions {
  readonly order: readonly OrderedField[];
  readonly limit: number | undefined;
}

export class PlacedRows {
  readonly #options: PlacedOptions;
  readonly #byKey: Map<string, Row>;
  #keys: string[];
  #rows: Row[];
  /** The result that the caller has. Its arrays do not change. */
  #told: KeyedRows;
  /** Rows of that result that have changed since, by their keys; undefined for those that were not in it. */
  readonly #before = new Map<string, Row | undefined>();

  constructor({ keys, rows }: KeyedRows, options: PlacedOptions) {
    this.#options = options;
    this.#byKey = new Map(keys.map((key, i) => [key, rows[i] as Row]));
    this.#keys = [...keys];
    this.#rows = [...rows];
    this.#told = { keys: this.#keys, rows: this.#rows };
  }

  get told(): KeyedRows {
    return this.#told;
  }

  get #isFull(): boolean {
    return this.#keys.length === this.#options.limit;
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** Whether a row comes after the last row that the limit allows. */
  isBeyond(key: string, source: Node, base: number): boolean {
    const last = this.#rows.at(-1);
    if (!this.#isFull || last === undefined) return false;
    const lastKey = this.#keys.at(-1) as string;
    return this.#compare((field) => readField(source, base, field), key, last, lastKey) > 0;
  }

  /** Puts a row in its place, or removes it. Returns false if only a run tells which rows there are now. */
  place(key: string, row: Row | undefined): boolean {
    const known = this.#byKey.get(key);
    const [last, lastKey] = [this.#rows.at(-1), this.#keys.at(-1)];
    if (known !== undefined && this.#isFull) {
      // Rows that are not here may come before it now.
      if (row === undefined || this.#compareRows(row, key, last as Row, lastKey as string) > 0) return false;
    }
    this.#note(key);
    if (known !== undefined) this.#remove(key, known);
    if (row !== undefined) this.#insert(key, row);
    const { limit } = this.#options;
    if (limit !== undefined && this.#keys.length > limit) {
      const beyond = this.#keys.at(-1) as string;
      this.#note(beyond);
      this.#remove(beyond, this.#rows.at(-1) as Row);
    }
    return true;
  }

  /** Returns the rows with their differences from the result before, for the caller; undefined if there are none. */
  take(): Omit<LiveRows<Row>, 'position'> | undefined {
    const added: [string, Row][] = [];
    const changed: [string, Row][] = [];
    const removed: [string, Row][] = [];
    for (const [key, before] of this.#before) {
      const now = this.#byKey.get(key);
      if (before === undefined) {
        if (now !== undefined) added.push([key, now]);
      } else if (now === undefined) removed.push([key, before]);
      else if (!isSameValue(before, now)) changed.push([key, now]);
      else this.#keepObject(key, before, now);
    }
    this.#before.clear();
    this.#told = { keys: this.#keys, rows: this.#rows };
    if (added.length + changed.length + removed.length === 0) return undefined;
    const inOrder = (rows: [string, Row][]): Row[] =>
      rows.toSorted(([a, x], [b, y]) => this.#compareRows(x, a, y, b)).map(([, row]) => row);
    return { rows: this.#rows, added: inOrder(added), changed: inOrder(changed), removed: inOrder(removed) };
  }

  /** Keeps the object of a row that is as it was in the last result. */
  #keepObject(key: string, before: Row, now: Row): void {
    if (before === now) return;
    this.#makeWritable();
    this.#rows[this.#placeOf(key, now)] = before;
    this.#byKey.set(key, before);
  }

  #note(key: string): void {
    if (!this.#before.has(key)) this.#before.set(key, this.#byKey.get(key));
  }

  #makeWritable(): void {
    if (this.#rows !== this.#told.rows) return;
    this.#keys = [...this.#keys];
    this.#rows = [...this.#rows];
  }

  #remove(key: string, row: Row): void {
    this.#makeWritable();
    const at = this.#placeOf(key, row);
    this.#keys.splice(at, 1);
    this.#rows.splice(at, 1);
    this.#byKey.delete(key);
  }

  #insert(key: string, row: Row): void {
    this.#makeWritable();
    const at = this.#placeOf(key, row);
    this.#keys.splice(at, 0, key);
    this.#rows.splice(at, 0, row);
    this.#byKey.set(key, row);
  }

  /** Returns the place of a row: where it is, or where it belongs. */
  #placeOf(key: string, row: Row): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compareRows(this.#rows[middle] as Row, this.#keys[middle] as string, row, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compareRows(row: Row, key: string, other: Row, otherKey: string): number {
    return this.#compare(({ name }) => row[name], key, other, otherKey);
  }

  #compare(valueOf: (field: OrderedField['field']) => unknown, key: string, other: Row, otherKey: string): number {
    for (const { field, isDescending } of this.#options.order) {
      const compared = compareValues(valueOf(field) as OrderedValue, other[field.name] as OrderedValue);
      if (compared !== 0) return isDescending ? -compared : compared;
    }
    // At last, ascending primary keys decide. Their texts have one character for each byte.
    return key < otherKey ? -1 : Number(key > otherKey);
  }
}
