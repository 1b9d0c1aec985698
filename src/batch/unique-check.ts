/**
 * Checks the unique indexes of a table for a flush: no two rows may have the same values in the fields of one. The state after the
 * flush counts, so rows may swap their values in one batch.
 *
 * The check is made on exactly the state that the flush will follow in the log, and looks at all of its parts: the entries of
 * merged rows; the rows of unmerged commits and of earlier members of the same commit, which are layers of that state; and the
 * other rows of the flush. A row that does not meet the condition of a partial index, or has a null in one of the fields, conflicts
 * with no row. Values are compared whole, even if keys hold only the beginning of them.
 */
import { isPromise } from '../base/brands.ts';
import { ByteWriter, compareRanges, prefixEnd, hashOf } from '../base/bytes.ts';
import { UniqueIndexError } from '../base/errors.ts';
import type { UniqueConflict } from '../base/errors.ts';
import type { Pacer } from '../base/pacer.ts';
import { KeyList } from '../format/key-list.ts';
import type { Node } from '../format/node.ts';
import { skipKeyComponent, writeHeldComponent } from '../format/ordered-key.ts';
import { rowDeletedFlag, rowUpdatedFlag } from '../format/row-layout.ts';
import type { RowSource } from '../format/row-layout.ts';
import { describeKey, describeValue } from '../base/messages.ts';
import { asList } from '../base/one-or-list.ts';
import { maxLookups } from '../query/operators/lookups.ts';
import { writeWholeValues } from '../schema/index-entries.ts';
import { primaryKeyIn, valuesIn } from '../schema/table-shape.ts';
import type { AddedIndex, TableIndex, TableShape } from '../schema/table-shape.ts';
import { entryAt } from '../view/layer-indexes.ts';
import type { LayerValues } from '../view/layer-indexes.ts';
import type { TableState } from '../view/table-state.ts';
import { TreeCursor } from '../tree/cursor.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';

/** The values that changed rows have in one index. */
class NewValues {
  readonly index: TableIndex;
  readonly keys = new KeyList();
  /** Of each, which of the changed rows has it. */
  readonly rows: number[] = [];
  /** Of each, whether the row had it before, so that no other row that is there can have it. */
  readonly kept: boolean[] = [];
  readonly #scratch = new ByteWriter();

  constructor(index: TableIndex) {
    this.index = index;
  }

  add(row: number, source: RowSource, base: number): void {
    if (!writeWholeValues(this.keys.writer, this.index, source, base)) {
      this.keys.rewind();
      return;
    }
    const at = this.keys.end();
    this.rows[at] = row;
    this.kept[at] = false;
  }

  /** Adds a row that was `stored` before, with whether it had each value then. */
  addOver(row: number, source: RowSource, base: number, stored: { source: RowSource; base: number }): void {
    const { count } = this.keys;
    this.add(row, source, base);
    if (this.keys.count === count) return;
    this.kept[count] = this.isEqual(count, stored.source, stored.base);
  }

  /** Whether a row has the values at a position. */
  isEqual(at: number, source: RowSource, base: number): boolean {
    const scratch = this.#scratch;
    scratch.length = 0;
    if (!writeWholeValues(scratch, this.index, source, base)) return false;
    const { bytes } = this.keys;
    return compareRanges(bytes, this.keys.start(at), this.keys.endOf(at), scratch.bytes, 0, scratch.length) === 0;
  }

  hash(at: number): number {
    return hashOf(this.keys.bytes, this.keys.start(at), this.keys.endOf(at));
  }

  /** The beginning of the entries that have the values at a position, and perhaps of others. */
  held(at: number): { readonly key: Uint8Array; readonly isCut: boolean } {
    const whole = this.keys.key(at);
    const scratch = this.#scratch;
    scratch.length = 0;
    let isCut = false;
    let from = 0;
    for (const { typeId } of this.index.fields) {
      const end = skipKeyComponent(whole, from, typeId);
      isCut = writeHeldComponent(scratch, whole, from, end, typeId) || isCut;
      from = end;
    }
    return { key: scratch.finish(), isCut };
  }

  /** For people: the value, or the values of several fields. */
  value(at: number): unknown {
    const values = valuesIn(this.keys.key(at), this.index.fields);
    return values.length === 1 ? values[0] : values;
  }
}

export class UniqueCheck {
  readonly #state: TableState;
  /** Primary keys of all rows that change, ascending. */
  readonly #changed = new KeyList();
  readonly #values: readonly NewValues[];
  readonly #trees: ReadonlyMap<string, Tree>;
  /** The time at which rows that have expired conflict with no row; undefined if they do. */
  readonly #expiryMs: number | undefined;
  /** Primary keys of rows that have expired and whose values other rows take: the flush must delete them. */
  readonly expired: Uint8Array[] = [];

  private constructor(
    state: TableState,
    indexes: readonly TableIndex[],
    trees: ReadonlyMap<string, Tree>,
    expiryMs: number | undefined,
  ) {
    this.#state = state;
    this.#values = indexes.map((index) => new NewValues(index));
    this.#trees = trees;
    this.#expiryMs = state.shape.expiry && expiryMs;
  }

  /**
   * Returns a check of the rows that follow a state; undefined if its table has no unique index. `added`: unique indexes that are
   * being added, and that have the entries of all rows. `expiryMs`: the time at which rows that have expired conflict with no row.
   */
  static on(state: TableState, added: readonly AddedIndex[] = [], expiryMs?: number): UniqueCheck | undefined {
    const indexes = [...state.shape.indexes.filter(({ unique }) => unique), ...added.map(({ index }) => index)];
    if (indexes.length === 0) return undefined;
    const extra = added.map(({ index, tree }): [string, Tree] => [index.name, tree]);
    const trees = added.length === 0 ? state.indexes : new Map([...state.indexes, ...extra]);
    return new UniqueCheck(state, indexes, trees, expiryMs);
  }

  /** Checks all rows of a stream, which is used up. Throws `UniqueIndexError`. */
  async checkStream(changes: ChangeStream, pacer: Pacer): Promise<void> {
    while (!changes.done) {
      const { key, keyStart, keyEnd, source, base } = changes;
      if (source !== undefined) this.#add(key, keyStart, keyEnd, source, base);
      const advanced = changes.advance();
      if (advanced !== undefined) await advanced;
      if ((this.#changed.count & 0xff) === 0 && pacer.due()) await pacer.pause();
    }
    await this.#check(pacer);
  }

  /** Checks all rows of a leaf of a commit. Throws `UniqueIndexError`. */
  async checkLeaf(leaf: Node, pacer: Pacer): Promise<void> {
    for (let i = 0; i < leaf.count; i++) {
      const key = leaf.key(i);
      this.#add(key, 0, key.length, leaf, leaf.rowBase(i));
      if ((i & 0xff) === 0xff && pacer.due()) await pacer.pause();
    }
    await this.#check(pacer);
  }

  #add(key: Uint8Array, start: number, end: number, source: RowSource, base: number): void {
    this.#changed.writer.appendRange(key, start, end);
    const row = this.#changed.end();
    const marks = source.rows[base] as number;
    if ((marks & rowDeletedFlag) !== 0) return;
    // An update has looked its row up, which is at hand then. Others are not read for this.
    const stored = (marks & rowUpdatedFlag) === 0 ? undefined : this.#state.lookup(key.subarray(start, end));
    if (isPromise(stored)) stored.catch(() => undefined);
    const isAtHand = stored !== undefined && !isPromise(stored);
    for (const values of this.#values) {
      if (isAtHand) values.addOver(row, source, base, stored);
      else values.add(row, source, base);
    }
  }

  async #check(pacer: Pacer): Promise<void> {
    for (const values of this.#values) {
      const order = await values.keys.sorted(pacer);
      await this.#checkEachOther(values, order, pacer);
      await this.#checkOthers(values, order, pacer);
    }
  }

  /** The rows of the flush among themselves. */
  async #checkEachOther(values: NewValues, order: Uint32Array, pacer: Pacer): Promise<void> {
    for (let i = 1; i < order.length; i++) {
      const [before, at] = [order[i - 1] as number, order[i] as number];
      if (values.keys.compare(before, at) === 0) {
        throw this.#conflict(values, at, this.#changed.key(values.rows[before] as number));
      }
      if ((i & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
  }

  /** Checks the rows of the flush against the stored rows that it does not change. */
  async #checkOthers(values: NewValues, order: Uint32Array, pacer: Pacer): Promise<void> {
    const layers = await this.#layerValues(values.index, pacer);
    const late: { readonly at: number; readonly other: Promise<Uint8Array | undefined> }[] = [];
    const most = maxLookups(this.#state.tree.source.memory);
    const awaitLate = async (): Promise<void> => {
      for (const { at, other } of late.splice(0)) {
        const key = await other;
        if (key !== undefined) throw this.#conflict(values, at, key);
      }
    };
    for (let i = 0; i < order.length; i++) {
      const at = order[i] as number;
      const other = values.kept[at] === true ? undefined : this.#other(values, at, layers);
      if (other !== undefined) {
        // Another one may fail first; then the result of this one is not needed.
        other.catch(() => undefined);
        if (late.push({ at, other }) >= most) await awaitLate();
      }
      if ((i & 0xff) === 0xff && pacer.due()) await pacer.pause();
    }
    await awaitLate();
  }

  async #layerValues(index: TableIndex, pacer: Pacer): Promise<LayerValues[]> {
    const layers: LayerValues[] = [];
    const { layerIndexes } = this.#state;
    for (const layer of this.#state.layers) layers.push(await layerIndexes.valuesOf(layer, index, pacer));
    return layers;
  }

  /** The key of another row with the values at a position. Undefined, and no promise, where it is plain that there is none. */
  #other(values: NewValues, at: number, layers: readonly LayerValues[]): Promise<Uint8Array | undefined> | undefined {
    const { key, isCut } = values.held(at);
    const tree = this.#trees.get(values.index.name);
    const hash = values.hash(at);
    const isSuspect = layers.some((layer) => layer.positions(hash).length > 0);
    const cursor = tree === undefined ? undefined : new TreeCursor(tree, { from: key, to: prefixEnd(key) });
    const moved = cursor?.next() ?? false;
    if (!isSuspect && moved === false) return undefined;
    const indexed = cursor && this.#inIndex(values, at, isCut, cursor, moved);
    // It is awaited only if no layer decides.
    indexed?.catch(() => undefined);
    return this.#find(values, at, layers, hash, indexed);
  }

  async #find(
    values: NewValues,
    at: number,
    layers: readonly LayerValues[],
    hash: number,
    indexed: Promise<Uint8Array | undefined> | undefined,
  ): Promise<Uint8Array | undefined> {
    for (const [depth, layer] of layers.entries()) {
      for (const position of layer.positions(hash)) {
        const found = await this.#inLayer(values, at, depth, position);
        if (found !== undefined) return found;
      }
    }
    return indexed;
  }

  /** The key of a row of a layer if it has the values, and is still there. */
  async #inLayer(values: NewValues, at: number, depth: number, position: number): Promise<Uint8Array | undefined> {
    const { layers } = this.#state;
    const { node, i } = await entryAt(layers[depth] as TableState['tree'], position);
    if (!values.isEqual(at, node, node.rowBase(i))) return undefined;
    const key = node.key(i);
    if (this.#isChanged(key)) return undefined;
    for (const newer of layers.slice(0, depth)) if ((await newer.lookup(key)) !== undefined) return undefined;
    return this.#isGone(key, { source: node, base: node.rowBase(i) }) ? undefined : key;
  }

  /** Whether a row has expired, so that it only has to be deleted. */
  #isGone(key: Uint8Array, row: RowRef): boolean {
    if (this.#expiryMs === undefined || !this.#state.shape.isExpired(row, this.#expiryMs)) return false;
    this.expired.push(key.slice());
    return true;
  }

  /** Finds the row among the entries that a cursor moves over; the cursor has been `moved` to the first. */
  async #inIndex(
    values: NewValues,
    at: number,
    isCut: boolean,
    cursor: TreeCursor,
    moved: boolean | Promise<boolean>,
  ): Promise<Uint8Array | undefined> {
    let more = await moved;
    while (more) {
      const found = await this.#inEntries(values, at, isCut, cursor);
      if (found !== undefined) return found;
      more = await cursor.next();
    }
    return undefined;
  }

  async #inEntries(
    values: NewValues,
    at: number,
    isCut: boolean,
    { node, from, to }: TreeCursor,
  ): Promise<Uint8Array | undefined> {
    for (let i = from; i < to; i++) {
      const entry = node.key(i);
      const key = primaryKeyIn(node, entry, values.index);
      if (this.#isChanged(key) || (await this.#state.isOverlaid(key))) continue;
      const row = isCut || this.#expiryMs !== undefined ? await this.#state.tree.lookup(key) : undefined;
      if (row !== undefined && values.isEqual(at, row.source, row.base) && this.#isGone(key, row)) continue;
      if (!isCut) return key;
      if (row !== undefined && values.isEqual(at, row.source, row.base)) return key;
    }
    return undefined;
  }

  /** Whether the flush changes the row with this key: then its earlier values do not count. */
  #isChanged(key: Uint8Array): boolean {
    const changed = this.#changed;
    const at = changed.lowerBound(key);
    return (
      at < changed.count && compareRanges(changed.bytes, changed.start(at), changed.endOf(at), key, 0, key.length) === 0
    );
  }

  #conflict(values: NewValues, at: number, other: Uint8Array): UniqueIndexError {
    const { shape } = this.#state;
    const { index } = values;
    const value = values.value(at);
    const primaryKey = shape.keyValue(this.#changed.key(values.rows[at] as number));
    return uniqueConflict(shape, index, { value, primaryKey, otherKey: shape.keyValue(other) });
  }
}

/** Returns the error for two rows that would agree in a unique index. */
export function uniqueConflict(shape: TableShape, index: TableIndex, conflict: UniqueConflict): UniqueIndexError {
  const { value, primaryKey, otherKey } = conflict;
  const told = asList(value).map(describeValue).join(', ');
  const where = index.where === undefined ? '' : ` where ${index.where.text}`;
  const message =
    `Index '${index.name}' of table '${shape.name}' (version ${shape.version}) is unique${where}, and the rows with primary keys ` +
    `${describeKey(primaryKey)} and ${describeKey(otherKey)} would both have ${told} there. Nothing was written.`;
  return new UniqueIndexError(shape.name, index.name, conflict, message);
}
