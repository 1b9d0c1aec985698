/** The options of `StoreDb()`: each is checked at once, by an error that names it, its value and the allowed values. */
import { describe, expect, it } from 'vitest';
import StoreDbAsDefault, {
  InvalidOptionError,
  MemoryBudget,
  s3StandardPrices,
  StoreDb,
  StoreDbError,
} from '../../../src/index.ts';
import type { StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';

const good = { dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver() };

function refusal(options: unknown): InvalidOptionError {
  let refused: unknown;
  try {
    StoreDb(options as StoreDbOptions);
  } catch (error) {
    refused = error;
  }
  expect(refused).toBeInstanceOf(InvalidOptionError);
  expect(refused).toBeInstanceOf(StoreDbError);
  expect(refused).toMatchObject({ code: 'INVALID_OPTION', name: 'InvalidOptionError' });
  return refused as InvalidOptionError;
}

const noop = (): void => undefined;
const logger = { debug: noop, info: noop, warn: noop, error: noop };

describe('refused options', () => {
  it.each([
    ['dbPrefix', undefined, 'undefined', '1 to 512 UTF-8 bytes'],
    ['dbPrefix', '', "''", '1 to 512 UTF-8 bytes'],
    ['dbPrefix', 7, '7', 'a string'],
    ['dbPrefix', '/app', "'/app'", 'neither begins nor ends with /'],
    ['dbPrefix', 'app/', "'app/'", 'neither begins nor ends with /'],
    ['dbPrefix', 'é'.repeat(257), 'éé', '512'],
    ['dbPrefix', '\u{D800}', '', 'a string'],
    ['dbPrefix', 'a/../b', "'a/../b'", 'without . and ..'],
    ['dbPrefix', '_storedb/shop', "'_storedb/shop'", 'not under _storedb/'],
    ['dbPrefix', '_storedb', "'_storedb'", 'not under _storedb/'],
    ['dbPrefix', '.', "'.'", 'without . and ..'],
    ['nodeId', undefined, 'undefined', '0 to 255'],
    ['nodeId', -1, '-1', '0 to 255'],
    ['nodeId', 256, '256', '0 to 255'],
    ['nodeId', 1.5, '1.5', '0 to 255'],
    ['nodeId', '1', "'1'", '0 to 255'],
    ['nodeId', Number.NaN, 'NaN', '0 to 255'],
    ['nodeId', null, 'null', '0 to 255'],
    ['nodeId', 'Auto', "'Auto'", "'auto'"],
    ['driver', null, 'null', 'get, put, delete, list'],
    ['driver', {}, 'an object', 'get, put, delete, list'],
    ['driver', 'memory', "'memory'", 'get, put, delete, list'],
    ['logLevel', 'verbose', "'verbose'", "'debug', 'info', 'warn', 'error' or 'silent'"],
    ['logLevel', 3, '3', "'debug', 'info', 'warn', 'error' or 'silent'"],
    ['logger', {}, 'an object', 'debug, info, warn, error'],
    ['logger', { ...logger, warn: 1 }, 'an object without warn()', 'debug, info, warn, error'],
    ['logger', null, 'null', 'debug, info, warn, error'],
    ['writeForwardInterval', 0, '0', '10 to 86400000'],
    ['writeForwardInterval', 5000.5, '5000.5', '10 to 86400000'],
    ['writeForwardInterval', Infinity, 'Infinity', '10 to 86400000'],
    ['blockSizeBytes', 511, '511', '512 to 16777216'],
    ['blockSizeBytes', 2 ** 24 + 1, '16777217', '512 to 16777216'],
    ['blockSizeBytes', '65536', "'65536'", '512 to 16777216'],
    ['maxMemoryBytes', 1024, '1024', '1048576'],
    ['maxMemoryBytes', 100n, '100n', '1048576'],
    ['memory', 268_435_456, '268435456', 'a MemoryBudget, made by new MemoryBudget(bytes)'],
    ['memory', 268_435_456, '268435456', 'there is maxMemoryBytes'],
    ['memory', null, 'null', 'a MemoryBudget'],
    ['memory', { maxBytes: 268_435_456 }, '', 'a MemoryBudget'],
    ['memory', MemoryBudget, '', 'a MemoryBudget'],
    ['cacheDriver', {}, 'an object', 'get, set, delete'],
    ['cacheDriver', noop, 'a function', 'get, set, delete'],
    ['cacheBlockSize', 0, '0', '512 to 16777216'],
    ['nodes', [], 'an array', '0 to 255'],
    ['nodes', [0, 256], 'an array', '0 to 255'],
    ['nodes', 3, '3', '0 to 255'],
    ['polling', 'sometimes', "'sometimes'", "'interval', 'adaptive' or 'onDemand'"],
    ['polling', true, 'true', "'interval', 'adaptive' or 'onDemand'"],
    ['mergePolicy', 20, '20', 'minCommits, maxWaitMs'],
    ['mergePolicy', null, 'null', 'minCommits, maxWaitMs'],
    ['prices', null, 'null', 'per1000Writes'],
    ['onRequest', {}, 'an object', 'a function'],
  ])('%s: %s', (option, value, shown, allowed) => {
    const error = refusal({ ...good, [option]: value });
    expect(error.option).toBe(option);
    expect(error.message).toContain(option);
    expect(error.message).toContain(shown);
    expect(error.message).toContain(allowed);
  });

  it.each([
    ['mergePolicy.minCommit', { mergePolicy: { minCommit: 20 } }, 'is not known; did you mean `minCommits`?'],
    ['prices.gets', { prices: { ...s3StandardPrices, gets: 1 } }, 'is not known. The options there are per1000Writes,'],
    ['mergePolicy.minCommits', { mergePolicy: { minCommits: 0 } }, '1 to 2000'],
    ['mergePolicy.minCommits', { mergePolicy: { minCommits: 2001 } }, '1 to 2000'],
    ['mergePolicy.maxWaitMs', { mergePolicy: { maxWaitMs: -1 } }, '0 to 86400000'],
    ['mergePolicy.maxWaitMs', { mergePolicy: { minCommits: 2, maxWaitMs: 0.5 } }, '0 to 86400000'],
    ['prices.per1000Reads', { prices: { ...s3StandardPrices, per1000Reads: -1 } }, 'not negative'],
    ['prices.per1000Lists', { prices: { ...s3StandardPrices, per1000Lists: undefined } }, 'not negative'],
    ['prices.perGigabyteRead', { prices: { ...s3StandardPrices, perGigabyteRead: Infinity } }, 'not negative'],
  ])('%s: %o', (option, options, allowed) => {
    const error = refusal({ ...good, ...options });
    expect(error.option).toBe(option);
    expect(error.message).toContain(allowed);
  });

  it("refuses a list of nodes together with nodeId 'auto'", () => {
    const error = refusal({ ...good, nodeId: 'auto', nodes: [0, 1] });
    expect(error.option).toBe('nodes');
    expect(error.message).toContain("`nodeId: 'auto'`");
  });

  it('an option that does not exist, with those that do', () => {
    const error = refusal({ ...good, prefix: 'x' });
    expect(error.option).toBe('prefix');
    expect(error.message).toContain('dbPrefix');
  });

  it.each([[undefined], [null], ['app'], [7]])('%s instead of options', (options) => {
    expect(refusal(options).option).toBe('options');
  });
});

describe('no driver', () => {
  it('is an error that says how to choose one, never a silent default', () => {
    delete process.env['STOREDB_BUCKET'];
    const error = refusal({ dbPrefix: 'app', nodeId: 0 });
    expect(error.option).toBe('driver');
    for (const word of ['MemoryDriver', 'FileDriver', 'STOREDB_BUCKET']) expect(error.message).toContain(word);
  });
});

describe('accepted options', () => {
  it.each([
    ['the least', good],
    [
      'every option',
      {
        ...good,
        nodeId: 255,
        logLevel: 'debug',
        logger,
        writeForwardInterval: 10,
        blockSizeBytes: 512,
        maxMemoryBytes: 1024 * 1024,
        cacheDriver: new Map<string, Uint8Array>(),
        cacheBlockSize: 512,
        nodes: [0, 255],
        polling: 'adaptive',
        mergePolicy: { minCommits: 20, maxWaitMs: 600_000 },
        prices: { per1000Writes: 0, per1000Reads: 0, per1000Lists: 0, per1000Deletes: 0, perGigabyteRead: 0 },
        onRequest: noop,
      },
    ],
    ['undefined for what has a default', { ...good, logLevel: undefined, logger: undefined, nodes: undefined }],
    ['a merge policy of nothing', { ...good, mergePolicy: {} }],
    ['a function of nodes', { ...good, nodes: () => [1] }],
    ['a prefix of several parts', { ...good, dbPrefix: 'a/b c/Größe' }],
  ])('%s', async (_, options) => {
    const db = StoreDb(options as StoreDbOptions);
    await db.start();
    await db.stop();
  });

  it('StoreDb is the default export too', () => {
    expect(StoreDbAsDefault).toBe(StoreDb);
  });

  it('nothing is asked of the driver before start()', () => {
    const asked: string[] = [];
    const handler = { get: (_: MemoryDriver, name: string | symbol) => () => asked.push(String(name)) };
    StoreDb({ ...good, driver: new Proxy(new MemoryDriver(), handler) });
    expect(asked).toEqual([]);
  });
});
