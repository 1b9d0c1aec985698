/** The rows or groups of a result by their keys, and their differences from those of the result before. */
import { compareBytes, compareValues, ByteWriter, toHex, toLatin1 } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import { isBytes, isDate } from '../base/brands.ts';
import type { Node } from '../format/node.ts';
import { readField } from '../format/row-decode.ts';
import type { LiveRows } from '../query/live-results.ts';
import type { WatchedQuery } from '../query/planner/query-host.ts';
import type { KeyValue, TableShape } from '../schema/table-shape.ts';
import { PlacedRows } from './placed-rows.ts';
import type { KeyedRows, OrderedField, Row } from './placed-rows.ts';
import { isSameValue } from './same-value.ts';

const noRows: ReadonlyMap<string, Row> = new Map();

/** Returns a text that differs for different values of the fields that groups are made by. */
function groupKey(row: Row, groupedBy: readonly string[]): string {
  const texts = groupedBy.map((name) => {
    const value = row[name];
    if (isBytes(value)) return `x${toHex(value)}`;
    if (isDate(value)) return `d${value.getTime()}`;
    return `${typeof value} ${String(value)}`;
  });
  return JSON.stringify(texts);
}

/** Returns the rows with the fields that the caller gets: the query was run with more. */
export function cut(row: Row, fields: readonly string[] | undefined): Row {
  return fields === undefined ? row : Object.fromEntries(fields.map((name) => [name, row[name]]));
}

/** Rows, and their differences from earlier ones. */
interface Differences extends Omit<LiveRows<Row>, 'position'> {
  readonly shown: ShownRows;
  /** Whether there are none. */
  readonly isSame: boolean;
}

/** Returns the fields of an order; undefined if it is by something else as well, such as the result of a function. */
function orderOf(shape: TableShape, orders: WatchedQuery['asked']['orders']): readonly OrderedField[] | undefined {
  const order: OrderedField[] = [];
  for (const { name, direction } of orders) {
    const field = shape.layout.fields.find((one) => one.name === name);
    if (field === undefined) return undefined;
    order.push({ field, isDescending: direction === 'desc' });
  }
  return order;
}

/** The rows of one result. */
export class ShownRows {
  readonly #byKey: ReadonlyMap<string, Row>;
  /** The order of the rows; undefined if it is not by fields alone. */
  readonly #order: readonly OrderedField[] | undefined;
  readonly #last: Row | undefined;
  readonly #lastKey: Uint8Array | undefined;

  private constructor(
    byKey: ReadonlyMap<string, Row>,
    order?: readonly OrderedField[],
    last?: Row,
    lastKey?: Uint8Array,
  ) {
    this.#byKey = byKey;
    this.#order = order;
    this.#last = last;
    this.#lastKey = lastKey;
  }

  static readonly none: ShownRows = new ShownRows(noRows);

  /** Rows of a result that commits have changed in place, to find differences from. */
  static ofKeyed({ keys, rows }: KeyedRows): ShownRows {
    return new ShownRows(new Map(keys.map((key, i) => [key, rows[i] as Row])));
  }

  static ofGroups(groups: readonly Row[], groupedBy: readonly string[]): ShownRows {
    return new ShownRows(new Map(groups.map((group) => [groupKey(group, groupedBy), group])));
  }

  /** Rows as they were read. `shape`: that of their table. */
  static ofRows(rows: readonly Row[], shape: TableShape, { fields, orders, limit }: WatchedQuery['asked']): ShownRows {
    const writer = new ByteWriter(64);
    const keyOf = (row: Row): Uint8Array => {
      writer.length = 0;
      const values = shape.keyFields.map(({ name }) => row[name]);
      shape.writeKey(writer, (shape.keyField === undefined ? values : values[0]) as KeyValue);
      return writer.finish();
    };
    const byKey = new Map(rows.map((row) => [toLatin1(keyOf(row)), cut(row, fields)]));
    const last = rows.length === limit ? rows.at(-1) : undefined;
    const order = orderOf(shape, orders);
    if (last === undefined || order === undefined) return new ShownRows(byKey, order);
    return new ShownRows(byKey, order, last, keyOf(last));
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** Whether a row with a key comes after the last row that the limit allows. */
  isBeyond(key: Uint8Array, source: Node, base: number): boolean {
    if (this.#last === undefined || this.#order === undefined) return false;
    for (const { field, isDescending } of this.#order) {
      const value = readField(source, base, field) as OrderedValue;
      const compared = compareValues(value, this.#last[field.name] as OrderedValue);
      if (compared !== 0) return isDescending ? compared < 0 : compared > 0;
    }
    // At last, ascending primary keys decide: all of their fields may be in the order already.
    return compareBytes(key, this.#lastKey as Uint8Array) > 0;
  }

  /** Returns these rows, for commits to change in place; undefined if their places do not follow from their own values. */
  placed({ fields, limit, offset }: WatchedQuery['asked']): PlacedRows | undefined {
    const order = this.#order;
    const isOwn = order?.every(({ field: { name } }) => fields === undefined || fields.includes(name));
    if (order === undefined || isOwn !== true || offset > 0 || limit === 0) return undefined;
    return new PlacedRows({ keys: [...this.#byKey.keys()], rows: [...this.#byKey.values()] }, { order, limit });
  }

  /**
   * Returns these rows with their differences from earlier ones. Rows that are the same stay the same objects. `touched`: the keys of
   * rows that may differ; undefined: any may.
   */
  since(before: ShownRows, touched: ReadonlySet<string> | undefined): Differences {
    const merged = new Map<string, Row>();
    const added: Row[] = [];
    const changed: Row[] = [];
    for (const [key, row] of this.#byKey) {
      const known = before.#byKey.get(key);
      const mayDiffer = touched === undefined || touched.has(key);
      const isSame = known !== undefined && (!mayDiffer || isSameValue(known, row));
      merged.set(key, isSame ? known : row);
      if (known === undefined) added.push(row);
      else if (!isSame) changed.push(row);
    }
    const removed = [...before.#byKey].filter(([key]) => !this.#byKey.has(key)).map(([, row]) => row);
    const shown = new ShownRows(merged, this.#order, this.#last, this.#lastKey);
    const isSame = added.length + changed.length + removed.length === 0 && isSameOrder(merged, before.#byKey);
    return { rows: [...merged.values()], added, changed, removed, shown, isSame };
  }
}

/** Whether two maps with the same keys have them in the same order. A field that the caller does not get may have moved a row. */
function isSameOrder(a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): boolean {
  const others = b.keys();
  for (const key of a.keys()) if (key !== others.next().value) return false;
  return true;
}
