/** Finds or creates the database for a drafted table. */
import { stat } from 'node:fs/promises';
import { realEnvironment } from '../../base/env.ts';
import { createDatabase } from '../../api/database.ts';
import type { Database } from '../../api/database.ts';
import { MemoryDriver } from '../../storage/memory-driver.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import type { Session } from '../database/command.ts';
import { locate, findDatabases, describePlace, findPlace, readBlock0 } from '../database/open-database.ts';
import type { OpenDatabase, Place } from '../database/open-database.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { inputFiles } from '../input/input-files.ts';
import type { InputFile } from '../input/input-files.ts';
import { tableNameOf } from './draft-files.ts';

/** The default database. */
export const defaultDatabase = 'file:./data';
/** The default prefix of a new database. */
const defaultPrefix = 'main';

/** The arguments of `import --create`. */
export interface NewTable {
  readonly url: string;
  readonly table: string;
  readonly files: readonly InputFile[];
}

async function isTableName(word: string): Promise<boolean> {
  if (word === '-' || /[*?[/\\]/.test(word)) return false;
  return stat(word).then(
    () => false,
    () => true,
  );
}

/** Whether a word is the URL of a database, and no file. */
export function isDatabaseUrl(word: string): boolean {
  return /^(?:file|s3):/.test(word);
}

/**
 * Parses the arguments of `import --create`. The database is a URL and comes first. A word before the files that is not the name of a
 * file is the table; otherwise the table is named after the first file. Throws `UsageError`.
 */
export async function newTableOf(words: readonly string[], named: string | undefined): Promise<NewTable> {
  const [first = ''] = words;
  const hasUrl = isDatabaseUrl(first);
  let rest = hasUrl ? words.slice(1) : words;
  let table = named;
  const [candidate] = rest;
  if (table === undefined && candidate !== undefined && rest.length > 1 && (await isTableName(candidate))) {
    table = candidate;
    rest = rest.slice(1);
  }
  if (rest.length === 0) throw new UsageError('Name a file to make a table from, or - for standard input.');
  const [only] = rest;
  if (
    table === undefined &&
    only !== undefined &&
    rest.length === 1 &&
    /^[\w-]+$/.test(only) &&
    (await isTableName(only))
  ) {
    throw new UsageError(
      `${only} is no file. To make a table ${only} from standard input, write - after it: ${hasUrl ? `${first} ` : ''}${only} - --create`,
    );
  }
  const files = await inputFiles(rest);
  return { url: hasUrl ? first : defaultDatabase, table: table ?? tableNameOf(files[0] as InputFile), files };
}

/** Returns the prefix of the database that a URL names. The database need not exist. Throws `UsageError`. */
async function prefixOf(url: string, signal: AbortSignal): Promise<string> {
  const { driver, prefix } = locate(url);
  try {
    if (prefix !== undefined) return prefix;
    const { prefixes, complete } = await findDatabases(driver, signal);
    if (prefixes.length === 0 && complete) return defaultPrefix;
  } finally {
    await driver.close?.();
  }
  const found = await findPlace(url, signal);
  await found.driver.close?.();
  return found.prefix;
}

/** The database in which a table will be created. */
export class TargetDatabase {
  readonly #session: Session;
  readonly #url: string;
  readonly #prefix: string;

  private constructor(session: Session, url: string, prefix: string) {
    this.#session = session;
    this.#url = url;
    this.#prefix = prefix;
  }

  static async at(url: string, session: Session): Promise<TargetDatabase> {
    return new TargetDatabase(session, url, await prefixOf(url, session.signal));
  }

  /** The URL of the database, for messages. */
  get name(): string {
    return describePlace(this.#place());
  }

  #place(): Place {
    return { ...locate(this.#url), prefix: this.#prefix, storage: this.#session.storage };
  }

  /** Throws `UsageError` if a table of the name exists. Writes nothing. */
  async refuseTaken(table: string): Promise<void> {
    if (!(await this.#exists())) return;
    await using opened = await this.#session.openAt(this.#place(), 'replica');
    if (!opened.tables.some(({ name }) => name === table)) return;
    throw new UsageError(
      `There is a table ${table} in ${this.name} already. Leave out --create to import into it, or name the new one with --table.`,
    );
  }

  async #exists(): Promise<boolean> {
    const place = this.#place();
    try {
      await readBlock0(place, this.#session.signal);
      return true;
    } catch (error) {
      if (error instanceof UsageError) return false;
      throw error;
    } finally {
      await place.driver.close?.();
    }
  }

  /** Opens the database, and creates it if it does not exist. */
  open(): Promise<OpenDatabase> {
    return this.#session.openAt(this.#place(), 'writer', { create: true });
  }
}

/** Opens a database in memory with one table, to test rows before anything is created. */
export async function scratchDatabase(schema: SchemaDefinition): Promise<Database & AsyncDisposable> {
  const options = { dbPrefix: 'scratch', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' } as const;
  const db = createDatabase({ ...options, polling: 'onDemand' }, realEnvironment);
  db.registerSchema(schema);
  await db.start();
  return db;
}
