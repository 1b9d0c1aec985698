/** The options of `StoreDb()`: checked at once, with errors that name the option, the value and the allowed values. */
import { isDate } from '../base/brands.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { consoleLogger, logLevels } from '../base/logger.ts';
import type { Logger, LogLevel } from '../base/logger.ts';
import { describeValue } from '../base/messages.ts';
import { kinds, OptionTable, wrongOption, defined } from '../base/options.ts';
import type { KindsOf, OptionKind } from '../base/options.ts';
import { sharedMemoryOf } from '../cache/memory-budget.ts';
import type { MemoryBudget, SharedMemory } from '../cache/memory-budget.ts';
import { pollings } from '../coordination/polling-pace.ts';
import type { Polling } from '../coordination/polling-pace.ts';
import { roles } from '../coordination/membership.ts';
import type { Role } from '../coordination/membership.ts';
import type { ExpectedState } from '../engine/open-or-create.ts';
import { isUuid } from '../format/values.ts';
import type { CommitRef } from '../log/commit-outcome.ts';
import { usuallyPending } from '../log/pending-room.ts';
import type { MergePolicy } from '../merge/merge-policy.ts';
import { filledThresholds, healthKind } from '../maintenance/health.ts';
import type { CheckedThresholds, HealthThresholds } from '../maintenance/health.ts';
import type { CacheDriver, StorageDriver } from '../storage/contract/driver.ts';
import { driverKind, prefixKind } from '../storage/contract/requests.ts';
import { priceKind, s3StandardPrices } from '../storage/prices.ts';
import type { PriceTable } from '../storage/prices.ts';
import { compressionKind, encryptionKind, protectionOf } from '../storage/wrap/encryption-options.ts';
import type { Compression, EncryptionOptions, Protection } from '../storage/wrap/encryption-options.ts';
import type { ObservedRequest } from '../storage/wrap/observed-driver.ts';

/** How `start()` treats a registered version that is retired. */
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
   * which only read are enough. Calls that write reject with `ReadOnlyError`. `nodes` and `mergePolicy` are of no use
   * to it; `history` and `gcInterval` are refused. Default `'writer'`. For `'ephemeral'` see `EphemeralOptions`.
   */
  readonly role?: Exclude<Role, 'ephemeral'>;
  /**
   * Where the data is. Default: an `ObjectStoreDriver` for the bucket that `STOREDB_BUCKET` names, an `AzureBlobDriver` for the
   * container that `STOREDB_AZURE_CONTAINER` names, or a `GoogleCloudStorageDriver` for the bucket that `STOREDB_GCS_BUCKET` names,
   * if one of them is set.
   */
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
   * The least recently used blocks of all databases make room first. Default:
   * none, so that the instance has `maxMemoryBytes` for itself.
   */
  readonly memory?: MemoryBudget;
  /**
   * A cache for blocks behind the one in memory, for instance a `DiskCacheDriver`. Its blocks are checked, and a cache that
   * fails is passed over. Default: none, so that blocks are cached in memory alone.
   */
  readonly cacheDriver?: CacheDriver;
  /**
   * Size of a cached block, as an estimate, in bytes, 512 to 16 MiB: it determines how many blocks a query may hold at once, and how
   * many names of evicted blocks the cache remembers. Default 65536.
   */
  readonly cacheBlockSize?: number;
  /**
   * Ids of the nodes that share write authority, or a function that returns them, called at every turn in which something must be
   * merged. Default: the nodes that have started, and so are registered; the turns of nodes that died go to the others.
   */
  readonly nodes?: readonly number[] | (() => readonly number[] | Promise<readonly number[]>);
  /**
   * How often this instance looks at the store by itself: `'interval'`, at every `writeForwardInterval`; `'adaptive'`,
   * less and less often, down to once in five minutes, while nobody reads through it; `'onDemand'`, only to merge pending commits,
   * and `start()` does not wait for the look at the log: the first call does, and reads in the meantime. In all of them a query on
   * a view older than two intervals refreshes first. Default `'adaptive'`.
   */
  readonly polling?: Polling;
  /**
   * How long a query on a view older than two intervals waits for a newer one, in milliseconds, 0 to 60,000. After that, or if
   * the store fails, it shows the view in memory, and `db.stats()` has its age; transactions and `db.refresh()` never do.
   * Default: as long as it takes, up to 60,000, and then it rejects.
   */
  readonly maxStaleWaitMs?: number;
  /**
   * When pending commits are merged. Default: once there are 16 of them, or the oldest has waited for a minute. While a version of
   * a table comes or goes, they are merged at this node's next turn. In any case a node that merges alone rests after each merge, three
   * times as long as that took and a minute at most.
   */
  readonly mergePolicy?: MergePolicy;
  /**
   * How `start()` treats a table whose newest version registered here is retired: `'refuse'`, it rejects;
   * `'allow'`, it opens the database, and calls to that table alone reject. Default `'refuse'`.
   */
  readonly retiredVersions?: RetiredVersions;
  /**
   * For how long earlier states can be read with `db.at()`: a number with a unit such as `'7d'`, `'12h'` or `'30m'`, or
   * `'off'`. It is a setting of the database, which the last instance to start with it decides. Default: as it was set; of
   * a new database `'off'`. Keeping states costs one write per merge, and the space of the objects that only they refer to.
   */
  readonly history?: string;
  /**
   * How often this instance collects garbage by itself, in milliseconds, 60,000 to 2,147,483,647; it does so only if
   * something was merged since the last time. Default: never, so that `db.gc()` must be called.
   */
  readonly gcInterval?: number;
  /**
   * The keys with which all stored objects are encrypted: AES-256-GCM, before it leaves this process. All instances need
   * it. Default: nothing is encrypted, and a database that is cannot be opened.
   */
  readonly encryption?: EncryptionOptions;
  /**
   * How blocks, commits and Block 0 are compressed, each by itself and where it saves a tenth: `'none'`, `'deflate'`, or
   * `'zstd'`, which needs Node.js 22.15 or newer to write. Blobs are not. All instances of a database that is compressed need
   * the option, if only as `'none'`. Default: nothing is compressed.
   */
  readonly compression?: Compression;
  /** The prices by which `db.stats()` computes `dollars`. Default: `s3StandardPrices`. */
  readonly prices?: PriceTable;
  /** From which values on `db.health()` calls this instance degraded and failing. Default: see `HealthThresholds`. */
  readonly health?: HealthThresholds;
  /** Called after every request to the driver, for metrics. An error that it throws is logged once. Default: none. */
  readonly onRequest?: (request: ObservedRequest) => void;
}

/** The options of an instance that works in the background, which an ephemeral one does not. */
type BackgroundOption = 'nodeId' | 'role' | 'nodes' | 'polling' | 'history' | 'gcInterval' | 'mergePolicy';

/**
 * Options of `StoreDb()` for an instance that lives as long as a request, a function or a job. It reads and commits as any other. It
 * needs no `nodeId`, is in no list of nodes, and does nothing in the background: no turns, no migrations, no garbage collection. It
 * merges with a commit of its own.
 */
export interface EphemeralOptions extends Omit<StoreDbOptions, BackgroundOption> {
  /** This instance lives as long as a request: see {@link EphemeralOptions}. */
  readonly role: 'ephemeral';
  /**
   * `minCommits`: how many commits may wait to be merged, 1 to 2,000. The instance whose commit is the last of so many merges them, and
   * an instance that finds so many merges before it commits. Default 16.
   */
  readonly mergePolicy?: Pick<MergePolicy, 'minCommits'>;
  /**
   * Keeps the process running until a promise is settled, after the answer of a request was sent, as `waitUntil` of many platforms does.
   * With it, a flush that merges resolves before the merge. Default: it resolves after the merge, and after ten seconds at most.
   */
  readonly waitUntil?: (work: Promise<unknown>) => void;
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
  readonly health: CheckedThresholds;
  readonly onRequest: StoreDbOptions['onRequest'] | undefined;
  readonly waitUntil: EphemeralOptions['waitUntil'];
}

/** Every option of `StoreDb()`, of any role. */
interface AnyOptions extends Omit<StoreDbOptions, 'nodeId' | 'role'>, Pick<EphemeralOptions, 'waitUntil'> {
  readonly nodeId?: StoreDbOptions['nodeId'];
  readonly role?: Role;
}

const mebibyte = 1024 * 1024;
const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const durationPattern = /^([1-9][0-9]{0,5})([smhd])$/;

function duration(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const [, count, unit] = durationPattern.exec(value) ?? [];
  return unit === undefined ? 0 : Number(count) * (units[unit] as number);
}

const blockBytes = kinds.whole(512, 16 * mebibyte);
const maxCommits = 2000;

function isNodeList(nodes: unknown): nodes is readonly number[] {
  return Array.isArray(nodes) && nodes.length > 0 && nodes.every((id) => Number.isInteger(id) && id >= 0 && id <= 255);
}

const nodeList: OptionKind = {
  allowed: 'a list of at least one node id from 0 to 255, or a function that returns one',
  accepts: isNodeList,
};

const memoryBudget: OptionKind = {
  allowed:
    'a MemoryBudget, made by new MemoryBudget(bytes) once for all that share it. For a bound of one instance there is maxMemoryBytes',
  accepts: (value) => sharedMemoryOf(value) !== undefined,
};

const mergePolicyOptions = new OptionTable<MergePolicy>({
  minCommits: kinds.whole(1, maxCommits),
  maxWaitMs: kinds.whole(0, 86_400_000),
});

const nodeIdKind: OptionKind = {
  allowed: "an integer from 0 to 255, different on every node, or 'auto'",
  accepts: (id) => id === 'auto' || (Number.isInteger(id) && (id as number) >= 0 && (id as number) <= 255),
};

/** The kinds of values of the options of `StoreDb()`. */
export const storeDbKinds: KindsOf<AnyOptions> = {
  dbPrefix: kinds.required(prefixKind),
  nodeId: nodeIdKind,
  role: kinds.choice(...roles),
  driver: { ...driverKind, look: refuseBundlesOnly },
  logLevel: kinds.choice(...logLevels),
  logger: kinds.methods('a logger', 'debug', 'info', 'warn', 'error'),
  writeForwardInterval: kinds.whole(10, 86_400_000),
  blockSizeBytes: blockBytes,
  maxMemoryBytes: kinds.whole(mebibyte),
  memory: memoryBudget,
  cacheDriver: kinds.methods('a cache driver', 'get', 'set', 'delete'),
  cacheBlockSize: blockBytes,
  nodes: { ...nodeList, accepts: (nodes) => typeof nodes === 'function' || isNodeList(nodes) },
  polling: kinds.choice(...pollings),
  maxStaleWaitMs: kinds.whole(0, 60_000),
  mergePolicy: kinds.options(mergePolicyOptions),
  retiredVersions: kinds.choice(...retiredVersionsAllowed),
  history: kinds.text(
    "'off', or a whole number with a unit (s, m, h or d), such as '7d'",
    (value) => value === 'off' || durationPattern.test(value),
  ),
  gcInterval: kinds.whole(60_000, 2_147_483_647),
  encryption: encryptionKind,
  compression: compressionKind,
  prices: priceKind,
  health: healthKind,
  onRequest: kinds.callback,
  waitUntil: kinds.callback,
};

const storeDbOptions = new OptionTable<AnyOptions>(storeDbKinds);

/** Throws `InvalidOptionError` for a driver that cannot hold a database. */
function refuseBundlesOnly(callName: string, path: string, driver: unknown): void {
  const { bundlesOnly, name } = driver as StorageDriver;
  if (bundlesOnly !== true) return;
  throw new InvalidOptionError(
    path,
    `Option \`${path}\` of ${callName} is a driver for bundles of db.publish() only (${name}): use another one for the database, ` +
      'such as FileDriver for a folder.',
  );
}

/** Checks the options. `defaultDriver` gives the driver that the environment asks for, if it does. */
export function checkOptions(options: unknown, defaultDriver: () => StorageDriver | undefined): CheckedOptions {
  const given = storeDbOptions.check('StoreDb()', options as AnyOptions);
  const { role = 'writer', nodes, prices = s3StandardPrices } = given;
  if (role === 'replica') refuseOnReplica(given);
  if (role === 'ephemeral') refuseOnEphemeral(given);
  else if (given.waitUntil !== undefined) {
    throw new InvalidOptionError(
      'waitUntil',
      "Option `waitUntil` of StoreDb() is for an instance with role 'ephemeral'. Others merge in the background: leave it out.",
    );
  }
  const nodeId = nodeIdOf(given);
  if (nodeId === 'auto' && nodes !== undefined) {
    throw new InvalidOptionError(
      'nodes',
      "Option `nodes` of StoreDb() names node ids, and `nodeId: 'auto'` takes one that nobody knows before: give a nodeId as well, or leave nodes out.",
    );
  }
  const memory = given.memory === undefined ? undefined : sharedMemoryOf(given.memory);
  const mergePolicy = filledPolicy(given.mergePolicy);
  return {
    dbPrefix: given.dbPrefix,
    nodeId,
    role,
    driver: given.driver ?? chosenDriver(defaultDriver),
    logLevel: given.logLevel ?? 'info',
    logger: given.logger ?? consoleLogger,
    writeForwardInterval: given.writeForwardInterval ?? 5000,
    blockSizeBytes: given.blockSizeBytes ?? 65_536,
    maxMemoryBytes: checkMaxMemory(given.maxMemoryBytes, memory),
    memory,
    cacheDriver: given.cacheDriver,
    cacheBlockSize: given.cacheBlockSize ?? 65_536,
    nodes,
    polling: role === 'ephemeral' ? 'onDemand' : (given.polling ?? 'adaptive'),
    maxStaleWaitMs: given.maxStaleWaitMs,
    mergePolicy,
    retiredVersions: given.retiredVersions ?? 'refuse',
    history: duration(given.history),
    gcInterval: given.gcInterval,
    protection: protectionOf(given.encryption, given.compression),
    prices: { ...prices },
    health: filledThresholds(given.health, mergePolicy.minCommits),
    onRequest: given.onRequest,
    waitUntil: given.waitUntil,
  };
}

function filledPolicy({ minCommits, maxWaitMs }: MergePolicy = {}): Required<MergePolicy> {
  return {
    minCommits: minCommits ?? (maxWaitMs === undefined ? usuallyPending : maxCommits),
    maxWaitMs: maxWaitMs ?? (minCommits === undefined ? 60_000 : 600_000),
  };
}

function checkMaxMemory(bytes: number | undefined, shared: SharedMemory | undefined): number {
  if (shared === undefined) return bytes ?? 100 * mebibyte;
  const most = shared.maxBytes;
  if (bytes === undefined || bytes <= most) return bytes ?? most;
  const allowed = `at most ${most}, all that the MemoryBudget in the option memory has`;
  throw wrongOption('StoreDb()', 'maxMemoryBytes', bytes, { ...kinds.anything, allowed });
}

/** Returns the node id; an ephemeral instance takes none. */
function nodeIdOf({ nodeId, role }: AnyOptions): number | 'auto' {
  if (nodeId !== undefined) return nodeId;
  if (role === 'ephemeral') return 'auto';
  throw wrongOption('StoreDb()', 'nodeId', nodeId, nodeIdKind);
}

/** Refuses the options of background work, on an ephemeral instance. */
function refuseOnEphemeral(given: AnyOptions): void {
  const why = {
    nodeId: 'which is in no list of nodes',
    nodes: 'which takes no turns',
    polling: 'which looks at the store only when it is used',
    history: 'which lives as long as a request',
    gcInterval: 'which does nothing in the background',
  } as const;
  for (const [option, reason] of Object.entries(why) as [keyof typeof why, string][]) {
    if (given[option] === undefined) continue;
    throw new InvalidOptionError(
      option,
      `Option \`${option}\` of StoreDb() has no place on an instance with role 'ephemeral', ${reason}: leave it out, or give it to an ` +
        "instance with role 'writer'.",
    );
  }
  if (given.mergePolicy?.maxWaitMs !== undefined) {
    throw new InvalidOptionError(
      'mergePolicy.maxWaitMs',
      "Option `mergePolicy.maxWaitMs` of StoreDb() has no place on an instance with role 'ephemeral', which merges with its own commits: " +
        'leave it out, and give minCommits.',
    );
  }
}

/** Refuses the options that ask for writes, on a replica. */
function refuseOnReplica(given: AnyOptions): void {
  for (const option of ['history', 'gcInterval'] as const) {
    if (given[option] === undefined) continue;
    throw new InvalidOptionError(
      option,
      `Option \`${option}\` of StoreDb() has no place on a replica, which never writes: give it to an instance with role 'writer'.`,
    );
  }
}

function chosenDriver(defaultDriver: () => StorageDriver | undefined): StorageDriver {
  const chosen = defaultDriver();
  if (chosen !== undefined) return chosen;
  throw new InvalidOptionError(
    'driver',
    'No driver was given and STOREDB_BUCKET is not set, so it is not clear where the data should be. Set ' +
      'STOREDB_BUCKET to the name of a bucket (STOREDB_GCS_BUCKET for a bucket of Google, STOREDB_AZURE_CONTAINER for a container of ' +
      'Azure), or give a driver from store-db/lib/storage: new FileDriver(folder), new ObjectStoreDriver({ bucket }), new AzureBlobDriver({ container }), ' +
      'or new MemoryDriver() for tests.',
  );
}

/** Checks a list of node ids that the function in the option gave. */
export function checkNodes(nodes: unknown): readonly number[] {
  if (isNodeList(nodes)) return nodes;
  throw wrongOption('StoreDb()', 'nodes', nodes, nodeList);
}

/** Options of calls that reach the store. */
export interface CallOptions {
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** Options of `db.refresh()`. */
export interface RefreshOptions extends CallOptions {
  /**
   * A position, such as `db.position` of the instance that wrote. Where this instance shows it already, nothing is
   * asked of the store; where it does not, the call waits for it, up to a minute. Default: everything that was committed before the call.
   */
  readonly atLeast?: number;
}

/** Options of `db.snapshot()`. */
export interface SnapshotOptions extends CallOptions {
  /**
   * After how long others may take the snapshot for abandoned, in milliseconds, if its holder has not renewed it: it does so
   * by itself as long as it runs. Default 3,600,000 (an hour).
   */
  readonly expiresAfterMs?: number;
}

/** Options of `db.start()`. */
export interface StartOptions {
  /**
   * The least state that may be opened. A database that is older, since somebody put an older Block 0 or bucket back, or that is
   * not there at all, rejects, and nothing is created. Remember `db.stats().log.revision` where the bucket's owner cannot write.
   * Default: the stored database is opened, however old.
   */
  readonly expectAtLeast?: ExpectedState;
}

/** A position in the log. */
export const positionKind: OptionKind = {
  ...kinds.whole(0),
  allowed: 'a position: a whole number >= 0, such as db.position',
};

export const refreshOptions: OptionTable<RefreshOptions> = new OptionTable({
  atLeast: positionKind,
  signal: kinds.signal,
});

const expectedState = new OptionTable<ExpectedState>({ revision: kinds.whole(0), generation: kinds.whole(0) });

const stateKind: OptionKind = {
  ...kinds.options(expectedState),
  allowed: '{ revision }, { generation } or both',
};

export const startOptions: OptionTable<StartOptions> = new OptionTable({
  expectAtLeast: {
    ...stateKind,
    look: (callName, path, value) => {
      const { revision, generation } = expectedState.check(callName, value as ExpectedState, path);
      if (revision === undefined && generation === undefined) throw wrongOption(callName, path, value, stateKind);
    },
  },
});

const maxExpiryMs = 30 * 86_400_000;

const snapshotOptions = new OptionTable<SnapshotOptions>({
  expiresAfterMs: kinds.milliseconds(1000, maxExpiryMs),
  signal: kinds.signal,
});

/** Throws `InvalidOptionError`. */
export function checkSnapshotOptions(
  callName: string,
  options: SnapshotOptions,
): { timeToLiveMs: number; signal: AbortSignal | undefined } {
  const { expiresAfterMs = 3_600_000, signal } = snapshotOptions.check(callName, options);
  return { timeToLiveMs: expiresAfterMs, signal };
}

export function checkCommit(commit: unknown): CommitRef {
  const { commitId, slot, databaseId } = Object(commit) as Partial<Record<keyof CommitRef, unknown>>;
  const isOfDatabase = databaseId === undefined || (typeof databaseId === 'string' && isUuid(databaseId));
  const isCommit = typeof commitId === 'string' && isUuid(commitId) && isOfDatabase;
  if (isCommit && Number.isSafeInteger(slot) && (slot as number) > 0) {
    return { commitId, slot: slot as number, ...defined({ databaseId }) };
  }
  throw new InvalidOptionError(
    'commit',
    `The commit is ${describeValue(commit)}; it must be a CommitOutcomeUnknownError, or an object with its commitId ` +
      'and slot.',
  );
}

export function isTime(value: unknown): boolean {
  return isDate(value) && !Number.isNaN(value.getTime());
}
