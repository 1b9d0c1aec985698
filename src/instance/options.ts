/** The options of `StoreDb()`: checked at once, with errors that name the option, the value and what is allowed. */
import { InvalidOptionError } from '../base/errors.ts';
import { encodeUtf8 } from '../base/bytes.ts';
import { checkNames } from '../base/known-names.ts';
import { consoleLogger, logLevels } from '../base/logger.ts';
import type { Logger, LogLevel } from '../base/logger.ts';
import type { MergePolicy } from '../merge/merge-policy.ts';
import { pollings } from '../coordination/polling.ts';
import type { Polling } from '../coordination/polling.ts';
import { roles } from '../coordination/role.ts';
import type { Role } from '../coordination/role.ts';
import { sharedPrefix } from '../format/keys.ts';
import { describeValue } from '../base/describe-value.ts';
import type { CacheDriver } from '../storage/contract/cache-driver.ts';
import { sharedMemoryOf } from '../cache/memory-budget.ts';
import type { MemoryBudget } from '../cache/memory-budget.ts';
import type { SharedMemory } from '../cache/shared-memory.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { checkProtection } from '../storage/wrap/encryption-options.ts';
import type { Compression, EncryptionOptions, Protection } from '../storage/wrap/encryption-options.ts';
import type { ObservedRequest } from '../storage/wrap/observed-driver.ts';
import { s3StandardPrices } from '../storage/prices.ts';
import type { PriceTable } from '../storage/prices.ts';

/** What `start()` does where a registered version is retired. */
export type RetiredVersions = 'refuse' | 'allow';

const retiredVersionsAllowed: readonly RetiredVersions[] = ['refuse', 'allow'];

/** Options of `StoreDb()`. */
export interface StoreDbOptions {
  /** Root prefix of all data of this database: 1 to 512 UTF-8 bytes, without `/` at either end. */
  readonly dbPrefix: string;
  /**
   * Id of this node, 0 to 255, different on every node that writes; or `'auto'`: the instance takes an id that is free when it
   * first writes Block 0, keeps it while it runs, and gives it back when it is stopped. Replicas may share one: it says nothing of them.
   */
  readonly nodeId: number | 'auto';
  /**
   * `'replica'`: this instance follows the log and reads, and never writes anything to the store, so that credentials
   * which only read are enough. What needs to write rejects with `ReadOnlyError`. `nodes` and `mergePolicy` are of no use
   * to it; `history` and `gcInterval` are refused. Default `'writer'`.
   */
  readonly role?: Role;
  /** Where the data is. Default: an `ObjectStoreDriver` for the bucket that `STOREDB_BUCKET` names, if it is set. */
  readonly driver?: StorageDriver;
  /** Least level that is logged. Default `'info'`; `'silent'` mutes all. */
  readonly logLevel?: LogLevel;
  /** Where log lines go. Default: the console. */
  readonly logger?: Logger;
  /** Time between turns of write authority, in milliseconds, 10 to 86,400,000. Default 5000. */
  readonly writeForwardInterval?: number;
  /** Size that data blocks should have, in bytes, 512 to 16 MiB. Default 65536. */
  readonly blockSizeBytes?: number;
  /**
   * Memory that cached blocks, commits that are not merged yet, and the rows that queries collect may take together, in
   * bytes, at least 1 MiB. A query that needs more rejects with `MemoryBudgetError`. With `memory`, the most that this
   * instance may take of it. Default 104857600; with `memory`, all of it.
   */
  readonly maxMemoryBytes?: number;
  /**
   * Memory that this instance shares with all others that are given the same budget: for many databases in one process.
   * Blocks that were not used for the longest time make room first, whichever of the databases they are of. Default:
   * none, so that the instance has `maxMemoryBytes` for itself.
   */
  readonly memory?: MemoryBudget;
  /**
   * A cache for blocks behind the one in memory, for instance a `DiskCacheDriver`. What it gives is checked, and one that
   * fails is passed over. Default: none, so that blocks are cached in memory alone.
   */
  readonly cacheDriver?: CacheDriver;
  /**
   * Size of a cached block, as an estimate, in bytes, 512 to 16 MiB: by it is reckoned how many blocks a query may hold at
   * once, and how many names of blocks that went the cache remembers. Default 65536.
   */
  readonly cacheBlockSize?: number;
  /**
   * Ids of the nodes that share write authority, or a function that tells, asked at every turn in which something is to be
   * merged. Default: those that are registered, by having started; the turns of those that died go to the others.
   */
  readonly nodes?: readonly number[] | (() => readonly number[] | Promise<readonly number[]>);
  /**
   * How often this instance looks at the store by itself: `'interval'`, at every `writeForwardInterval`; `'adaptive'`,
   * less and less often, down to once a minute, while nobody uses it; `'onDemand'`, only to merge what is pending, and
   * `start()` does not wait for the look at the log: the first call does, and reads in the meantime. In all of them a query on
   * a view older than two intervals refreshes first. Default `'interval'`.
   */
  readonly polling?: Polling;
  /**
   * How long a query on a view older than two intervals waits for a newer one, in milliseconds, 0 to 60,000. After that, or if
   * the store fails, it shows the view that there is, and `db.stats()` tells its age; transactions and `db.refresh()` never do.
   * Default: as long as it takes, up to 60,000, and then it rejects.
   */
  readonly maxStaleWaitMs?: number;
  /**
   * What a merge waits for. Default: nothing, so that whatever is pending is merged at this node's next turn. In any case a
   * node that merges alone rests after each merge, three times as long as that took and a minute at most.
   */
  readonly mergePolicy?: MergePolicy;
  /**
   * What `start()` does where the newest version of a table that is registered here is retired: `'refuse'`, it rejects;
   * `'allow'`, it opens the database, and calls to that table alone reject. Default `'refuse'`.
   */
  readonly retiredVersions?: RetiredVersions;
  /**
   * For how long earlier states can be read with `db.at()`: a number with a unit such as `'7d'`, `'12h'` or `'30m'`, or
   * `'off'`. It is a setting of the database, which the last instance to start with it decides. Default: as it was set; of
   * a new database `'off'`. Keeping states costs one write a merge, and the space of what they alone refer to.
   */
  readonly history?: string;
  /**
   * How often this instance collects garbage by itself, in milliseconds, 60,000 to 2,147,483,647; it does so only if
   * something was merged since the last time. Default: never, so that `db.gc()` must be called.
   */
  readonly gcInterval?: number;
  /**
   * The keys with which everything that is stored is encrypted: AES-256-GCM, before it leaves this process. All instances need
   * it. Default: nothing is encrypted, and a database that is cannot be opened.
   */
  readonly encryption?: EncryptionOptions;
  /**
   * How blocks, commits and Block 0 are compressed, each by itself and where it saves a tenth: `'none'`, `'deflate'`, or
   * `'zstd'`, which needs Node.js 22.15 or newer to write. Blobs are not. All instances of a database that is compressed need
   * the option, if only as `'none'`. Default: nothing is compressed.
   */
  readonly compression?: Compression;
  /** What `db.stats()` reckons `dollars` by. Default: `s3StandardPrices`. */
  readonly prices?: PriceTable;
  /** Called after every request to the driver, for metrics. An error that it throws is logged once. Default: none. */
  readonly onRequest?: (request: ObservedRequest) => void;
}

/** The options with every default filled in. */
export interface CheckedOptions {
  readonly dbPrefix: string;
  readonly nodeId: number | 'auto';
  readonly role: Role;
  readonly driver: StorageDriver;
  readonly logLevel: LogLevel;
  readonly logger: Logger;
  readonly writeForwardInterval: number;
  readonly blockSizeBytes: number;
  readonly maxMemoryBytes: number;
  readonly memory: SharedMemory | undefined;
  readonly cacheDriver: CacheDriver | undefined;
  readonly cacheBlockSize: number;
  readonly nodes: StoreDbOptions['nodes'] | undefined;
  readonly polling: Polling;
  readonly maxStaleWaitMs: number | undefined;
  readonly mergePolicy: Required<MergePolicy>;
  readonly retiredVersions: RetiredVersions;
  /** In milliseconds; 0: off; undefined: as it is. */
  readonly history: number | undefined;
  readonly gcInterval: number | undefined;
  /** Of the options `encryption` and `compression`, if either was given. */
  readonly protection: Protection | undefined;
  readonly prices: PriceTable;
  readonly onRequest: StoreDbOptions['onRequest'] | undefined;
}

const known: readonly (keyof StoreDbOptions)[] = [
  'dbPrefix',
  'nodeId',
  'role',
  'driver',
  'logLevel',
  'logger',
  'writeForwardInterval',
  'blockSizeBytes',
  'maxMemoryBytes',
  'memory',
  'cacheDriver',
  'cacheBlockSize',
  'nodes',
  'polling',
  'maxStaleWaitMs',
  'mergePolicy',
  'retiredVersions',
  'history',
  'gcInterval',
  'encryption',
  'compression',
  'prices',
  'onRequest',
];

const mebibyte = 1024 * 1024;

function refuse(option: string, value: unknown, allowed: string): never {
  throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be ${allowed}.`);
}

function integer(option: string, value: unknown, fallback: number, min: number, max: number): number {
  if (value === undefined) return fallback;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    refuse(option, value, `an integer from ${min} to ${max}`);
  }
  return value;
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function duration(option: keyof StoreDbOptions, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (value === 'off') return 0;
  const match = typeof value === 'string' ? /^([1-9][0-9]{0,5})([smhd])$/.exec(value) : null;
  if (match === null) refuse(option, value, "'off', or a whole number with a unit (s, m, h or d), such as '7d'");
  return Number(match[1]) * (units[match[2] as string] as number);
}

function methods(option: keyof StoreDbOptions, value: unknown, names: readonly string[]): void {
  const object = value as Record<string, unknown> | null;
  const missing = names.find((name) => typeof object !== 'object' || typeof object?.[name] !== 'function');
  if (missing !== undefined) refuse(option, value, `an object with the methods ${names.join(', ')} (no ${missing})`);
}

function checkPrefix(value: unknown): string {
  const allowed = 'a string of 1 to 512 UTF-8 bytes that neither begins nor ends with /';
  if (typeof value !== 'string' || value === '' || !value.isWellFormed()) refuse('dbPrefix', value, allowed);
  if (value.startsWith('/') || value.endsWith('/') || encodeUtf8(value).length > 512)
    refuse('dbPrefix', value, allowed);
  if (value.split('/').some((segment) => segment === '.' || segment === '..')) {
    refuse('dbPrefix', value, `${allowed}, without . and .. between slashes: URLs of blobs could not name them`);
  }
  if (`${value}/`.startsWith(sharedPrefix)) {
    refuse('dbPrefix', value, `${allowed}, and not under ${sharedPrefix}, where what belongs to no database is`);
  }
  return value;
}

/** Checks the options. `defaultDriver` gives the driver that the environment asks for, if it does. */
export function checkOptions(options: unknown, defaultDriver: () => StorageDriver | undefined): CheckedOptions {
  if (typeof options !== 'object' || options === null) {
    refuse('options', options, "an object such as { dbPrefix: 'my-app', nodeId: 0, driver }");
  }
  const given = options as StoreDbOptions;
  checkNames('StoreDb()', given, known);
  if (given.nodeId === undefined) {
    refuse('nodeId', given.nodeId, "an integer from 0 to 255, different on every node, or 'auto'");
  }
  const { logLevel = 'info', logger = consoleLogger, nodes, cacheDriver, polling = 'interval', onRequest } = given;
  const { role = 'writer', retiredVersions = 'refuse' } = given;
  if (!retiredVersionsAllowed.includes(retiredVersions)) {
    refuse('retiredVersions', retiredVersions, `one of ${retiredVersionsAllowed.join(', ')}`);
  }
  if (!roles.includes(role)) refuse('role', role, `one of ${roles.join(', ')}`);
  if (role === 'replica') refuseOnReplica(given);
  if (!logLevels.includes(logLevel)) refuse('logLevel', logLevel, `one of ${logLevels.join(', ')}`);
  methods('logger', logger, ['debug', 'info', 'warn', 'error']);
  if (cacheDriver !== undefined) methods('cacheDriver', cacheDriver, ['get', 'set', 'delete']);
  if (nodes !== undefined && typeof nodes !== 'function') checkNodes(nodes);
  if (!pollings.includes(polling)) refuse('polling', polling, `one of ${pollings.join(', ')}`);
  const memory = checkMemory(given.memory);
  if (onRequest !== undefined && typeof onRequest !== 'function') refuse('onRequest', onRequest, 'a function');
  return {
    dbPrefix: checkPrefix(given.dbPrefix),
    nodeId: checkNodeId(given),
    role,
    driver: checkDriver(given.driver, defaultDriver),
    logLevel,
    logger,
    writeForwardInterval: integer('writeForwardInterval', given.writeForwardInterval, 5000, 10, 86_400_000),
    blockSizeBytes: integer('blockSizeBytes', given.blockSizeBytes, 65_536, 512, 16 * mebibyte),
    maxMemoryBytes: checkMaxMemory(given.maxMemoryBytes, memory),
    memory,
    cacheDriver,
    cacheBlockSize: integer('cacheBlockSize', given.cacheBlockSize, 65_536, 512, 16 * mebibyte),
    nodes,
    polling,
    maxStaleWaitMs:
      given.maxStaleWaitMs === undefined ? undefined : integer('maxStaleWaitMs', given.maxStaleWaitMs, 0, 0, 60_000),
    mergePolicy: checkMergePolicy(given.mergePolicy),
    retiredVersions,
    history: duration('history', given.history),
    gcInterval:
      given.gcInterval === undefined ? undefined : integer('gcInterval', given.gcInterval, 0, 60_000, 2_147_483_647),
    protection: checkProtection(given.encryption, given.compression),
    prices: checkPrices(given.prices),
    onRequest,
  };
}

function checkNodeId({ nodeId, nodes }: StoreDbOptions): number | 'auto' {
  if (nodeId !== 'auto') {
    if (typeof nodeId === 'string') refuse('nodeId', nodeId, "an integer from 0 to 255, or 'auto'");
    return integer('nodeId', nodeId, 0, 0, 255);
  }
  if (nodes === undefined) return nodeId;
  throw new InvalidOptionError(
    'nodes',
    "Option nodes names node ids, and nodeId 'auto' takes one that nobody knows before: give a nodeId as well, or leave nodes out.",
  );
}

function checkMemory(value: unknown): SharedMemory | undefined {
  if (value === undefined) return undefined;
  const shared = sharedMemoryOf(value);
  if (shared === undefined) {
    const forOne = typeof value === 'number' ? ' For a bound of this instance alone there is maxMemoryBytes.' : '';
    refuse('memory', value, `a MemoryBudget, made by new MemoryBudget(bytes) once for all that share it.${forOne}`);
  }
  return shared;
}

function checkMaxMemory(value: unknown, shared: SharedMemory | undefined): number {
  const most = shared?.maxBytes ?? Number.MAX_SAFE_INTEGER;
  const bytes = integer('maxMemoryBytes', value, shared?.maxBytes ?? 100 * mebibyte, mebibyte, Number.MAX_SAFE_INTEGER);
  if (bytes > most)
    refuse('maxMemoryBytes', value, `at most ${most}, all that the MemoryBudget in the option memory has`);
  return bytes;
}

/** What asks for writes has no place on an instance that makes none. */
function refuseOnReplica(given: StoreDbOptions): void {
  for (const option of ['history', 'gcInterval'] as const) {
    if (given[option] === undefined) continue;
    throw new InvalidOptionError(
      option,
      `Option ${option} has no place on a replica, which never writes: give it to an instance with role 'writer'.`,
    );
  }
}

/** An option that is an object with some of the names in `names`; others are refused. */
function record(option: keyof StoreDbOptions, value: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Object.keys(value).some((name) => !names.includes(name))) {
    refuse(option, value, `an object with ${names.join(', ')} and nothing else`);
  }
  return value as Record<string, unknown>;
}

function checkMergePolicy(value: unknown = {}): Required<MergePolicy> {
  const { minCommits, maxWaitMs } = record('mergePolicy', value, ['minCommits', 'maxWaitMs']);
  const most = 2000;
  return {
    minCommits: integer('mergePolicy.minCommits', minCommits, maxWaitMs === undefined ? 1 : most, 1, most),
    maxWaitMs: integer('mergePolicy.maxWaitMs', maxWaitMs, 600_000, 0, 86_400_000),
  };
}

function checkPrices(value: unknown = s3StandardPrices): PriceTable {
  const names = Object.keys(s3StandardPrices);
  const prices = record('prices', value, names);
  for (const name of names) {
    const price = prices[name];
    if (typeof price !== 'number' || !Number.isFinite(price) || price < 0) {
      refuse(`prices.${name}`, price, 'a number that is not negative');
    }
  }
  return { ...prices } as unknown as PriceTable;
}

function checkDriver(driver: unknown, defaultDriver: () => StorageDriver | undefined): StorageDriver {
  if (driver !== undefined) {
    methods('driver', driver, ['get', 'put', 'delete', 'list']);
    return driver as StorageDriver;
  }
  const chosen = defaultDriver();
  if (chosen !== undefined) return chosen;
  throw new InvalidOptionError(
    'driver',
    'No driver was given and STOREDB_BUCKET is not set, so it is not clear where the data should be. Set ' +
      'STOREDB_BUCKET to the name of a bucket, or give a driver from store-db/lib/storage: new FileDriver(folder), ' +
      'new ObjectStoreDriver({ bucket }), or new MemoryDriver() for tests.',
  );
}

/** Checks a list of node ids, from the option or from its function. */
export function checkNodes(nodes: unknown): readonly number[] {
  const valid =
    Array.isArray(nodes) && nodes.length > 0 && nodes.every((id) => Number.isInteger(id) && id >= 0 && id <= 255);
  if (!valid) refuse('nodes', nodes, 'a list of at least one node id from 0 to 255, or a function that returns one');
  return nodes as readonly number[];
}
