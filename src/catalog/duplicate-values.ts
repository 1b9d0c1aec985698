/**
 * Looks through a unique index for rows that agree in its fields. Flushes see to it that there are none in a version that is
 * the active version; while a version comes up beside it, those who write the older one do not know of its indexes.
 */
import { ByteWriter, compareBytes, compareRanges } from '../base/bytes.ts';
import { hashOf } from '../base/hash.ts';
import type { Pacer } from '../base/pacer.ts';
import { isTruncatedComponent, skipKeyComponent } from '../format/ordered-key.ts';
import { describeValue } from '../base/describe-value.ts';
import { TreeCursor } from '../tree/cursor.ts';
import type { Tree } from '../tree/tree.ts';
import { valuesIn, writeWholeValues } from '../schema/table-shape.ts';
import type { TableIndex } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';

/** A row that agrees with another one, which comes before it. */
export interface Duplicate {
  readonly index: TableIndex;
  /** Primary key of each. */
  readonly key: unknown;
  readonly other: unknown;
  /** What both have there, for people. */
  readonly value: string;
}

/** An entry taken apart. */
interface Entry {
  readonly values: Uint8Array;
  readonly primaryKey: Uint8Array;
  readonly hasNull: boolean;
  /** Whether it holds only the beginning of a value. */
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

/** Rows whose entries hold the same, of which some have to be read to tell whether they agree. */
class Alike {
  readonly #state: TableState;
  readonly #index: TableIndex;
  readonly #first: Uint8Array;
  /** Primary keys by a hash of their rows' values. Undefined while there is one row only. */
  #byHash: Map<number, Uint8Array[]> | undefined;

  constructor(state: TableState, index: TableIndex, first: Entry) {
    this.#state = state;
    this.#index = index;
    this.#first = first.primaryKey;
  }

  /** Adds a row and returns the primary key of one that it agrees with. */
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
 * Rows in blocks that agree with one before them, at most `limit`, in the order of the index's entries. `tree`: those entries,
 * where they are not the state's.
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
  const cursor = new TreeCursor(tree);
  let before: Entry | undefined;
  let alike: Alike | undefined;
  while (found.length < limit && (await cursor.next())) {
    const { node, from, to } = cursor;
    for (let i = from; i < to && found.length < limit; i++) {
      const entry = readEntry(node.key(i), index);
      if (entry.hasNull) continue;
      if (before === undefined || !agree(before, entry)) {
        before = entry;
        alike = undefined;
        continue;
      }
      alike ??= new Alike(state, index, before);
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

function agree({ values: a }: Entry, { values: b }: Entry): boolean {
  return compareRanges(a, 0, a.length, b, 0, b.length) === 0;
}
