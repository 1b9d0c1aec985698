/** Finds and opens the database that a URL names, such as `file:./data` or `s3://bucket/prefix`, for one command. */
import { readFileSync } from 'node:fs';
import { createDatabase } from '../../api/database.ts';
import type { Database } from '../../api/database.ts';
import { realEnvironment } from '../../base/env.ts';
import { CorruptionError, InvalidOptionError } from '../../base/errors.ts';
import type { Logger, LogLevel } from '../../base/logger.ts';
import { defined, didYouMean } from '../../base/options.ts';
import { systemSchemas } from '../../blob/blob-tables.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import type { MemoryBudget } from '../../cache/memory-budget.ts';
import type { Polling } from '../../coordination/polling-pace.ts';
import type { Block0 } from '../../format/block0.ts';
import { block0Name } from '../../format/object-names.ts';
import type { StorePlace } from '../../maintenance/backup/state-copy.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { toDefinition } from '../../schema/stored-definition.ts';
import type { GetResult, StorageDriver } from '../../storage/contract/driver.ts';
import { namedStore } from '../../storage/store-url.ts';
import type { NamedStore } from '../../storage/store-url.ts';
import { checkProtection } from '../../storage/wrap/encryption-options.ts';
import type { Compression, EncryptionOptions } from '../../storage/wrap/encryption-options.ts';
import { protectedDriver } from '../../storage/wrap/envelope-driver.ts';
import { UsageError } from '../terminal/exit-code.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** A store and the prefix of a database in it. The database need not exist. */
export interface Place {
  readonly driver: StorageDriver;
  readonly store: string;
  /** Different for different stores. */
  readonly storeId: string;
  readonly prefix: string;
  /** The encryption and compression of the objects there. Default: none. */
  readonly storage?: StorageOptions;
}

/** Returns the target of a copy. If both places are in one store it uses the driver of `from`, so that the store itself can copy. */
export function targetOf(to: Place, from: Place): StorePlace {
  return { driver: to.storeId === from.storeId ? from.driver : to.driver, prefix: to.prefix };
}

/** Returns the URL of a place, for messages. */
export function describePlace({ store, prefix }: Pick<Place, 'store' | 'prefix'>): string {
  return store.startsWith('s3:') ? `${store}/${prefix}` : `${store}#${prefix}`;
}

/** Resolves a URL to a place. If the URL names no prefix, finds the only database in the store. Throws `UsageError`. */
export async function findPlace(url: string, signal: AbortSignal): Promise<Place> {
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
      `${store} holds too many objects to search for databases. Name the prefix: ${form(only ?? 'my-app')}`,
    );
  throw new UsageError(`There is no database in ${store}. ${advice}`);
}

/** Resolves the URL of a database that will be created, which must name the prefix. Throws `UsageError`. */
export function newPlaceOf(url: string): Place {
  const { driver, store, storeId, prefix } = locate(url);
  if (prefix !== undefined) return { driver, store, storeId, prefix };
  const example = describePlace({ store, prefix: 'my-app' });
  throw new UsageError(`${url} names a store, but no prefix for the database. Write for example ${example}.`);
}

/** Reads an object of a place, decrypted and decompressed. */
export function readContent(place: Place, name: string, signal: AbortSignal): Promise<GetResult> {
  return openedDriver(place).get(`${place.prefix}/${name}`, { signal });
}

/** Returns the driver of a place, wrapped to decrypt and decompress. */
function openedDriver({ driver, prefix, storage }: Place): StorageDriver {
  const protection = checkProtection(storage?.encryption, storage?.compression);
  return protectedDriver({ driver, prefix, protection, environment: realEnvironment });
}

/** Reads Block 0. Throws `UsageError` if there is none, and `CorruptionError`. */
export async function readBlock0(place: Place, signal: AbortSignal): Promise<Block0> {
  const found = await new Block0Reader(openedDriver(place), place.prefix).read({ signal });
  if (typeof found === 'string') throw new UsageError(`There is no database in ${describePlace(place)}.`);
  return found.block0;
}

/** Decodes the Block 0 of a retained state from the bytes of its object. Throws `CorruptionError`. */
export function decodeKept(place: Place, bytes: Uint8Array, signal: AbortSignal): Promise<Block0> {
  return new Block0Reader(openedDriver(place), place.prefix).decode(bytes, { signal });
}

export interface OpenOptions {
  /** `replica`: the command only reads, and needs credentials only for that. */
  readonly role: 'replica' | 'writer';
  readonly nodeId: number;
  readonly logLevel: LogLevel;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  /** Whether to create a database that does not exist. Default: no, that is an error. */
  readonly create?: boolean;
  /** Whether to open a database whose log is damaged, for commands that need no tables. Default: no, that is an error. */
  readonly damaged?: boolean;
  /** A table whose migration this command finishes. It is left unregistered while its migration goes to another version. */
  readonly finishing?: string;
  /** A table to leave unregistered: if it were registered, an index that is dropped would be added again. */
  readonly unregistered?: string;
  /** Whether to register no tables: the command does so itself. Default: no. */
  readonly isBare?: boolean;
  /** How often the instance looks at the store by itself. Default: on demand. */
  readonly polling?: Polling;
  /** A budget shared with other databases. Default: one of its own. */
  readonly memory?: MemoryBudget;
  /** Called after every request to the store. */
  readonly onRequest?: () => void;
}

/** Returns a logger that writes to the messages of the terminal: the output is for results. */
function loggerTo(terminal: Terminal): Logger {
  const line = (message: string): void => terminal.tell(`store-db: ${message}`);
  return { debug: line, info: line, warn: line, error: line };
}

const systemTables: readonly SchemaDefinition[] = systemSchemas.map(toDefinition);

/** A database opened for a command. */
export class OpenDatabase implements AsyncDisposable {
  readonly place: Place;
  readonly db: Database;
  /** The stored tables. They are registered, except those that the options leave out. */
  readonly tables: readonly SchemaDefinition[];

  constructor(place: Place, db: Database, tables: readonly SchemaDefinition[]) {
    this.place = place;
    this.db = db;
    this.tables = tables;
  }

  /** Returns the table with a name. Throws `UsageError`, which lists the existing names. */
  table(name: string): SchemaDefinition {
    const found = this.tables.find((table) => table.name === name);
    if (found !== undefined) return found;
    const names = this.tables.map((table) => table.name);
    const others = names.length === 0 ? 'It has no tables.' : `The tables are ${names.join(', ')}.`;
    const meant = didYouMean(name, names) || '.';
    throw new UsageError(`There is no table ${name} in ${describePlace(this.place)}${meant} ${others}`);
  }

  /** Returns the table, or the system table of blobs, with a name: a query may read both. Throws `UsageError`. */
  readable(name: string): SchemaDefinition {
    return systemTables.find((table) => table.name === name) ?? this.table(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.db.stop();
    await this.place.driver.close?.();
  }
}

/** Opens a database and registers its stored tables. */
export async function openDatabase(place: Place, options: OpenOptions): Promise<OpenDatabase> {
  const { role, nodeId, logLevel, terminal, signal, create = false, damaged = false, finishing } = options;
  const { unregistered, memory, onRequest, isBare = false, polling = 'onDemand' } = options;
  if (!create) await readBlock0(place, signal);
  const { driver, prefix: dbPrefix, storage } = place;
  const logger = loggerTo(terminal);
  const common = { ...storage, dbPrefix, nodeId, role, driver, logLevel, logger, polling } as const;
  const db = createDatabase({ ...common, ...defined({ memory, onRequest }) }, realEnvironment);
  try {
    await db.start();
    const tables = await db.tables({ signal }).catch((error: unknown) => {
      if (damaged && error instanceof CorruptionError) return [];
      throw error;
    });
    for (const table of isBare ? [] : tables) {
      const { to } = table.name === finishing ? await db.migrationStatus(finishing, { signal }) : { to: null };
      // With the old version registered, this process would count as an instance that uses it.
      if (table.name !== unregistered && (to === null || to === table.version)) db.registerSchema(table);
    }
    return new OpenDatabase(place, db, tables);
  } catch (error) {
    await db.stop().catch(() => undefined);
    await driver.close?.();
    throw error;
  }
}

/** A store, and the prefix in it if the URL names one. */
export type Location = NamedStore;

/** Parses the URL of a database, without connecting to the store. Throws `UsageError`. */
export function locate(url: string): Location {
  try {
    return namedStore(url);
  } catch (error) {
    throw error instanceof InvalidOptionError ? new UsageError(error.message) : error;
  }
}

/** Steps after which the search for databases ends: a store may hold any number of other objects. */
const maxSteps = 200;

export interface FoundDatabases {
  readonly prefixes: readonly string[];
  /** Whether the search covered the whole store or folder. */
  readonly complete: boolean;
}

/** Returns the folders of a key, outermost first: `a` and `a/b` for `a/b/c`. */
function foldersOf(key: string): string[] {
  const parts = key.split('/');
  return parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join('/'));
}

async function isDatabase(driver: StorageDriver, prefix: string, signal: AbortSignal): Promise<boolean> {
  const key = `${prefix}/${block0Name}`;
  const { entries } = await driver.list(key, { limit: 1, signal });
  return entries[0]?.key === key;
}

/** The scope of a search for databases. */
export interface SearchOptions {
  /** The folder to search. Default: the whole store. */
  readonly under?: string | undefined;
  /** Whether to search to the end, however long it takes. Default: stop after 200 steps. */
  readonly patient?: boolean;
}

/** Finds the prefixes that have a Block 0. One step lists one key, and checks each folder of it that is new. */
export async function findDatabases(
  driver: StorageDriver,
  signal: AbortSignal,
  { under, patient = false }: SearchOptions = {},
): Promise<FoundDatabases> {
  const prefixes: string[] = [];
  // The folders around `under` are not searched.
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
    // After everything in the folder: this is the last code point, so no key in the folder is greater.
    const folder = found ?? foldersOf(key).at(-1);
    after = folder === undefined ? key : `${folder}/\u{10ffff}`;
  }
  return { prefixes, complete: false };
}

/** The options of `StoreDb()` that say how objects are stored. */
export interface StorageOptions {
  readonly encryption?: EncryptionOptions;
  readonly compression: Compression;
}

function parsed(text: string, what: string): EncryptionOptions {
  try {
    return JSON.parse(text) as EncryptionOptions;
  } catch {
    // The message of the parser would quote the keys.
    throw new UsageError(`${what} is not JSON. Write for example {"keys":{"2026":"(base64)"},"current":"2026"}.`);
  }
}

/** Removes the quotes that some shells leave around a word. */
function unquoted(given: string): string {
  return /^\s*'(.*)'\s*$/s.exec(given)?.[1] ?? given;
}

/** Whether the value of `--keys` or `STOREDB_KEYS` is the keys themselves, and not the name of a file. */
export function isKeyText(given: string): boolean {
  return unquoted(given).trimStart().startsWith('{');
}

/** Reads the option `encryption` from JSON, or from a file that holds it. Throws `UsageError`, which contains no part of the keys. */
export function readKeys(given: string): EncryptionOptions {
  if (isKeyText(given)) return parsed(unquoted(given), 'The text of the keys');
  let text: string;
  try {
    text = readFileSync(given, 'utf8');
  } catch (error) {
    // The argument may be a key instead of a file name, so the message must not quote it.
    throw new UsageError(`The file with the keys cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
  return parsed(text, 'The file with the keys');
}
