/** Opens the database that a URL names, for one command. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDatabase } from '../../api/database.ts';
import type { Database } from '../../api/database.ts';
import { realEnvironment } from '../../base/env.ts';
import { CorruptionError } from '../../base/errors.ts';
import type { Logger, LogLevel } from '../../base/logger.ts';
import { defined, didYouMean } from '../../base/options.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import type { MemoryBudget } from '../../cache/memory-budget.ts';
import type { Block0 } from '../../format/block0.ts';
import { block0Name } from '../../format/object-names.ts';
import type { StorePlace } from '../../maintenance/backup/state-copy.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import type { GetResult, StorageDriver } from '../../storage/contract/driver.ts';
import { FileDriver } from '../../storage/file/file-driver.ts';
import { bucketDriver } from '../../storage/s3/driver-from-env.ts';
import { checkProtection } from '../../storage/wrap/encryption-options.ts';
import type { Compression, EncryptionOptions } from '../../storage/wrap/encryption-options.ts';
import { protectedDriver } from '../../storage/wrap/envelope-driver.ts';
import { UsageError } from '../terminal/exit-code.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** A store and the prefix of a database in it, which need not exist. */
export interface Place {
  readonly driver: StorageDriver;
  readonly store: string;
  /** Tells stores apart. */
  readonly storeId: string;
  readonly prefix: string;
  /** How objects are stored there. Default: neither compressed nor encrypted. */
  readonly storage?: StorageOptions;
}

/** What is to be copied from one place to another goes through one driver where both are in one store, which may copy then. */
export function targetOf(to: Place, from: Place): StorePlace {
  return { driver: to.storeId === from.storeId ? from.driver : to.driver, prefix: to.prefix };
}

/** A place as people write it. */
export function describePlace({ store, prefix }: Pick<Place, 'store' | 'prefix'>): string {
  return store.startsWith('s3:') ? `${store}/${prefix}` : `${store}#${prefix}`;
}

/** Finds the only database in the store where the URL names no prefix. Throws `UsageError`. */
export async function placeOf(url: string, signal: AbortSignal): Promise<Place> {
  const { driver, store, storeId, prefix } = locate(url);
  if (prefix !== undefined) return { driver, store, storeId, prefix };
  const { prefixes, complete } = await findDatabases(driver, signal);
  const [only] = prefixes;
  if (only !== undefined && prefixes.length === 1 && complete) return { driver, store, storeId, prefix: only };
  await driver.close?.();
  const form = (found: string): string => describePlace({ store, prefix: found });
  if (only !== undefined && prefixes.length > 1) {
    const lines = prefixes.map((found) => `  ${form(found)}`);
    throw new UsageError(`There are several databases in ${store}. Name one:`, lines);
  }
  const advice = `If there should be one, name its prefix: ${form('my-app')}`;
  if (!complete)
    throw new UsageError(
      `${store} holds too much to look for databases in. Name the prefix: ${form(only ?? 'my-app')}`,
    );
  throw new UsageError(`There is no database in ${store}. ${advice}`);
}

/** Finds the place of a database that is to be made: the URL must name the prefix. */
export function newPlaceOf(url: string): Place {
  const { driver, store, storeId, prefix } = locate(url);
  if (prefix !== undefined) return { driver, store, storeId, prefix };
  const example = describePlace({ store, prefix: 'my-app' });
  throw new UsageError(
    `${url} says where, and not under which prefix the database is to be. Write ${example}, for instance.`,
  );
}

/** Reads what is in an object of a place. */
export function readContent(place: Place, name: string, signal: AbortSignal): Promise<GetResult> {
  return openedDriver(place).get(`${place.prefix}/${name}`, { signal });
}

/** The driver of a place that reads what is encrypted or compressed there. */
function openedDriver({ driver, prefix, storage }: Place): StorageDriver {
  const protection = checkProtection(storage?.encryption, storage?.compression);
  return protectedDriver({ driver, prefix, protection, environment: realEnvironment });
}

/** Block 0 as it is stored. Throws `UsageError` if there is none, and `CorruptionError`. */
export async function readBlock0(place: Place, signal: AbortSignal): Promise<Block0> {
  const found = await new Block0Reader(openedDriver(place), place.prefix).read({ signal });
  if (typeof found === 'string') throw new UsageError(`There is no database in ${describePlace(place)}.`);
  return found.block0;
}

/** The Block 0 of a kept state, of the bytes of its object. Throws `CorruptionError`. */
export function decodeKept(place: Place, bytes: Uint8Array, signal: AbortSignal): Promise<Block0> {
  return new Block0Reader(openedDriver(place), place.prefix).decode(bytes, { signal });
}

export interface OpenOptions {
  /** `replica`: only reads, and credentials that only read are enough. */
  readonly role: 'replica' | 'writer';
  readonly nodeId: number;
  readonly logLevel: LogLevel;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  /** Whether a database is made where there is none. Default: no, that is an error. */
  readonly create?: boolean;
  /** Whether a database is opened whose log is damaged, for commands that need no tables. Default: no, that is an error. */
  readonly damaged?: boolean;
  /** A table whose migration is to be finished: where that has functions of the application, it is not registered. */
  readonly finishing?: string;
  /** A table that is left unregistered: an index of a table that is registered would be added again. */
  readonly unregistered?: string;
  /** Shared with other databases. Default: memory of its own. */
  readonly memory?: MemoryBudget;
  /** Called after every request to the store. */
  readonly onRequest?: () => void;
}

/** Log lines go where messages go: the output is for results. */
function loggerTo(terminal: Terminal): Logger {
  const line = (message: string): void => terminal.tell(`store-db: ${message}`);
  return { debug: line, info: line, warn: line, error: line };
}

/** A database that was opened for a command. */
export class OpenDatabase implements AsyncDisposable {
  readonly place: Place;
  readonly db: Database;
  /** The tables that are stored; they are registered, but for those that the options leave out. */
  readonly tables: readonly SchemaDefinition[];

  constructor(place: Place, db: Database, tables: readonly SchemaDefinition[]) {
    this.place = place;
    this.db = db;
    this.tables = tables;
  }

  /** Throws `UsageError` with the names that there are. */
  table(name: string): SchemaDefinition {
    const found = this.tables.find((table) => table.name === name);
    if (found !== undefined) return found;
    const names = this.tables.map((table) => table.name);
    const others = names.length === 0 ? 'It has no tables.' : `The tables are ${names.join(', ')}.`;
    const meant = didYouMean(name, names) || '.';
    throw new UsageError(`There is no table ${name} in ${describePlace(this.place)}${meant} ${others}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.db.stop();
    await this.place.driver.close?.();
  }
}

/** Opens it and registers what is stored. */
export async function openDatabase(place: Place, options: OpenOptions): Promise<OpenDatabase> {
  const { role, nodeId, logLevel, terminal, signal, create = false, damaged = false, finishing } = options;
  const { unregistered, memory, onRequest } = options;
  if (!create) await readBlock0(place, signal);
  const { driver, prefix: dbPrefix, storage } = place;
  const logger = loggerTo(terminal);
  const common = { ...storage, dbPrefix, nodeId, role, driver, logLevel, logger, polling: 'onDemand' } as const;
  const db = createDatabase({ ...common, ...defined({ memory, onRequest }) }, realEnvironment);
  try {
    await db.start();
    const tables = await db.tables({ signal }).catch((error: unknown) => {
      if (damaged && error instanceof CorruptionError) return [];
      throw error;
    });
    for (const table of tables) {
      const { to } = table.name === finishing ? await db.migrationStatus(finishing, { signal }) : { to: null };
      // Registered in the old version, this process would be one that uses it.
      if (table.name !== unregistered && (to === null || to === table.version)) db.registerSchema(table);
    }
    return new OpenDatabase(place, db, tables);
  } catch (error) {
    await db.stop().catch(() => undefined);
    await driver.close?.();
    throw error;
  }
}

// Where a database is, as one URL: `file:./data`, `s3://bucket/prefix`.

/** A store, and the prefix in it, where the URL names one. */
export interface Location {
  /** The URL without the prefix, to be shown. */
  readonly store: string;
  /** Tells stores apart: also two buckets of one name at different endpoints. */
  readonly storeId: string;
  readonly driver: StorageDriver;
  readonly prefix: string | undefined;
}

const forms = 'file:./data, file:/var/lib/data#prefix or s3://bucket/prefix';

function decoded(text: string): string | undefined {
  try {
    const prefix = decodeURIComponent(text);
    return prefix === '' ? undefined : prefix;
  } catch {
    throw new UsageError(`The prefix ${text} has a % that is not followed by two digits: a % itself is written %25.`);
  }
}

function withoutPrefix(url: string): { readonly store: string; readonly prefix: string | undefined } {
  const at = url.indexOf('#');
  if (at === -1) return { store: url, prefix: undefined };
  return { store: url.slice(0, at), prefix: decoded(url.slice(at + 1)) };
}

function folderOf(store: string): string {
  if (store.startsWith('file://')) {
    try {
      return fileURLToPath(store);
    } catch {
      throw new UsageError(`${store} is no path: write file:./folder, or file:///folder with three slashes.`);
    }
  }
  const folder = store.slice('file:'.length);
  if (folder === '') throw new UsageError('file: names no folder: write file:./data, for instance.');
  return path.resolve(folder);
}

function inFolder(url: string): Location {
  const { store, prefix } = withoutPrefix(url);
  const folder = folderOf(store);
  const shown = `file:${folder}`;
  return { store: shown, storeId: shown, driver: new FileDriver(folder), prefix };
}

const parameters = ['endpoint', 'region', 'forcePathStyle'];

function inBucket(url: string): Location {
  if (!URL.canParse(url)) throw new UsageError(`${url} is no URL: write s3://bucket/prefix.`);
  const { hostname, pathname, searchParams, hash, username, password } = new URL(url);
  if (hostname === '') throw new UsageError(`${url} names no bucket: write s3://bucket/prefix.`);
  if (username !== '' || password !== '') {
    throw new UsageError(
      'Credentials do not belong into a URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.',
    );
  }
  const unknown = [...searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`The URL has a parameter ${unknown}. Those that there are: ${parameters.join(', ')}.`);
  }
  const prefix = decoded(pathname.replace(/^\//, '').replace(/\/$/, '') || hash.slice(1));
  const endpoint = searchParams.get('endpoint') ?? undefined;
  const region = searchParams.get('region') ?? undefined;
  const style = searchParams.get('forcePathStyle') ?? undefined;
  const driver = bucketDriver(hostname, {
    ...defined({ endpoint, region }),
    ...(style !== undefined && { forcePathStyle: style === '1' || style === 'true' }),
  });
  const store = `s3://${hostname}`;
  searchParams.sort();
  return { store, storeId: `${store}?${searchParams.toString()}`, driver, prefix };
}

/** Throws `UsageError`; nothing is read or connected to. */
export function locate(url: string): Location {
  if (url.startsWith('file:')) return inFolder(url);
  if (url.startsWith('s3:')) return inBucket(url);
  const hint = /^[./~]/.test(url) || !url.includes(':') ? ` For a folder write file:${url}.` : '';
  throw new UsageError(`'${url}' is no URL of a database. Those look like ${forms}.${hint}`);
}

// Looks for databases in a store whose prefix was not said.

/** Steps after which the search ends: a store may hold any number of other objects. */
const maxSteps = 200;

export interface FoundDatabases {
  readonly prefixes: readonly string[];
  /** Whether everything was looked at. */
  readonly complete: boolean;
}

/** Every folder of a key, the outermost first: `a`, `a/b` of `a/b/c`. */
function foldersOf(key: string): string[] {
  const parts = key.split('/');
  return parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join('/'));
}

async function isDatabase(driver: StorageDriver, prefix: string, signal: AbortSignal): Promise<boolean> {
  const key = `${prefix}/${block0Name}`;
  const { entries } = await driver.list(key, { limit: 1, signal });
  return entries[0]?.key === key;
}

/** Where to look. */
export interface SearchOptions {
  /** Only what is in this folder. Default: all of the store. */
  readonly under?: string | undefined;
  /** However long it takes. Default: it ends after 200 steps. */
  readonly patient?: boolean;
}

/** The prefixes under which there is a Block 0. One step is a listing of one key, and one of each folder that is new. */
export async function findDatabases(
  driver: StorageDriver,
  signal: AbortSignal,
  { under, patient = false }: SearchOptions = {},
): Promise<FoundDatabases> {
  const prefixes: string[] = [];
  // Folders around the one that is looked through are of no interest.
  const looked = new Set<string>(under === undefined ? [] : foldersOf(under));
  let after: string | undefined;
  const stepLimit = patient ? Number.POSITIVE_INFINITY : maxSteps;
  for (let step = 0; step < stepLimit; step++) {
    const { entries } = await driver.list(under === undefined ? '' : `${under}/`, {
      limit: 1,
      signal,
      ...defined({ after }),
    });
    const key = entries[0]?.key;
    if (key === undefined) return { prefixes, complete: true };
    const fresh = foldersOf(key).filter((folder) => !looked.has(folder));
    let found: string | undefined;
    for (const folder of fresh) {
      looked.add(folder);
      if (!(await isDatabase(driver, folder, signal))) continue;
      found = folder;
      break;
    }
    if (found !== undefined) prefixes.push(found);
    // Behind everything in the folder: no key has a part of a code point, and this is the last of them.
    const folder = found ?? foldersOf(key).at(-1);
    after = folder === undefined ? key : `${folder}/\u{10ffff}`;
  }
  return { prefixes, complete: false };
}

// The keys that a command is given: in a file, in a variable, or on the command line, where other processes can read them.

/** The options of `StoreDb()` that say how objects are stored. */
export interface StorageOptions {
  readonly encryption?: EncryptionOptions;
  readonly compression: Compression;
}

function parsed(text: string, what: string): EncryptionOptions {
  try {
    return JSON.parse(text) as EncryptionOptions;
  } catch {
    // What the parser says would quote the keys.
    throw new UsageError(`${what} is not JSON. It holds, for instance, {"keys":{"2026":"(base64)"},"current":"2026"}.`);
  }
}

/** Without the quotes that some shells leave around a word. */
function unquoted(given: string): string {
  return /^\s*'(.*)'\s*$/s.exec(given)?.[1] ?? given;
}

/** Whether what was given are the keys themselves, and not the name of a file. */
export function isKeyText(given: string): boolean {
  return unquoted(given).trimStart().startsWith('{');
}

/** The option `encryption`: JSON, or a file with it. Throws `UsageError`, which holds nothing of the keys. */
export function readKeys(given: string): EncryptionOptions {
  if (isKeyText(given)) return parsed(unquoted(given), 'What was given as the keys');
  let text: string;
  try {
    text = readFileSync(given, 'utf8');
  } catch (error) {
    // Somebody may have given a key, and not the name of a file.
    throw new UsageError(`The file with the keys cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
  return parsed(text, 'The file with the keys');
}
