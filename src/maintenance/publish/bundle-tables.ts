/** Builds the tables of a bundle: the tree of each, of its indexes, and of the blobs that its rows refer to. */
import { isPromise } from '../../base/brands.ts';
import { CorruptionError } from '../../base/errors.ts';
import type { Pacer } from '../../base/pacer.ts';
import { BlobStore } from '../../blob/blob-store.ts';
import { checkBlobRecord } from '../../blob/blob-rows.ts';
import { blobsSchema, publishedBlobsSchema } from '../../blob/blob-tables.ts';
import { ByteWriter } from '../../base/bytes.ts';
import { bundleBlobsPrefix, numberInBlob } from '../../format/bundle.ts';
import { KeyList } from '../../format/key-list.ts';
import type { EntryShape } from '../../format/node-entries.ts';
import { blobName } from '../../format/object-names.ts';
import type { TreePlace } from '../../format/object-names.ts';
import { decodeRow, readField } from '../../format/row-decode.ts';
import type { RowSource } from '../../format/row-layout.ts';
import { appendNullRow, writeField } from '../../format/row-encode.ts';
import type { StoredRoot, StoredTable } from '../../format/stored-table.ts';
import { writeIndexEntries } from '../../schema/index-entries.ts';
import { indexLeafShape, TableShape } from '../../schema/table-shape.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import { prepareTexts } from '../../schema/text-indexes.ts';
import { rowWords } from '../../schema/text-postings.ts';
import { openCursor } from '../../tree/cursor-sequence.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import type { TableState } from '../../view/table-state.ts';
import type { View } from '../../view/view.ts';
import type { StorePlace } from '../backup/state-copy.ts';
import type { BundlePlace, KeptObjects } from './bundle-place.ts';
import { ContentTree } from './content-tree.ts';
import type { TreeBlock } from './content-tree.ts';
import { NamedValues } from './named-values.ts';
import type { PublishedTable } from './published-table.ts';
import type { PublishProgress } from './publish-options.ts';
import { RowProjection } from './row-projection.ts';

/** A block that may become part of the manifest, and how far it is below its root. */
export interface UpperBlock extends TreeBlock {
  readonly depth: number;
}

export interface BundleTablesOptions {
  readonly pacer: Pacer;
  readonly place: BundlePlace;
  readonly kept: KeptObjects;
  readonly number: number;
  readonly view: View;
  /** The place of the database. */
  readonly from: StorePlace;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: PublishProgress) => void) | undefined;
}

interface NamedRoot {
  readonly name: string;
  readonly root: StoredRoot;
}

/** An index of a bundle: its entries are collected from the published rows, or are those of the database's index. */
class NewIndex {
  readonly index: TableIndex;
  /** The index of the database, where it has these entries. */
  readonly copied: Tree | undefined;
  readonly list: KeyList = new KeyList();
  /** The words of the rows, in an index on texts. */
  words: number = 0;

  constructor(index: TableIndex, copied: Tree | undefined) {
    this.index = index;
    this.copied = copied;
  }

  /** Collects the entries of a published row. */
  add(rows: RowSource, base: number, key: Uint8Array): void {
    const { index, copied, list } = this;
    if (copied !== undefined) return;
    const first = list.count;
    const made = writeIndexEntries(list, index, rows, base, key);
    if (index.text !== undefined && made > 0) this.words += rowWords(list.key(first), index);
  }
}

/** Returns the database's index if it has the entries of the bundle's, which are those of all rows with the same included fields. */
function copiedIndex({ shape, indexes }: TableState, index: TableIndex, isFiltered: boolean): Tree | undefined {
  const includedIn = ({ text, included }: TableIndex): number =>
    text === undefined ? (included?.fields.length ?? 0) : 0;
  const own = shape.indexes.find(({ name }) => name === index.name);
  const isSame = !isFiltered && own !== undefined && includedIn(own) === includedIn(index);
  return isSame ? indexes.get(index.name) : undefined;
}

/** Rows between two reports of progress. */
const rowsInReport = 4096;
/** Larger blobs are copied in pieces. */
const maxWholeBytes = 4 * 1024 * 1024;

export class BundleTables {
  readonly #options: BundleTablesOptions;
  readonly tables: StoredTable[] = [];
  /** The blocks that are not put yet. */
  readonly upper: UpperBlock[] = [];
  /** Names of the blocks that are objects. */
  readonly blocks: Set<string> = new Set();
  /** Names of the blobs. */
  readonly blobs: string[] = [];
  rows: number = 0;
  readonly #references = new Set<string>();

  constructor(options: BundleTablesOptions) {
    this.#options = options;
  }

  /** Puts a block, unless a kept bundle has it. */
  putBlock(name: string, bytes: Uint8Array): void | Promise<void> {
    if (this.blocks.has(name)) return undefined;
    this.blocks.add(name);
    const { kept, place } = this.#options;
    return kept.has(name) ? undefined : place.put(name, bytes);
  }

  #tree(place: TreePlace, leaf: EntryShape): ContentTree {
    const { number, kept } = this.#options;
    return new ContentTree({
      place,
      leaf,
      number,
      nameFor: (key) => kept.nameFor(key),
      put: ({ name, bytes }) => this.putBlock(name, bytes),
    });
  }

  async #finish(tree: ContentTree): Promise<StoredRoot> {
    const { root, upper } = await tree.finish();
    for (const block of upper) this.upper.push({ ...block, depth: (root?.level ?? 0) - block.level });
    return root;
  }

  /** Calls `take` with each run of a cursor. */
  async #each(cursor: RunCursor, take: () => void | Promise<void>): Promise<void> {
    const { pacer, signal } = this.#options;
    cursor.expect?.(Number.POSITIVE_INFINITY);
    for (;;) {
      const moved = cursor.next();
      if (!(isPromise(moved) ? await moved : moved)) return;
      signal?.throwIfAborted();
      if (pacer.due()) await pacer.pause();
      const taken = take();
      if (isPromise(taken)) await taken;
    }
  }

  /** Adds a table with the published rows of its state. */
  async add({ state, shape, filter }: PublishedTable): Promise<void> {
    const place = { table: shape.name };
    const tree = this.#tree(place, shape.leafShape);
    const projection = new RowProjection(state.shape.layout, shape.layout);
    const { stride } = shape.layout;
    const indexes = shape.indexes.map((index) => new NewIndex(index, copiedIndex(state, index, filter !== undefined)));
    await prepareTexts(indexes.flatMap(({ index, copied }) => (copied === undefined ? [index] : [])));
    const named = new NamedValues(shape.indexes);
    const cursor = state.scan();
    await this.#each(cursor, async () => {
      const { node } = cursor;
      const picked: number[] = [];
      for (let i = cursor.from; i < cursor.to; i++) {
        if (filter === undefined || filter.matches(node, node.rowBase(i))) picked.push(i);
      }
      const rows = projection.rows(
        node,
        picked.map((i) => node.rowBase(i)),
      );
      for (let at = 0; at < picked.length; at++) {
        const key = node.key(picked[at] as number);
        const added = tree.add(key, rows, at * stride);
        if (added !== undefined) await added;
        for (const index of indexes) index.add(rows, at * stride, key);
        named.add(rows, at * stride);
        this.#noteBlobs(shape, rows, at * stride);
      }
      this.#noteRows(picked.length);
    });
    const root = await this.#finish(tree);
    const told = indexes.filter(({ index }) => named.hasAllOf(index));
    const roots: NamedRoot[] = [];
    for (const index of told) roots.push(await this.#addIndex(shape.name, index, root));
    const names = new Set(roots.map(({ name }) => name));
    const schema = { ...shape.schema, indexes: shape.schema.indexes.filter(({ name }) => names.has(name)) };
    this.tables.push({ name: shape.name, versions: [{ schema, root, indexes: roots }] });
  }

  /** Builds the tree of an index. `rows`: the root of its table. */
  async #addIndex(table: string, { index, copied, list, words }: NewIndex, rows: StoredRoot): Promise<NamedRoot> {
    const { name, text, each, where } = index;
    const tree = this.#tree({ table, index: name }, indexLeafShape);
    if (copied === undefined) await this.#sortEntries(tree, list);
    else await this.#copyEntries(tree, copied);
    const root = await this.#finish(tree);
    if (text !== undefined) return { name, root: root && { ...root, words: copied?.ref?.words ?? words } };
    const isOfAll = each === undefined && where === undefined;
    if (!isOfAll || (root?.count ?? 0) === (rows?.count ?? 0)) return { name, root };
    const message = 'The index does not have an entry for each row: run db.repair(), and publish again';
    throw new CorruptionError(`indexes/${table}/${name}`, message);
  }

  #noteRows(count: number): void {
    const before = this.rows;
    this.rows += count;
    const isDue = Math.floor(before / rowsInReport) !== Math.floor(this.rows / rowsInReport);
    if (isDue) this.#options.onProgress?.({ rows: this.rows, writtenObjects: this.#options.place.writtenObjects });
  }

  #noteBlobs({ blobFields }: TableShape, rows: RowSource, base: number): void {
    for (const field of blobFields) {
      const reference = readField(rows, base, field);
      if (typeof reference === 'string') this.#references.add(reference);
    }
  }

  async #copyEntries(to: ContentTree, from: Tree): Promise<void> {
    const cursor = openCursor(from);
    await this.#each(cursor, async () => {
      for (let i = cursor.from; i < cursor.to; i++) {
        const added = to.add(cursor.node.key(i));
        if (added !== undefined) await added;
      }
    });
  }

  async #sortEntries(to: ContentTree, list: KeyList): Promise<void> {
    const { pacer, signal } = this.#options;
    for (const at of await list.sorted(pacer)) {
      const added = to.add(list.key(at));
      if (added === undefined && !pacer.due()) continue;
      signal?.throwIfAborted();
      await added;
      if (pacer.due()) await pacer.pause();
    }
  }

  /** Adds the table of the blobs that the published rows refer to, and copies those that are not there. */
  async addBlobs(): Promise<void> {
    if (this.#references.size === 0) return;
    const state = this.#options.view.table(blobsSchema.name);
    const shape = new TableShape(publishedBlobsSchema);
    const tree = this.#tree({ table: shape.name }, shape.leafShape);
    const cursor = state?.scan();
    if (state !== undefined && cursor !== undefined) {
      await this.#each(cursor, async () => {
        for (let i = cursor.from; i < cursor.to; i++) {
          const row = decodeRow(state.shape.layout, cursor.node, cursor.node.rowBase(i));
          const reference = row['id'] as string;
          if (!this.#references.delete(reference)) continue;
          const number = await this.#bring(reference, row);
          await tree.add(cursor.node.key(i), blobRow(shape, { ...row, number }));
        }
      });
    }
    for (const missing of this.#references) {
      throw new CorruptionError(blobName(missing), 'A row refers to a blob that the database does not list');
    }
    const root = await this.#finish(tree);
    this.tables.push({ name: shape.name, versions: [{ schema: shape.schema, root, indexes: [] }] });
  }

  /** Copies a blob unless a kept bundle has it, and returns the number in its name. */
  async #bring(reference: string, row: Readonly<Record<string, unknown>>): Promise<number> {
    const { from, kept, place, number, signal } = this.#options;
    const known = kept.blob(reference);
    if (known !== undefined) {
      this.blobs.push(known);
      return numberInBlob(known);
    }
    const name = `${bundleBlobsPrefix(number)}/${blobName(reference)}`;
    this.blobs.push(name);
    const record = checkBlobRecord(reference, row);
    const { sizeBytes, contentType } = record;
    const store = new BlobStore(from.driver, from.prefix);
    if (sizeBytes <= maxWholeBytes) {
      const bytes = await store.read(reference, record, 0, sizeBytes, signal);
      await place.putBlob(name, sizeBytes, contentType, () => bytes);
    } else {
      await place.putBlob(name, sizeBytes, contentType, () => store.stream(reference, record, 0, sizeBytes, signal));
    }
    return number;
  }
}

/** Returns the row of a blob. */
function blobRow({ layout }: TableShape, values: Readonly<Record<string, unknown>>): RowSource {
  const rows = new ByteWriter(layout.stride);
  const heap = new ByteWriter();
  const base = appendNullRow(layout, rows);
  for (const field of layout.fields) writeField(rows, base, heap, field, values[field.name]);
  const { bytes, view } = rows;
  return {
    rows: bytes,
    rowsView: view,
    rowsStart: 0,
    heap: heap.finish(),
    heapStart: 0,
    heapEnd: heap.length,
    name: blobsSchema.name,
    text: undefined,
  };
}
