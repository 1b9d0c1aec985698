/** What is compared: each has the same texts, and gives the ten best rows of a search with all of their fields. */
import { readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import { wantedRows } from './searches.ts';
import type { BenchSearch } from './searches.ts';
import { articles } from './texts.ts';
import type { Article } from './texts.ts';

export interface SearchContender {
  /** Stores and indexes the texts. */
  build(rows: number): Promise<void> | void;
  /** Returns the bytes that the index takes; undefined where it is in memory only. */
  indexBytes(rows: number): Promise<number> | number | undefined;
  search(search: BenchSearch): Promise<readonly Article[]> | readonly Article[];
  close(): Promise<void> | void;
}

const peers = createRequire(path.join(import.meta.dirname, '../peers/package.json'));

const fields = {
  id: { typeId: Types.uint32 },
  title: { typeId: Types.varchar },
  body: { typeId: Types.varchar },
} as const;

const plain = defineSchema({ name: 'articles', version: 1, fields, primaryKey: 'id' });

export const searched = defineSchema({
  name: 'articles',
  version: 1,
  fields,
  primaryKey: 'id',
  indexes: [{ fields: ['title', 'body'], text: { language: 'en', weights: { title: 3 } } }],
});

function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0);
}

class StoreDbSearch implements SearchContender {
  readonly #folder: string;
  #db: Database | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get #place(): string {
    return path.join(this.#folder, 'searched');
  }

  async build(rows: number): Promise<void> {
    this.#db = await this.#load(this.#place, searched, rows);
  }

  /** Loads the texts once more, without the index. Blocks that the database needs no longer do not count. */
  async indexBytes(rows: number): Promise<number> {
    const folder = path.join(this.#folder, 'plain');
    const db = await this.#load(folder, plain, rows);
    for (const one of [db, this.#db as Database]) await one.gc({ logRetentionMs: 0 });
    await db.stop();
    return bytesIn(this.#place) - bytesIn(folder);
  }

  async #load(folder: string, schema: typeof plain | typeof searched, rows: number): Promise<Database> {
    const db = StoreDb({
      driver: new FileDriver(folder),
      dbPrefix: 'db',
      nodeId: 0,
      logLevel: 'error',
      maxMemoryBytes: 1024 ** 3,
    });
    db.registerSchema(schema);
    await db.start();
    await db.load(schema, articles(rows));
    await db.checkpoint();
    return db;
  }

  search({ text, match, prefix }: BenchSearch): Promise<readonly Article[]> {
    const query = (this.#db as Database).query(searched).search(text, { match, prefix });
    return query.limit(wantedRows).execute() as Promise<Article[]>;
  }

  async close(): Promise<void> {
    await this.#db?.stop();
  }
}

interface Statement {
  run(...values: unknown[]): unknown;
  all(...values: unknown[]): Article[];
}

interface Sqlite {
  exec(text: string): unknown;
  prepare(text: string): Statement;
  close(): void;
}

/** FTS5 of SQLite, with its own stems of English. It holds the texts, too. */
class Fts5 implements SearchContender {
  readonly #db: Sqlite;
  #select: Statement | undefined;

  constructor(folder: string) {
    this.#db = new (peers('better-sqlite3') as new (file: string) => Sqlite)(path.join(folder, 'fts5.sqlite'));
  }

  build(rows: number): void {
    const db = this.#db;
    db.exec('PRAGMA cache_size = -1000000');
    db.exec("CREATE VIRTUAL TABLE docs USING fts5(title, body, tokenize = 'porter unicode61')");
    db.exec("INSERT INTO docs (docs, rank) VALUES ('rank', 'bm25(3, 1)')");
    const insert = db.prepare('INSERT INTO docs (rowid, title, body) VALUES (?, ?, ?)');
    db.exec('BEGIN');
    for (const { id, title, body } of articles(rows)) insert.run(id, title, body);
    db.exec("INSERT INTO docs (docs) VALUES ('optimize'); COMMIT");
    this.#select = db.prepare('SELECT rowid AS id, title, body FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT ?');
  }

  indexBytes(): number {
    const [size] = this.#db
      .prepare('SELECT (SELECT sum(length(block)) FROM docs_data) + (SELECT sum(length(sz)) FROM docs_docsize) AS id')
      .all();
    return size?.id ?? 0;
  }

  search({ text, match, prefix }: BenchSearch): readonly Article[] {
    const words = text.split(' ').join(match === 'any' ? ' OR ' : ' ');
    return (this.#select as Statement).all(prefix ? `${words}*` : words, wantedRows);
  }

  close(): void {
    this.#db.close();
  }
}

interface MiniIndex {
  addAll(documents: readonly Article[]): void;
  search(text: string, options: object): { readonly id: number; readonly title: string; readonly body: string }[];
}

/** MiniSearch, which has all in memory, and no stems. It ranks all rows and has no limit. */
class MiniSearch implements SearchContender {
  #index: MiniIndex | undefined;

  build(rows: number): void {
    const Index = peers('minisearch') as new (options: object) => MiniIndex;
    const index = new Index({ fields: ['title', 'body'], storeFields: ['title', 'body'] });
    index.addAll([...articles(rows)]);
    this.#index = index;
  }

  indexBytes(): undefined {
    return undefined;
  }

  search({ text, match, prefix }: BenchSearch): readonly Article[] {
    const last = text.split(' ').length - 1;
    const options = {
      boost: { title: 3 },
      combineWith: match === 'any' ? 'OR' : 'AND',
      prefix: (_: string, i: number) => prefix && i === last,
    };
    const found = (this.#index as MiniIndex).search(text, options).slice(0, wantedRows);
    return found.map(({ id, title, body }) => ({ id, title, body }));
  }

  close(): void {
    this.#index = undefined;
  }
}

export const openers = {
  StoreDb: (folder: string) => new StoreDbSearch(folder),
  FTS5: (folder: string) => new Fts5(folder),
  MiniSearch: () => new MiniSearch(),
} as const;

export type ContenderName = keyof typeof openers;
