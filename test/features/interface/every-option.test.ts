/**
 * Every call of the package that takes options refuses a name that it does not know and a value of another kind, with where it
 * stands and what was meant, before anything is written or asked of the store. Which calls there are is read from the sources: a
 * call that is not listed here fails the test.
 */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  costOf,
  forEachDatabase,
  inspectBackups,
  InvalidOptionError,
  InvalidSchemaError,
  listBackups,
  pruneBackups,
  restoreBackup,
  rewriteBackups,
  rowSchema,
  s3StandardPrices,
  snippet,
  StoreDb,
  Types,
} from '../../../src/index.ts';
import type { Database, Snapshot } from '../../../src/index.ts';
import {
  DiskCacheDriver,
  FileDriver,
  MemoryDriver,
  AzureBlobDriver,
  GoogleCloudStorageDriver,
  ObjectStoreDriver,
  ObservedDriver,
} from '../../../src/storage/index.ts';
import { browserCache, FetchDriver, openReader } from '../../../src/reader.ts';
import type { Reader } from '../../../src/reader.ts';
import { liveClient } from '../../../src/live-client.ts';
import { liveHandler } from '../../../src/live-server.ts';
import { DurationProducer, instrument } from '../../../src/otel.ts';
import { studio } from '../../../src/studio.ts';
import { R2Driver } from '../../../src/workers.ts';
import { createDatabase, driverConformance, FaultyDriver, VirtualEnvironment } from '../../../src/testing/index.ts';
import { declaredIn, optionsParameters } from './public-options.ts';
import type { DeclaredOption, OptionsParameter } from './public-options.ts';

/** Options as the test makes them: any names, any values. */
type Given = Record<string, unknown>;

interface Case {
  readonly call: (options: never) => unknown;
  /** What is right, beside which one thing is wrong. Default: nothing. */
  readonly valid?: Given;
  /** What the call is known as in messages. */
  readonly what: string;
  /** Where the options stand, if they are not the last argument of a call: `to.prefix`. */
  readonly within?: string;
}

const memory = new MemoryDriver();
const driver = new ObservedDriver(memory);
const place = { driver, prefix: 'backups' };
const elsewhere = { driver, prefix: 'elsewhere' };
const encryption = { keys: { k: Uint8Array.from({ length: 32 }, (_, i) => i) }, current: 'k' };
const least = { dbPrefix: 'db', nodeId: 0, driver };
/** A binding of R2 that is never used. */
const binding = Object.fromEntries(['get', 'put', 'delete', 'list', 'head'].map((name) => [name, () => undefined]));
const folder = '/nowhere/that/a/test/would/write';

let db: Database;
let snapshot: Snapshot;
let reader: Reader;
let reference: string;

beforeAll(async () => {
  db = StoreDb({ ...least, logLevel: 'silent', writeForwardInterval: 86_400_000, compression: 'none' });
  const fields = { id: { typeId: Types.uint32 }, n: { typeId: Types.uint32 }, blob: { typeId: Types.blob } };
  for (const version of [1, 2]) db.registerSchema({ name: 't', version, primaryKey: 'id', fields });
  await db.start();
  const batch = db.batch();
  await batch.insert('t', { id: 1, n: 1, blob: db.Blob('hello') });
  await batch.flush();
  reference = (await db.get('t', 1))?.['blob'] as string;
  snapshot = await db.snapshot();
  const site = new MemoryDriver();
  await db.publish({ driver: site, prefix: 'site' });
  const fetch = async (url: string): Promise<Response> => {
    const found = await site.get(new URL(url).pathname.slice(1));
    return found.status === 'found' ? new Response(new Uint8Array(found.bytes)) : new Response(null, { status: 404 });
  };
  reader = await openReader('https://example.com/site', { fetch });
});

afterAll(async () => {
  reader.close();
  await snapshot.release();
  await db.stop();
});

const query = () => db.query('t');
const inTransaction = (run: (tx: { [call: string]: (...given: unknown[]) => unknown }) => unknown): Promise<unknown> =>
  db.transaction(async (tx) => run(tx as never), { fresh: false });
/** Adds to a batch that nobody flushes. */
const added = (add: (batch: ReturnType<Database['batch']>) => Promise<unknown>): Promise<unknown> => add(db.batch());

const cases: Readonly<Record<string, Case>> = {
  'StoreDb(options)': { call: StoreDb, what: 'StoreDb()', valid: least },
  'createDatabase(options)': {
    call: (options) => createDatabase(options, new VirtualEnvironment()),
    what: 'StoreDb()',
    valid: least,
  },
  'forEachDatabase(options)': {
    call: (options) => forEachDatabase(['one', 'two'], () => 1, options),
    what: 'forEachDatabase()',
    valid: { driver, create: true },
  },
  'instrument(options)': { call: instrument, what: 'instrument()' },
  'listBackups(place)': { call: listBackups, what: 'listBackups()', valid: place, within: 'place' },
  'restoreBackup(options)': {
    call: restoreBackup,
    what: 'restoreBackup()',
    valid: { from: place, to: elsewhere, encryption },
  },
  'pruneBackups(options)': {
    call: pruneBackups,
    what: 'pruneBackups()',
    valid: { from: place, keepLast: 1, encryption },
  },
  'inspectBackups(options)': { call: inspectBackups, what: 'inspectBackups()', valid: { from: place, encryption } },
  'rowSchema(options)': {
    call: (options) =>
      rowSchema({ name: 't', version: 1, fields: { id: { typeId: Types.int32 } }, primaryKey: 'id' }, options),
    what: 'rowSchema()',
    valid: { partial: true },
  },
  'rewriteBackups(options)': { call: rewriteBackups, what: 'rewriteBackups()', valid: { from: place, encryption } },
  'Database.start(options)': { call: (options) => db.start(options), what: 'db.start()' },
  'Database.setTargetSchemaVersion(options)': {
    call: (options) => db.setTargetSchemaVersion('t', 2, options),
    what: 'db.setTargetSchemaVersion()',
  },
  'Database.finishMigration(options)': {
    call: (options) => db.finishMigration('t', options),
    what: 'db.finishMigration()',
  },
  'Database.cancelMigration(options)': {
    call: (options) => db.cancelMigration('t', options),
    what: 'db.cancelMigration()',
  },
  'Database.migrationStatus(options)': {
    call: (options) => db.migrationStatus('t', options),
    what: 'db.migrationStatus()',
  },
  'Database.indexes(options)': { call: (options) => db.indexes('t', options), what: 'db.indexes()' },
  'Database.dropIndex(options)': { call: (options) => db.dropIndex('t', 'n', options), what: 'db.dropIndex()' },
  'Database.dropTable(options)': { call: (options) => db.dropTable('t', options), what: 'db.dropTable()' },
  'Database.transaction(options)': { call: (options) => db.transaction(() => 1, options), what: 'db.transaction()' },
  'Database.Blob(options)': { call: (options) => db.Blob('content', options), what: 'db.Blob()' },
  'Database.refresh(options)': { call: (options) => db.refresh(options), what: 'db.refresh()' },
  'Database.changes(options)': { call: (options) => db.changes(options), what: 'db.changes()' },
  'Database.resolveCommit(options)': {
    call: (options) => db.resolveCommit({ commitId: reference, slot: 1 }, options),
    what: 'db.resolveCommit()',
  },
  'Database.checkpoint(options)': { call: (options) => db.checkpoint(options), what: 'db.checkpoint()' },
  'Database.verify(options)': { call: (options) => db.verify(options), what: 'db.verify()' },
  'Database.repair(options)': { call: (options) => db.repair(options), what: 'db.repair()' },
  'Database.snapshot(options)': { call: (options) => db.snapshot(options), what: 'db.snapshot()' },
  'Database.at(options)': { call: (options) => db.at(0, options), what: 'db.at()' },
  'Database.snapshots(options)': { call: (options) => db.snapshots(options), what: 'db.snapshots()' },
  'Database.releaseSnapshot(options)': {
    call: (options) => db.releaseSnapshot('0-none', options),
    what: 'db.releaseSnapshot()',
  },
  'Database.tables(options)': { call: (options) => db.tables(options), what: 'db.tables()' },
  'Database.log(options)': { call: (options) => db.log(options), what: 'db.log()' },
  'Database.objects(options)': { call: (options) => db.objects(options), what: 'db.objects()' },
  'Database.block(options)': { call: (options) => db.block('t', options), what: 'db.block()' },
  'Database.load(options)': { call: (options) => db.load('t', [], options), what: 'db.load()' },
  'Database.unfinishedLoads(options)': { call: (options) => db.unfinishedLoads(options), what: 'db.unfinishedLoads()' },
  'Database.discardLoad(options)': { call: (options) => db.discardLoad('none', options), what: 'db.discardLoad()' },
  'Database.gc(options)': { call: (options) => db.gc(options), what: 'db.gc()' },
  'Database.backup(to)': { call: (to) => db.backup(to), what: 'db.backup()', valid: place, within: 'to' },
  'Database.backup(options)': { call: (options) => db.backup(place, options), what: 'db.backup()' },
  'Database.clone(to)': { call: (to) => db.clone(to), what: 'db.clone()', valid: elsewhere, within: 'to' },
  'Database.clone(options)': { call: (options) => db.clone(elsewhere, options), what: 'db.clone()' },
  'Database.publish(to)': { call: (to) => db.publish(to), what: 'db.publish()', valid: elsewhere, within: 'to' },
  'Database.publish(options)': { call: (options) => db.publish(elsewhere, options), what: 'db.publish()' },
  'Database.rewrite(options)': { call: (options) => db.rewrite(options), what: 'db.rewrite()' },
  'Database.doctor(options)': { call: (options) => db.doctor(options), what: 'db.doctor()' },
  'Transaction.upsert(options)': {
    call: (options) => inTransaction((tx) => tx['upsert']?.('t', { id: 5 }, options)),
    what: 'batch.upsert()',
  },
  'Transaction.update(options)': {
    call: (options) => inTransaction((tx) => tx['update']?.('t', { id: 1, n: 2 }, options)),
    what: 'batch.update()',
  },
  'Transaction.increment(options)': {
    call: (options) => inTransaction((tx) => tx['increment']?.('t', 1, { n: 2 }, options)),
    what: 'batch.increment()',
  },
  'Transaction.delete(options)': {
    call: (options) => inTransaction((tx) => tx['delete']?.('t', 1, options)),
    what: 'batch.delete()',
  },
  'Batch.upsert(options)': {
    call: (options) => added((batch) => batch.upsert('t', { id: 5 }, options)),
    what: 'batch.upsert()',
  },
  'Batch.update(options)': {
    call: (options) => added((batch) => batch.update('t', { id: 1, n: 2 }, options)),
    what: 'batch.update()',
  },
  'Batch.increment(options)': {
    call: (options) => added((batch) => batch.increment('t', 1, { n: 1 }, options)),
    what: 'batch.increment()',
  },
  'Batch.delete(options)': {
    call: (options) => added((batch) => batch.delete('t', 1, options)),
    what: 'batch.delete()',
  },
  'Batch.flush(given)': {
    call: (options) =>
      added(async (batch) => {
        await batch.upsert('t', { id: 7 });
        return batch.flush(options);
      }),
    what: 'batch.flush()',
  },
  'BlobReference.getBuffer(options)': {
    call: (options) => db.getBlob(reference).getBuffer(0, 3, options),
    what: 'getBuffer()',
  },
  'BlobReference.stream(options)': {
    call: (options) => db.getBlob(reference).stream(0, 3, options),
    what: 'stream()',
  },
  'BlobReference.getDownloadUrl(options)': {
    call: (options) => db.getBlob(reference).getDownloadUrl(options),
    what: 'getDownloadUrl()',
  },
  'Query.budget(budget)': { call: (budget) => query().budget(budget), what: 'query.budget()' },
  'Query.execute(options)': { call: (options) => query().execute(options), what: 'a query' },
  'Query.first(options)': { call: (options) => query().first(options), what: 'a query' },
  'Query.count(options)': { call: (options) => snapshot.query('t').count(options), what: 'a query' },
  'Query.page(options)': { call: (options) => query().page(options), what: 'query.page()', valid: { size: 3 } },
  'Query.min(options)': { call: (options) => query().min('n', options), what: 'a query' },
  'Query.max(options)': { call: (options) => query().limit(2).max('n', options), what: 'a query' },
  'Query.sum(options)': { call: (options) => query().sum('n', options), what: 'a query' },
  'Query.avg(options)': { call: (options) => query().avg('n', options), what: 'a query' },
  'Query.aggregate(options)': { call: (options) => query().aggregate({ all: 'count' }, options), what: 'a query' },
  'Query.search(options)': { call: (options) => query().search('red', options), what: 'query.search()' },
  'Query.explain(options)': { call: (options) => query().explain(options), what: 'query.explain()' },
  'Query.watch(options)': { call: (options) => query().watch(options), what: 'query.watch()' },
  'Query.watchCount(options)': { call: (options) => query().watchCount(options), what: 'query.watchCount()' },
  'Query.watchAggregate(options)': {
    call: (options) => query().watchAggregate({ all: 'count' }, options),
    what: 'query.watchAggregate()',
  },
  'Groups.watch(options)': {
    call: (options) => query().groupBy('n').watch({ all: 'count' }, options),
    what: 'query.groupBy().watch()',
  },
  'Groups.aggregate(options)': {
    call: (options) => query().groupBy('n').aggregate({ all: 'count' }, options),
    what: 'a query',
  },
  'costOf(prices)': {
    call: (prices) => costOf(driver.snapshot(), prices),
    what: 'costOf()',
    valid: { ...s3StandardPrices },
  },
  'new AzureBlobDriver(options)': {
    call: (options) => new AzureBlobDriver(options),
    what: 'new AzureBlobDriver()',
    valid: { container: 'data', account: 'notes' },
  },
  'new DiskCacheDriver(options)': {
    call: (options) => new DiskCacheDriver(options),
    what: 'new DiskCacheDriver()',
    valid: { path: folder },
  },
  'new FileDriver(options)': {
    call: (options) => new FileDriver(options),
    what: 'new FileDriver()',
    valid: { path: folder },
  },
  'new GoogleCloudStorageDriver(options)': {
    call: (options) => new GoogleCloudStorageDriver(options),
    what: 'new GoogleCloudStorageDriver()',
    valid: { bucket: 'app-data' },
  },
  'new ObjectStoreDriver(options)': {
    call: (options) => new ObjectStoreDriver(options),
    what: 'new ObjectStoreDriver()',
    valid: { bucket: 'app-data' },
  },
  'new FetchDriver(options)': {
    call: (options) => new FetchDriver(options),
    what: 'new FetchDriver()',
    valid: { url: 'https://example.com/data' },
  },
  'new R2Driver(options)': {
    call: (options) => new R2Driver(options),
    what: 'new R2Driver()',
    valid: { bucket: binding, name: 'data' },
  },
  'browserCache(options)': { call: (options) => browserCache(options), what: 'browserCache()' },
  'snippet(options)': { call: (options) => snippet('text', [], options), what: 'snippet()' },
  'openReader(options)': {
    call: (options) => openReader('https://example.com/data', options),
    what: 'openReader()',
  },
  'Reader.refresh(options)': { call: (options) => reader.refresh(options), what: 'reader.refresh()' },
  'liveHandler(options)': {
    call: (options) => liveHandler(db, options),
    what: 'liveHandler()',
    valid: { authorize: () => true, queries: { all: { watch: () => db.query('t').watch() } } },
  },
  'liveClient(options)': { call: (options) => liveClient('/live', options), what: 'liveClient()' },
  'studio(options)': {
    call: (options) => studio(db, options),
    what: 'studio()',
    valid: { authorize: () => true, prices: { name: 'Ours', ...s3StandardPrices } },
  },
  'new DurationProducer(options)': {
    call: (options) => new DurationProducer(options),
    what: 'new DurationProducer()',
  },
  'new MemoryDriver(options)': { call: (options) => new MemoryDriver(options), what: 'new MemoryDriver()' },
  'new ObservedDriver(options)': {
    call: (options) => new ObservedDriver(memory, options),
    what: 'new ObservedDriver()',
  },
  'driverConformance(options)': {
    call: driverConformance,
    what: 'driverConformance()',
    valid: { create: () => memory },
  },
  'new FaultyDriver(options)': { call: (options) => new FaultyDriver(memory, options), what: 'new FaultyDriver()' },
  'new VirtualEnvironment(options)': {
    call: (options) => new VirtualEnvironment(options),
    what: 'new VirtualEnvironment()',
  },
  'VirtualEnvironment.fork(options)': {
    call: (options) => new VirtualEnvironment().fork(options),
    what: 'environment.fork()',
  },
};

/** Parameters that take no options, although their types are objects of properties. */
const others: Readonly<Record<string, string>> = {
  'Database.registerSchema(schema)': 'refused with InvalidSchemaError: see below',
  'Database.resolveCommit(commit)': 'an error, which has more properties',
  'Transaction.deleteWhere(query)': 'a query',
  'Batch.deleteWhere(query)': 'a query',
  'useLiveQuery(store)': 'a store; its options are for each rendering, and are not checked',
  'formatStoreReport(report)': 'what db.doctor() resolved to',
  'AzureBlobDriver.presign(options)': 'a call that StoreDb makes; a driver may be given more than it knows',
  'FileDriver.forget(options)': 'a call that StoreDb makes; a driver may be given more than it knows',
  'FileDriver.copy(options)': 'a call that StoreDb makes; a driver may be given more than it knows',
  'GoogleCloudStorageDriver.presign({})': 'a call that StoreDb makes; a driver may be given more than it knows',
  'ObjectStoreDriver.presign({})': 'a call that StoreDb makes; a driver may be given more than it knows',
};

/** What goes wrong with numbers that may have a fraction, or be negative. */
const fractions = /^(?:prices\.)?per|^faults\.|^health\.|^(?:requests|bytes|ms|startMs|lookMs)$/;

/** Values that an option of a type does not take. */
function wrongValues({ path, type }: DeclaredOption): readonly unknown[] {
  if (type === 'boolean') return ['yes', 1, null];
  if (type === 'number') return ['7', Number.NaN, -1, null, ...(fractions.test(path) ? [] : [0.5])];
  if (/^string\b/.test(type)) return [5, {}, ...(type.includes('null') ? [] : [null])];
  if (type.startsWith("'")) return ['no such thing', 5, null];
  if (type === 'AbortSignal') return ['soon', {}, new AbortController(), null];
  if (type === "number | 'auto'") return [256, 0.5, 'Auto', null];
  if (type === 'number | string') return [true, {}, null];
  // Which conditions there are is known by the table.
  if (type.includes('ConditionOf')) return [];
  return [5, 'text', null];
}

/** A name that is nearly the one at the end of a path. */
function mistyped(path: string): string {
  return `${path}${path.at(-1)}`;
}

/** Options that are only valid as a whole. */
const complete: Given = {
  credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
  encryption,
  prices: s3StandardPrices,
};

/** `valid` with one more thing in it, at a path. */
function having(valid: Given, path: string, value: unknown): Given {
  const [first, ...rest] = path.split('.') as [string, ...string[]];
  if (rest.length === 0) return { ...valid, [first]: value };
  const inner = valid[first] ?? complete[first] ?? {};
  return { ...valid, [first]: having(inner as Given, rest.join('.'), value) };
}

async function refusalOf({ call }: Case, { returnsPromise }: OptionsParameter, given: Given): Promise<Error> {
  const before = driver.snapshot();
  let error: unknown;
  let returned: unknown;
  let hasThrown = false;
  try {
    returned = call(given as never);
  } catch (cause) {
    [error, hasThrown] = [cause, true];
  }
  if (!hasThrown) {
    error = await Promise.resolve(returned).then(
      () => undefined,
      (cause: unknown) => cause,
    );
  }
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(hasThrown).toBe(!returnsPromise);
  expect(driver.snapshot()).toEqual(before);
  return error as Error;
}

it('every call that takes options is listed, and no other', () => {
  const found = optionsParameters.map(({ call }) => call);
  expect(found.length).toBeGreaterThan(60);
  expect(new Set([...Object.keys(cases), ...Object.keys(others)])).toEqual(new Set(found));
});

const tried = optionsParameters.flatMap((parameter): [string, OptionsParameter, Case][] => {
  const found = cases[parameter.call];
  return found === undefined ? [] : [[parameter.call, parameter, found]];
});
const storeDbOptions = declaredIn('StoreDbOptions').filter(({ path }) => path !== 'dbPrefix');

describe.each(tried)('%s', (name, parameter, { valid = {}, within, ...rest }) => {
  const tryOut = { valid, ...rest };
  const own = parameter.options.filter(({ path }) => path !== 'nodeId' || name !== 'forEachDatabase(options)');
  const options = name === 'forEachDatabase(options)' ? [...own, ...storeDbOptions] : own;
  const placeOf = (path: string): string => (within === undefined ? path : `${within}.${path}`);

  it('refuses a name that is nearly one of its options', async () => {
    for (const { path } of options) {
      const error = await refusalOf(tryOut, parameter, having(valid, mistyped(path), undefined));
      expect(error).toMatchObject({ option: placeOf(mistyped(path)) });
      const meant = path.split('.').at(-1) as string;
      const message = `Option \`${placeOf(mistyped(path))}\` of ${rest.what} is not known; did you mean \`${meant}\`?`;
      expect(error.message).toContain(message);
    }
  });

  it('refuses values of another kind', async () => {
    for (const option of options) {
      for (const value of wrongValues(option)) {
        const error = await refusalOf(tryOut, parameter, having(valid, option.path, value));
        expect(error).toMatchObject({ option: placeOf(option.path) });
        expect(error.message).toMatch(/^Option `[\w.]+` of .+ is .+; it must be .+\.$/s);
        expect(error.message).toContain(`Option \`${placeOf(option.path)}\` of ${rest.what} is `);
      }
    }
  });

  it('refuses options that are no object of options', async () => {
    for (const given of [null, 5, [], AbortSignal.timeout(1000)]) {
      const error = await refusalOf(tryOut, parameter, given as never);
      expect(error.message).toContain(` of ${rest.what} `);
    }
  });
});

it('of the encryption of an object store, only one algorithm takes a key', () => {
  const make = (given: object): unknown => new ObjectStoreDriver({ bucket: 'app-data', encryption: given as never });
  expect(() => make({ algorithm: 'aws:kms', keyID: 'key' })).toThrow('did you mean `keyId`?');
  expect(() => make({ algorithm: 'AES256', keyId: 'key' })).toThrow(
    'Option `encryption.keyId` of new ObjectStoreDriver()',
  );
  expect(() => make({ algorithm: 'AES' })).toThrow(
    "`encryption.algorithm` of new ObjectStoreDriver() is 'AES'; it must be",
  );
});

it('faults that are set later are checked as well', () => {
  const faulty = new FaultyDriver(memory);
  expect(() => (faulty.faults = { lostAnswers: 1 } as never)).toThrow('did you mean `lostAnswer`?');
  expect(faulty.faults).toEqual({});
});

describe('a definition', () => {
  const field = { typeId: Types.uint32 };
  const definition = { name: 'u', version: 1, primaryKey: 'id', fields: { id: field, n: field } };
  const places: readonly [string, string, (property: string) => object][] = [
    ['SchemaDefinition', "table 'u'", (property) => ({ ...definition, [property]: 1 })],
    [
      'FieldDefinition',
      "field 'n' of table 'u'",
      (property) => ({ ...definition, fields: { id: field, n: { ...field, [property]: 1 } } }),
    ],
    [
      'IndexDefinition',
      "an index of table 'u'",
      (property) => ({ ...definition, indexes: [{ fields: ['n'], [property]: 1 }] }),
    ],
    [
      'FunctionIndexDefinition',
      "an index on a function of table 'u'",
      (property) => ({ ...definition, indexes: [{ function: 'f', typeId: Types.boolean, [property]: 1 }] }),
    ],
  ];

  it.each(places)('refuses a name that is nearly a property: %s', (type, what, make) => {
    const before = driver.snapshot();
    for (const { path } of declaredIn(type)) {
      if (path.includes('.')) continue;
      const register = (): void => db.registerSchema(make(mistyped(path)) as never);
      expect(register).toThrow(InvalidSchemaError);
      expect(register).toThrow(`Property \`${mistyped(path)}\` of ${what} is not known; did you mean \`${path}\`?`);
    }
    expect(driver.snapshot()).toEqual(before);
  });

  it('says so where the name of the table is mistyped', () => {
    const { name, ...rest } = definition;
    expect(() => db.registerSchema({ ...rest, nmae: name } as never)).toThrow('did you mean `name`?');
  });
});

it('nothing was written to a folder', () => {
  expect(existsSync(folder)).toBe(false);
});
