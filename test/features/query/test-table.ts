/** A table built by hand for tests of queries: rows in trees of small blocks, and layers of unmerged changes on top. */
import { ByteWriter, fromHex, toHex } from '../../../src/base/bytes.ts';
import { realEnvironment } from '../../../src/base/env.ts';
import { SchemaNotFoundError } from '../../../src/base/errors.ts';
import { Pacer } from '../../../src/base/pacer.ts';
import { RowArena, appendNullRow, writeField } from '../../../src/format/row-encode.ts';
import { mergeVersion } from '../../../src/merge/merge-table.ts';
import type { MergedTree } from '../../../src/merge/growing-tree.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import { openCached } from '../../../src/cache/cached-node.ts';
import { openNode } from '../../../src/format/node.ts';
import { rowDeletedFlag } from '../../../src/format/row-layout.ts';
import type { LayoutField } from '../../../src/format/row-layout.ts';
import { normalizeValue } from '../../../src/format/values.ts';
import { BlockCache } from '../../../src/cache/block-cache.ts';
import { Query } from '../../../src/query/query.ts';
import { searching } from '../../../src/query/searching.ts';
import { s3StandardPrices } from '../../../src/storage/prices.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { RegisteredFunction } from '../../../src/schema/registered-functions.ts';
import type { QueryHost } from '../../../src/query/planner/query-host.ts';
import { QueryMemory } from '../../../src/query/planner/query-host.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { indexLeafShape } from '../../../src/schema/table-shape.ts';
import type { TableShape } from '../../../src/schema/table-shape.ts';
import { layeredState } from '../../../src/view/layered-state.ts';
import type { TableState } from '../../../src/view/table-state.ts';
import { ViewContext } from '../../../src/view/view.ts';
import { StoredBlocks } from '../../../src/tree/stored-blocks.ts';
import { Uploads } from '../../../src/tree/block-writer.ts';
import { Tree, treeOfNode } from '../../../src/tree/tree.ts';

export type Row = Record<string, unknown>;

export interface TestTableOptions {
  readonly blockSizeBytes?: number;
  readonly cacheBytes?: number;
  /** Whether trees have their roots in memory for good, as those of Block 0 have. Default false. */
  readonly inlineRoots?: boolean;
}

const prefix = 'test';

export class TestTable implements QueryHost {
  readonly environment = realEnvironment;
  readonly prices = s3StandardPrices;
  readonly driver: MemoryDriver = new MemoryDriver();
  readonly shape: TableShape;
  readonly functions = new Map<string, RegisteredFunction>();
  readonly queryMemory: QueryMemory = new QueryMemory();
  readonly searching: typeof searching = searching;
  /** Whether queries are given the state at once, or after a promise. */
  late = false;
  /** Called when a query misses a block. */
  onMissing: (state: TableState) => Promise<boolean> = () => Promise.resolve(false);
  state: TableState;
  /** Reads of the store. */
  requests = 0;
  readonly #cache: BlockCache;
  readonly #arena = new RowArena('test/rows');
  readonly #reader: StoredBlocks;
  readonly #blockSizeBytes: number;
  readonly #inlineRoots: boolean;
  #birth = 0;

  constructor(schema: SchemaDefinition, options: TestTableOptions = {}) {
    this.#cache = new BlockCache(options.cacheBytes ?? 64 * 1024 * 1024);
    const get = this.driver.get.bind(this.driver);
    this.driver.get = (key, given) => {
      this.requests++;
      return get(key, given);
    };
    this.#reader = new StoredBlocks(this.driver, prefix, this.#cache);
    this.#inlineRoots = options.inlineRoots ?? false;
    this.#blockSizeBytes = options.blockSizeBytes ?? 2048;
    this.state = new ViewContext(this.#reader).emptyTable(toStoredSchema(schema));
    this.shape = this.state.shape;
  }

  /** Adds a layer of rows that are inserted or replaced, and of primary keys that are deleted. */
  async commit(rows: readonly Row[], deleted: readonly unknown[] = []): Promise<void> {
    const layer = await this.layer(rows, deleted);
    if (layer !== undefined) this.state = stacked(this.state, layer);
  }

  /** A layer of rows that are inserted or replaced, and of marks of deletion; undefined if there are none. */
  async layer(rows: readonly Row[], deleted: readonly unknown[] = []): Promise<Tree | undefined> {
    const { layout } = this.shape;
    const primaryKey = this.shape.keyField as LayoutField;
    const { writer, heapWriter } = this.#arena;
    const bases = new Map<string, number>();
    const add = (key: unknown, document: Row, marks: number): void => {
      const base = appendNullRow(layout, writer);
      writer.bytes[base] = (writer.bytes[base] as number) | marks;
      for (const field of layout.fields) {
        const value = document[field.name];
        if (value !== undefined && value !== null) writeField(writer, base, heapWriter, field, value);
      }
      const bytes = new ByteWriter(64);
      this.shape.writeKey(bytes, normalizeValue(primaryKey.typeId, key));
      bases.set(toHex(bytes.finish()), base);
    };
    for (const row of rows) add(row[primaryKey.name], row, 0);
    for (const key of deleted) add(key, {}, rowDeletedFlag);
    if (bases.size === 0) return undefined;
    const entries = new NodeEntries(this.shape.changeShape);
    for (const key of [...bases.keys()].toSorted()) {
      const bytes = fromHex(key) as Uint8Array;
      entries.addRow(bytes, 0, bytes.length, this.#arena, bases.get(key) as number);
    }
    return treeOfNode(openNode('test/layer', entries.encode('test/layer', 0, entries.count)));
  }

  /** Merges all layers into the trees. */
  async merge(): Promise<void> {
    const uploads = new Uploads({ driver: this.driver, prefix, environment: this.environment });
    const merged = await mergeVersion(this.state, {
      environment: this.environment,
      cache: this.#cache,
      uploads,
      birth: ++this.#birth,
      pacer: new Pacer(this.environment),
      counters: { merges: 0, lostMerges: 0, blocksWritten: 0, splits: 0, joins: 0, rootSplits: 0 },
      blockSizeBytes: this.#blockSizeBytes,
      indexBufferBytes: 1024 * 1024,
      functions: () => undefined,
    });
    const tree = await this.#treeOf(merged.tree);
    const indexes = new Map<string, Tree>();
    for (const [name, index] of merged.indexes) indexes.set(name, await this.#treeOf(index));
    await uploads.finish();
    this.state = layeredState(this.shape, tree, indexes);
  }

  async #treeOf({ place, writer, root, words }: MergedTree): Promise<Tree> {
    const source = this.#reader.tree(place, place.index === undefined ? this.shape.leafShape : indexLeafShape);
    if (root.kind === 'empty') return new Tree(source, null);
    const ofWords = words === undefined ? {} : { words };
    if (root.kind === 'stored') return new Tree(source, { ...root.ref, level: root.level, ...ofWords });
    const { entries } = root;
    const ref = await writer.put(entries, 0, entries.count);
    const node = this.#inlineRoots ? openCached('root', entries.encode('root', 0, entries.count)) : undefined;
    return new Tree(source, { ...ref, level: entries.shape.level, ...ofWords }, node);
  }

  /** Makes every block be read from the driver again. */
  forgetBlocks(): void {
    this.#cache.clear();
  }

  register(name: string, fn: (row: Row) => unknown): void {
    this.functions.set(name, { name, fn, version: undefined });
  }

  get owner(): this {
    return this;
  }

  get source(): this {
    return this;
  }

  readonly databaseId = 'test';

  query(table: string = this.shape.name): Query<Row> {
    return new Query(this, table);
  }

  shapeOf(table: string): TableShape | undefined {
    return table === this.shape.name ? this.shape : undefined;
  }

  tableState(table: string): TableState | Promise<TableState> {
    if (table !== this.shape.name) throw new SchemaNotFoundError(table);
    return this.late ? Promise.resolve(this.state) : this.state;
  }

  keeperOf(): undefined {
    return undefined;
  }

  viewMovedOn(state: TableState): Promise<boolean> {
    return this.onMissing(state);
  }
}

/** The state with a layer on top that is not joined with those below. */
export function stacked(state: TableState, layer: Tree): TableState {
  return layeredState(state.shape, state.tree, state.indexes, [layer, ...state.layers]);
}
