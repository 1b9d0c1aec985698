/**
 * The system table of unique indexes that are being added and are checked already. A row is committed like any other row, so
 * every commit is certainly before or after it, and the commits after it were checked. Also finds duplicates in a unique index.
 */
import { ByteWriter, compareBytes, hashOf } from '../base/bytes.ts';
import { describeValue } from '../base/messages.ts';
import type { Pacer } from '../base/pacer.ts';
import { commitBlockName } from '../format/commit.ts';
import type { TableChange } from '../format/commit.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import { endWithin, isTruncatedComponent, skipKeyComponent } from '../format/ordered-key.ts';
import { readField } from '../format/row-decode.ts';
import { RowArena, appendNullRow, writeField } from '../format/row-encode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { Types } from '../format/types.ts';
import { writeWholeValues } from '../schema/index-entries.ts';
import { isComplete, TableShape, valuesIn } from '../schema/table-shape.ts';
import type { AddedIndex, TableIndex } from '../schema/table-shape.ts';
import { readAll } from '../tree/cursor.ts';
import type { Tree } from '../tree/tree.ts';
import type { TableState } from '../view/table-state.ts';
import type { View } from '../view/view.ts';

/** One row for each index, by its table and name, with the generation in which the checked index was added. */
export const checkedIndexesSchema: StoredSchema = {
  name: '_checked_indexes',
  version: 1,
  fields: [
    { name: 'index', typeId: Types.varchar },
    { name: 'birth', typeId: Types.float64 },
  ],
  primaryKey: ['index'],
  indexes: [],
};

const shape = new TableShape(checkedIndexesSchema);

function fieldOf(name: string): LayoutField {
  return shape.layout.field(name) as LayoutField;
}

/** Returns a name that is unique in the database, however long the names of table and index are. */
function nameOf(table: string, { index }: AddedIndex): string {
  return JSON.stringify([table, index.name]);
}

function keyOf(table: string, added: AddedIndex): Uint8Array {
  return shape.keyBytes(nameOf(table, added));
}

/** The change that makes every later commit be checked for an index. */
export function checkingOf(table: string, added: AddedIndex): TableChange {
  const rows = new RowArena('memory/checked');
  const { writer, heapWriter } = rows;
  const base = appendNullRow(shape.layout, writer);
  writeField(writer, base, heapWriter, fieldOf('index'), nameOf(table, added));
  writeField(writer, base, heapWriter, fieldOf('birth'), added.birth);
  const entries = new NodeEntries(shape.changeShape);
  const key = keyOf(table, added);
  entries.addRow(key, 0, key.length, rows, base);
  const name = commitBlockName(shape.name);
  return { schema: shape.schema, node: openNode(name, entries.encode(name, 0, 1)) };
}

/** Whether a view shows that every commit after it is checked for an index, in its blocks or in pending commits. */
export async function isChecked(view: View, table: string, added: AddedIndex): Promise<boolean> {
  const rowRef = await view.table(shape.name)?.lookup(keyOf(table, added));
  // An index of the same name that was dropped says nothing about this one.
  return rowRef !== undefined && readField(rowRef.source, rowRef.base, fieldOf('birth')) === added.birth;
}

const none: readonly AddedIndex[] = [];

/** The indexes that are being added to a table and that a flush on a view must be checked for. */
export function checkedIndexes(view: View, table: TableState): readonly AddedIndex[] | Promise<readonly AddedIndex[]> {
  const unique = table.added.filter((added) => added.index.unique && isComplete(added));
  return unique.length === 0 ? none : checkedOf(view, table, unique);
}

async function checkedOf(view: View, table: TableState, unique: readonly AddedIndex[]): Promise<AddedIndex[]> {
  const checked: AddedIndex[] = [];
  for (const added of unique) if (await isChecked(view, table.shape.name, added)) checked.push(added);
  return checked;
}

/** A row that agrees in the fields of a unique index with a row that comes before it. */
export interface Duplicate {
  readonly index: TableIndex;
  /** Primary keys of the row and of the earlier one. */
  readonly key: unknown;
  readonly other: unknown;
  /** The values that both rows have, for people. */
  readonly value: string;
}

/** An entry taken apart. */
interface Entry {
  readonly values: Uint8Array;
  readonly primaryKey: Uint8Array;
  readonly hasNull: boolean;
  /** Whether a value is cut, so that the entry holds only its beginning. */
  readonly isCut: boolean;
}

function readEntry(entry: Uint8Array, { fields }: TableIndex): Entry {
  let end = 0;
  let hasNull = false;
  let isCut = false;
  for (const { typeId } of fields) {
    hasNull ||= entry[end] === 0;
    end = skipKeyComponent(entry, end, typeId);
    isCut ||= isTruncatedComponent(entry, end, typeId);
  }
  return { values: entry.subarray(0, end), primaryKey: entry.subarray(end), hasNull, isCut };
}

/** Rows whose entries hold the same values. If values are truncated, the rows must be read to compare them. */
class Alike {
  readonly #state: TableState;
  readonly #index: TableIndex;
  readonly #first: Uint8Array;
  /** Primary keys by a hash of their rows' values. Undefined until two rows have to be compared. */
  #byHash: Map<number, Uint8Array[]> | undefined;

  constructor(state: TableState, index: TableIndex, first: Entry) {
    this.#state = state;
    this.#index = index;
    this.#first = first.primaryKey;
  }

  /** Adds a row, and returns the primary key of an earlier row that it agrees with. */
  async add({ isCut, primaryKey }: Entry): Promise<Uint8Array | undefined> {
    if (!isCut) return this.#first;
    if (this.#byHash === undefined) {
      this.#byHash = new Map();
      await this.#addLong(this.#byHash, this.#first);
    }
    return this.#addLong(this.#byHash, primaryKey);
  }

  async #addLong(byHash: Map<number, Uint8Array[]>, primaryKey: Uint8Array): Promise<Uint8Array | undefined> {
    const own = await this.#valuesOf(primaryKey);
    const hash = hashOf(own, 0, own.length);
    const known = byHash.get(hash) ?? [];
    for (const other of known) if (compareBytes(await this.#valuesOf(other), own) === 0) return other;
    byHash.set(hash, [...known, primaryKey]);
    return undefined;
  }

  async #valuesOf(primaryKey: Uint8Array): Promise<Uint8Array> {
    const row = await this.#state.tree.lookup(primaryKey);
    const writer = new ByteWriter();
    if (row !== undefined) writeWholeValues(writer, this.#index, row.source, row.base);
    return writer.finish();
  }
}

/**
 * Finds rows in blocks that agree with an earlier row in the fields of a unique index, at most `limit`, in the order of the index.
 * `tree`: the entries to search, if not those of the state. Flushes prevent duplicates in the active version. A next version can
 * have some, because instances that write the active version do not know its indexes.
 */
export async function findDuplicates(
  state: TableState,
  index: TableIndex,
  pacer: Pacer,
  limit: number,
  tree: Tree | undefined = state.indexes.get(index.name),
): Promise<Duplicate[]> {
  const found: Duplicate[] = [];
  if (tree === undefined) return found;
  const cursor = readAll(tree);
  const keys = new Neighbours(index);
  let alike: Alike | undefined;
  while (found.length < limit && (await cursor.next())) {
    const { node, from, to } = cursor;
    for (let i = from; i < to && found.length < limit; i++) {
      if (!keys.move(node, i)) {
        alike = undefined;
        continue;
      }
      const entry = readEntry(keys.present, index);
      if (entry.hasNull) continue;
      alike ??= new Alike(state, index, readEntry(keys.before, index));
      const other = await alike.add(entry);
      if (other === undefined) continue;
      const [key, otherKey] = [entry.primaryKey, other].map((each) => state.shape.keyValue(each));
      found.push({
        index,
        key,
        other: otherKey,
        value: valuesIn(entry.values, index.fields).map(describeValue).join(', '),
      });
    }
    if (pacer.due()) await pacer.pause();
  }
  return found;
}

/** The bytes of an entry and of the one before it. Most differ early, so they are compared before anything is read from them. */
class Neighbours {
  readonly #index: TableIndex;
  #before = new Uint8Array(64);
  #beforeLength = 0;
  #present = new Uint8Array(64);
  #length = 0;

  constructor(index: TableIndex) {
    this.#index = index;
  }

  get before(): Uint8Array {
    return this.#before.slice(0, this.#beforeLength);
  }

  get present(): Uint8Array {
    return this.#present.slice(0, this.#length);
  }

  /** Moves to an entry. Returns whether it has the same values as the one before. */
  move(node: Node, i: number): boolean {
    [this.#before, this.#present] = [this.#present, this.#before];
    this.#beforeLength = this.#length;
    this.#length = node.keyLength(i);
    if (this.#present.length < this.#length) this.#present = new Uint8Array(this.#length * 2);
    const present = this.#present;
    node.copyKey(i, present, 0);
    const before = this.#before;
    const shorter = Math.min(this.#beforeLength, this.#length);
    let common = 0;
    while (common < shorter && before[common] === present[common]) common++;
    let end = 0;
    for (const { typeId } of this.#index.fields) {
      end = endWithin(present, end, common, typeId);
      if (end < 0) return false;
    }
    return true;
  }
}
