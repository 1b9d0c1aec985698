/** Opens the database that a URL names, for one command. */
import { defined } from '../../base/defined.ts';
import { CorruptionError } from '../../base/errors.ts';
import { didYouMean } from '../../base/known-names.ts';
import { createDatabase } from '../../api/create.ts';
import type { Database } from '../../api/database.ts';
import { realEnvironment } from '../../base/env.ts';
import type { Logger, LogLevel } from '../../base/logger.ts';
import type { Block0 } from '../../format/block0.ts';
import type { StorePlace } from '../../maintenance/backup/state-copy.ts';
import type { MemoryBudget } from '../../cache/memory-budget.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import { protectedDriver } from '../../storage/wrap/envelope-driver.ts';
import type { GetResult, StorageDriver } from '../../storage/contract/driver.ts';
import { checkProtection } from '../../storage/wrap/encryption-options.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { locate } from './database-url.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { findDatabases } from './find-databases.ts';
import type { StorageOptions } from './key-file.ts';
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

/** The same for a database that is to be made: the URL must name the prefix. */
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
