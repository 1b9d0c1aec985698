/** Keyset pagination: the condition that selects the rows after a position in an order, for the next page. */
import { ByteWriter, compareRanges, concatBytes, prefixEnd } from '../../base/bytes.ts';
import type { OrderedValue } from '../../base/bytes.ts';
import {
  MalformedKey,
  isTruncatedComponent,
  readKeyComponent,
  skipKeyComponent,
  writeKeyComponent,
} from '../../format/ordered-key.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { Comparison } from './comparison.ts';
import { compileSelector, Condition } from './condition.ts';
import type { KeyAccess } from './key-ranges.ts';
import type { KeyDirection } from './index-ranges.ts';
import { RowOrder } from './row-order.ts';
import type { OrderField } from './row-order.ts';
import type { Selector } from './filter.ts';

/** Selects rows whose key in an order comes after a given key. */
class PositionSelector implements Selector {
  readonly cost = 60;
  readonly #lead: Selector;
  readonly #order: RowOrder;
  readonly #key: Uint8Array;
  readonly #scratch = new ByteWriter(256);

  /** `lead` is a cheaper test of the first field alone, which all of these rows pass. */
  constructor(lead: Selector, order: RowOrder, key: Uint8Array) {
    this.#lead = lead;
    this.#order = order;
    this.#key = key;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const left = this.#lead.select(source, first, stride, picks, count);
    const key = this.#key;
    const scratch = this.#scratch;
    let kept = 0;
    for (let k = 0; k < left; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      scratch.length = 0;
      this.#order.write(scratch, source, first + pick * stride);
      if (compareRanges(scratch.bytes, 0, scratch.length, key, 0, key.length) > 0) kept++;
    }
    return kept;
  }
}

/** Returns the comparison that matches rows whose first field is not before that of a position. */
function notBefore({ descending }: OrderField, value: OrderedValue): Comparison {
  if (value === null) return { kind: descending ? 'null' : 'all' };
  return { kind: 'value', operator: descending ? '<=' : '>=', value, orNull: descending };
}

/** Returns the type of a field's values as components of keys. */
function keyTypeOf({ typeId }: LayoutField): TypeId {
  return typeId === Types.blob ? Types.uuid : typeId;
}

/** Splits a key in an order into components, and inverts those of descending fields. Throws {@link MalformedKey} if it is not a key. */
function componentsOf(order: RowOrder, key: Uint8Array): Uint8Array[] {
  let at = 0;
  const components = order.fields.map(({ field, descending }) => {
    const rest = descending ? key.slice(at).map((byte) => ~byte) : key.subarray(at);
    const end = skipKeyComponent(rest, 0, keyTypeOf(field));
    at += end;
    return rest.slice(0, end);
  });
  if (at !== key.length) throw new MalformedKey('more bytes than the order has fields');
  return components;
}

function isAscending(by: OrderField | undefined, field: LayoutField): boolean {
  return by?.field === field && !by.descending;
}

export class PositionCondition extends Condition {
  readonly #order: RowOrder;
  readonly #value: OrderedValue;
  readonly #primaryKey: Uint8Array;
  readonly #shape: TableShape;
  readonly #keyDirection: KeyDirection;

  /**
   * `order`: the effective order of the query. `keyDirection`: the direction of primary keys, if the order is by primary key. `key`: the
   * key of a row in the order. Throws {@link MalformedKey} if it is not a key.
   */
  constructor(
    shape: TableShape,
    { order: fields, keyDirection }: { readonly order: readonly OrderField[]; readonly keyDirection: KeyDirection },
    key: Uint8Array,
  ) {
    const order = new RowOrder(shape, fields);
    const components = componentsOf(order, key);
    const lead = components[0] as Uint8Array;
    const value = readKeyComponent(lead, 0, lead.length, keyTypeOf(order.lead.field));
    const leads = compileSelector(order.lead.field, notBefore(order.lead, value));
    super(
      [...new Set(order.fields.map(({ field }) => field.name))],
      undefined,
      new PositionSelector(leads, order, key),
      order.fields.map(({ field }) => field),
    );
    this.#shape = shape;
    this.#keyDirection = keyDirection;
    this.#order = order;
    this.#value = value;
    const componentIn = (keyField: LayoutField): Uint8Array =>
      components[order.fields.findIndex(({ field }) => field === keyField)] as Uint8Array;
    this.#primaryKey = shape.keyFields.map(componentIn).reduce(concatBytes);
  }

  override keysBy(field: LayoutField, tree: 'table' | 'index'): KeyAccess | undefined {
    const { lead, fields } = this.#order;
    // The range of the table's own keys depends on all key fields: see `keysWithin`.
    if (lead.field !== field || tree === 'table') return undefined;
    // Entries of an index come by its field and then by ascending primary key. For other orders it gives no range.
    const { keyFields } = this.#shape;
    const rest = keyFields.filter((keyField) => keyField !== field);
    // An effective order has no field after the last field of the key.
    const isByKey = rest.every((keyField, i) => isAscending(fields[i + 1], keyField));
    if (!isByKey || rest.length === 0) return undefined;
    const writer = new ByteWriter(64);
    writeKeyComponent(writer, field.typeId, this.#value);
    const component = writer.finish();
    if (isTruncatedComponent(component, component.length, field.typeId)) {
      const ranges = lead.descending ? [{ to: prefixEnd(component) }] : [{ from: component }];
      return { kind: 'ranges', ranges, exact: false };
    }
    const behind = this.#behind(component, false);
    if (!lead.descending) return { kind: 'ranges', ranges: [{ from: behind.from }], exact: true };
    const lower = this.#value === null ? [] : [{ to: component }];
    return { kind: 'ranges', ranges: [...lower, behind], exact: true };
  }

  /**
   * Returns the range of keys that begin with certain bytes and continue with a primary key after the position. Undefined unless the
   * order is by primary key.
   */
  keysWithin(begin: Uint8Array): KeyRange | undefined {
    if (this.#keyDirection === undefined) return undefined;
    return this.#behind(begin, this.#keyDirection === 'descending');
  }

  /** Returns the range of keys that begin with certain bytes and continue with a primary key after that of the position. */
  #behind(begin: Uint8Array, descending: boolean): KeyRange {
    const key = new Uint8Array(begin.length + this.#primaryKey.length);
    key.set(begin);
    key.set(this.#primaryKey, begin.length);
    return descending ? { from: begin, to: key } : { from: prefixEnd(key), to: prefixEnd(begin) };
  }
}
