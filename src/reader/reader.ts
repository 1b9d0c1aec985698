/** Readers of bundles: what an application holds. */
import { namingAborts, newAbortController, untilAborted } from '../base/abort.ts';
import { realEnvironment } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import {
  AbortedError,
  BlobNotFoundError,
  CorruptionError,
  DatabaseReplacedError,
  NotADatabaseError,
  SchemaNotFoundError,
  SnapshotExpiredError,
} from '../base/errors.ts';
import { consoleLogger, filteredLogger } from '../base/logger.ts';
import { defined, signalOptions } from '../base/options.ts';
import type { KeyFor } from '../batch/batch.ts';
import { BlobReference } from '../blob/blob-reference.ts';
import { BlobStore } from '../blob/blob-store.ts';
import { blobsTable, checkBlobRecord } from '../blob/blob-rows.ts';
import type { BlobRecord } from '../blob/blob-rows.ts';
import { ExternalCache } from '../cache/external-cache.ts';
import { InstanceMemory } from '../cache/instance-memory.ts';
import type { MemoryStats } from '../cache/instance-memory.ts';
import {
  bundleBlobsPrefix,
  decodeManifest,
  decodePointer,
  maxManifestBytes,
  maxPackedBytes,
  maxPointerBytes,
  pointerName,
  unpackBundleObject,
} from '../format/bundle.ts';
import type { BundlePointer, ListedBundle } from '../format/bundle.ts';
import { blobName, block0Name } from '../format/object-names.ts';
import { isSystemTable } from '../format/stored-schema.ts';
import type { StoredRoot, StoredTable, StoredTableVersion } from '../format/stored-table.ts';
import { isCount } from '../format/stored-table.ts';
import { isUuid } from '../format/values.ts';
import type { CallOptions } from '../instance/options.ts';
import type { RowFor } from '../instance/trigger-api.ts';
import { QueryMemory } from '../query/planner/query-host.ts';
import type { QueryHost } from '../query/planner/query-host.ts';
import { Query } from '../query/query.ts';
import { RowGetter } from '../query/row-getter.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import type { SchemaDefinition } from '../schema/schema.ts';
import { toDefinition } from '../schema/stored-definition.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableRef } from '../schema/table-ref.ts';
import { indexLeafShape, shapeOf } from '../schema/table-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { checkUrl, FetchDriver } from '../storage/fetch-driver.ts';
import { s3StandardPrices } from '../storage/prices.ts';
import type { PriceTable } from '../storage/prices.ts';
import { Tree } from '../tree/tree.ts';
import { TableState } from '../view/table-state.ts';
import { BundleBlocks } from './bundle-blocks.ts';
import { checkReaderOptions } from './reader-options.ts';
import type { CheckedReaderOptions, ReaderOptions } from './reader-options.ts';
import type { ReaderSearches } from './reader-search.ts';

/** An estimate of the size of a block, in bytes. */
const blockBytes = 48 * 1024;

/** One bundle, opened. */
interface OpenBundle {
  readonly source: string;
  readonly listed: ListedBundle;
  readonly tables: ReadonlyMap<string, TableState>;
}

/** The figures of a reader. */
export interface ReaderFigures {
  /** Requests sent since it was opened. */
  readonly requests: number;
  /** Bytes of the answers. */
  readonly receivedBytes: number;
  /** The present use of memory. */
  readonly memory: MemoryStats;
}

/** The parts of a reader that depend on the server alone. */
class Bundles {
  readonly #environment: Environment;
  readonly #driver: FetchDriver;
  readonly memory: InstanceMemory;
  readonly #second: ExternalCache | undefined;

  constructor(environment: Environment, driver: FetchDriver, { maxMemoryBytes, cache, logger }: CheckedReaderOptions) {
    this.#environment = environment;
    this.#driver = driver;
    this.memory = new InstanceMemory({ maxBytes: maxMemoryBytes, blockBytes });
    const log = filteredLogger(logger ?? consoleLogger, 'warn');
    this.#second = cache && new ExternalCache({ driver: cache, environment: this.#environment, logger: log });
  }

  async readPointer(signal: AbortSignal | undefined): Promise<BundlePointer> {
    const options = { maxBytes: maxPointerBytes, ...defined({ signal }) };
    const found = await this.#driver.get(pointerName, options);
    if (found.status === 'found') return decodePointer(found.bytes);
    const block0 = await this.#driver.get(block0Name, { range: { start: 0, end: 0 }, ...defined({ signal }) });
    throw new NotADatabaseError(
      block0.status === 'found'
        ? `There is a database at ${this.#driver.urlOf('')}, and no bundle. Publish tables with db.publish(), or open a replica: StoreDb({ ` +
            "role: 'replica', nodeId: 0, dbPrefix, driver: new FetchDriver({ url }) })."
        : `There is no bundle at ${this.#driver.urlOf('')}: ${this.#driver.urlOf(pointerName)} is missing. Publish one, or correct the URL.`,
    );
  }

  async open({ source, bundles }: BundlePointer, signal: AbortSignal | undefined): Promise<OpenBundle> {
    const listed = bundles[0] as ListedBundle;
    const name = listed.manifest;
    const maxBytes = maxPackedBytes(maxManifestBytes);
    const found = await this.#driver.get(name, { maxBytes, ...defined({ signal }) });
    if (found.status !== 'found') {
      throw new SnapshotExpiredError(
        `The manifest ${name} of the newest bundle is missing: a cache on the way answered with an old pointer, or the bundle was ` +
          'removed. Try again, and see that the pointer is not cached.',
      );
    }
    const manifest = decodeManifest(name, unpackBundleObject(name, found.bytes, maxManifestBytes));
    if (manifest.source !== source) throw new CorruptionError(name, 'The manifest belongs to another database');
    this.#second?.useDatabase(source);
    const blocks = new BundleBlocks(this.#driver, this.memory, this.#second, manifest.inlined);
    blocks.takeInlined();
    const tables = manifest.tables.map((table) => [table.name, stateOf(blocks, table)] as const);
    return { source, listed, tables: new Map(tables) };
  }
}

function stateOf(blocks: BundleBlocks, { name, versions }: StoredTable): TableState {
  const { schema, root, indexes } = versions[0] as StoredTableVersion;
  const shape = shapeOf(schema);
  const treeOf = (index: string, indexRoot: StoredRoot): Tree =>
    new Tree(blocks.tree({ table: name, index }, indexLeafShape), indexRoot);
  const rows = new Tree(blocks.tree({ table: name }, shape.leafShape), root);
  return new TableState(shape, rows, new Map(indexes.map((index) => [index.name, treeOf(index.name, index.root)])));
}

function closed(what: string): AbortedError {
  return new AbortedError(`${what} came after the end of its reader: open another one with openReader().`);
}

const noFunctions: ReadonlyMap<string, RegisteredFunction> = new Map();

/** The host of a reader's queries. */
class ReaderHost implements QueryHost {
  readonly environment: Environment;
  readonly queryMemory = new QueryMemory();
  readonly prices: PriceTable = s3StandardPrices;
  readonly functions = noFunctions;
  bundle: OpenBundle;
  readonly searching: ReaderSearches | undefined;
  isClosed = false;

  constructor({ environment, bundle, search }: ReaderParts) {
    this.environment = environment;
    this.bundle = bundle;
    this.searching = search;
  }

  get owner(): this {
    return this;
  }

  get source(): this {
    return this;
  }

  get databaseId(): string {
    return this.bundle.source;
  }

  check(callName: string): void {
    if (this.isClosed) throw closed(callName);
  }

  shapeOf(table: string): TableShape | undefined {
    return this.bundle.tables.get(table)?.shape;
  }

  tableState(table: string): TableState {
    this.check('A query');
    const state = this.bundle.tables.get(table);
    if (state === undefined)
      throw new SchemaNotFoundError(table, `. The bundle has ${[...this.bundle.tables.keys()].join(', ') || 'none'}.`);
    return state;
  }

  /** A block is missing: the bundle was removed. A query runs again if the reader shows a newer bundle by now. */
  viewMovedOn(state: TableState): Promise<boolean> {
    if (this.bundle.tables.get(state.shape.name) !== state) return Promise.resolve(true);
    const { number, publishedMs } = this.bundle.listed;
    const published = new Date(publishedMs).toISOString();
    return Promise.reject(
      new SnapshotExpiredError(
        `A block of bundle ${number}, published at ${published}, is missing: the bundle was removed after a newer one was published. ` +
          'Call reader.refresh(), and read again.',
      ),
    );
  }

  keeperOf(): undefined {
    return undefined;
  }
}

/** The parts of a reader. */
interface ReaderParts {
  readonly environment: Environment;
  readonly driver: FetchDriver;
  readonly bundles: Bundles;
  readonly bundle: OpenBundle;
  readonly search: ReaderSearches | undefined;
  /** Ends all requests. */
  readonly ending: AbortController;
}

/**
 * A reader of a published bundle, as returned by `openReader()`. It shows the state of the newest bundle, until {@link refresh} finds a
 * newer one. It writes nothing.
 */
export class Reader {
  readonly #driver: FetchDriver;
  readonly #bundles: Bundles;
  readonly #host: ReaderHost;
  readonly #rows: RowGetter;
  readonly #ending: AbortController;
  #refreshing: Promise<boolean> | undefined;

  /** @internal Use `openReader()`. */
  constructor(parts: ReaderParts) {
    this.#driver = parts.driver;
    this.#bundles = parts.bundles;
    this.#host = new ReaderHost(parts);
    this.#rows = new RowGetter(this.#host);
    this.#ending = parts.ending;
  }

  /** The position in the log of the state that the reader shows. */
  get position(): number {
    return this.#host.bundle.listed.position;
  }

  /** When the bundle was published, by the clock of the process that published it. */
  get publishedAt(): Date {
    return new Date(this.#host.bundle.listed.publishedMs);
  }

  /** Returns the definitions of the published tables, ordered by name. */
  tables(): SchemaDefinition[] {
    const shapes = [...this.#host.bundle.tables.values()].map(({ shape }) => shape);
    return shapes.filter(({ name }) => !isSystemTable(name)).map(({ schema }) => toDefinition(schema));
  }

  /** Starts a query on a table, which is given by name or, for typed rows, by its schema definition. */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#host, tableName(table));
  }

  /**
   * Returns the row with a primary key, as a new plain object; undefined if there is none. Rejects with `SchemaNotFoundError` if the table
   * is not published, and with `InvalidQueryError` for a key of another type.
   */
  async get<T extends TableRef>(table: T, primaryKey: KeyFor<T>): Promise<RowFor<T> | undefined> {
    return this.#rows.get(tableName(table), primaryKey) as Promise<RowFor<T> | undefined>;
  }

  /** Returns a published blob by its reference, the UUID in a row's blob field. It reads nothing yet. */
  getBlob(reference: string): BlobReference {
    let store: BlobStore | undefined;
    return new BlobReference(
      reference,
      () => store as BlobStore,
      async (id) => {
        const { record, prefix } = await this.#blob(id);
        store = new BlobStore(this.#driver, prefix);
        return record;
      },
    );
  }

  /**
   * Returns the URL of a published blob, for an image or a download. The URL does not change, and what it names does not either. The
   * server answers with the blob's content type. Rejects with `BlobNotFoundError`.
   */
  async blobUrl(reference: string): Promise<string> {
    const { prefix } = await this.#blob(reference);
    return this.#driver.urlOf(`${prefix}/${blobName(reference.toLowerCase())}`);
  }

  async #blob(reference: string): Promise<{ readonly record: BlobRecord; readonly prefix: string }> {
    const isKnown = isUuid(reference) && this.#host.bundle.tables.has(blobsTable);
    const row = isKnown ? await this.#rows.get(blobsTable, reference) : undefined;
    if (row === undefined) throw new BlobNotFoundError(reference, `There is no blob ${reference} in the bundle.`);
    const record = checkBlobRecord(reference, row);
    const number = row['number'];
    if (!isCount(number)) throw new CorruptionError(blobName(reference), 'The record of the blob is not valid');
    return { record, prefix: bundleBlobsPrefix(number) };
  }

  /**
   * Looks for a newer bundle, and shows it from now on. Resolves to whether there was one. If there is none, that takes one request.
   * Queries that run go on with the bundle that they began with. Rejects with `DatabaseReplacedError` if bundles of another database
   * are at the URL now: open a new reader then.
   */
  async refresh(options: CallOptions = {}): Promise<boolean> {
    const { signal } = signalOptions.check('reader.refresh()', options);
    this.#host.check('reader.refresh()');
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    const refreshing = this.#refreshing;
    return namingAborts('reader.refresh()', signal, () => untilAborted(refreshing, signal));
  }

  async #refresh(): Promise<boolean> {
    const host = this.#host;
    const pointer = await this.#bundles.readPointer(undefined);
    const { source, listed } = host.bundle;
    if (pointer.source !== source) {
      throw new DatabaseReplacedError(
        `Bundles of another database are at ${this.#driver.urlOf('')} now: open a new reader.`,
      );
    }
    const newest = pointer.bundles[0] as ListedBundle;
    // A cache on the way may answer with an older pointer.
    if (newest.number < listed.number) return false;
    if (newest.manifest === listed.manifest) {
      host.bundle = { ...host.bundle, listed: newest };
      return false;
    }
    host.bundle = await this.#bundles.open(pointer, undefined);
    return true;
  }

  /** Returns figures about the reader. It makes no requests. */
  stats(): ReaderFigures {
    const { requests, receivedBytes } = this.#driver;
    return { requests, receivedBytes, memory: this.#bundles.memory.stats() };
  }

  /** Ends all requests and frees the memory. Later calls reject with `AbortedError`. */
  close(): void {
    this.#host.isClosed = true;
    this.#ending.abort(closed('The request'));
    this.#bundles.memory.close();
  }

  /** Closes the reader at the end of a block with `using reader = await openReader(...)`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/** Opens a reader whose clock and timers come from `environment`. */
export async function openReaderIn(
  environment: Environment,
  url: string | URL,
  given: ReaderOptions = {},
): Promise<Reader> {
  const options = checkReaderOptions(given);
  const { signal } = options;
  const ending = newAbortController();
  const base = checkUrl('openReader()', url);
  const driver = new FetchDriver({
    url: base,
    environment,
    signal: ending.signal,
    ...defined({ fetch: options.fetch }),
  });
  const bundles = new Bundles(environment, driver, options);
  const open = async (): Promise<OpenBundle> => bundles.open(await bundles.readPointer(signal), signal);
  try {
    const bundle = await namingAborts('openReader()', signal, () => untilAborted(open(), signal));
    return new Reader({ environment, driver, bundles, bundle, search: options.search, ending });
  } catch (error) {
    bundles.memory.close();
    throw error;
  }
}

/**
 * Opens a reader of the bundle at a URL, with two requests: for the pointer, and for the manifest. `url`: the place that was given to
 * `db.publish()`, as the server names it; in a browser it may be relative to the page. A query in it is sent with every request.
 *
 * Rejects with `NotADatabaseError` if nothing is published there, with `StorageError` if the server cannot be reached,
 * with `CorruptionError` if its answers are damaged, with `AbortedError`, and with `InvalidOptionError`.
 */
export function openReader(url: string | URL, options: ReaderOptions = {}): Promise<Reader> {
  return openReaderIn(realEnvironment, url, options);
}
