/** Two instances on one store, with a table of articles, random changes of it, and a model of its rows. */
import type { Database } from '../../../src/api/database.ts';
import type { Batch } from '../../../src/batch/batch.ts';
import type { Query } from '../../../src/query/query.ts';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import type { Random } from '../../properties/model/random.ts';
import { Nodes } from '../protocol/nodes.ts';
import { clauseOf } from '../query/model.ts';
import type { ModelCondition } from '../query/model.ts';
import { articleOf, articles, queryOf, resultOf, searchOf, textOf } from './random-articles.ts';
import type { AskedArticles } from './random-articles.ts';
import { rankedModel } from './search-model.ts';
import type { Article, Scored } from './search-model.ts';

export type Articles = Map<number, Article>;
export type ArticleQuery = Query<Article>;

/** A change that a batch or a transaction makes. */
export type Change =
  | { readonly kind: 'insert' | 'upsert'; readonly row: Article }
  | { readonly kind: 'update'; readonly id: number; readonly fields: Partial<Article> }
  | { readonly kind: 'increment' | 'delete'; readonly id: number }
  | { readonly kind: 'updateWhere'; readonly query: AskedArticles; readonly fields: Partial<Article> }
  | { readonly kind: 'deleteWhere'; readonly query: AskedArticles };

/** Returns a query on articles as the query builder has it. */
export function built(
  query: ArticleQuery,
  { text, options, wheres, orders, limit, offset }: AskedArticles,
): ArticleQuery {
  let asked = query.search(text, options).offset(offset);
  for (const clause of wheres) {
    if (Array.isArray(clause)) asked = asked.where(...(clause as ModelCondition));
    else asked = asked.where((clauses) => clauseOf(clauses as never, clause));
  }
  for (const [field, direction] of orders) asked = asked.orderBy(field as keyof Article, direction);
  return limit === undefined ? asked : asked.limit(limit);
}

/** Returns the rows that a search finds, as the model ranks them. */
export function found(rows: Articles, { text, options }: Pick<AskedArticles, 'text' | 'options'>): Scored[] {
  return rankedModel([...rows.values()], [3, 1], text, options);
}

/** Whether the first rows of a query depend on scores. */
export function isCutByScore({ orders, limit, offset }: AskedArticles): boolean {
  return orders.length === 0 && (limit !== undefined || offset > 0);
}

/** Changes the rows of the model. */
export function applyTo(rows: Articles, change: Change): void {
  const update = (id: number, fields: Partial<Article>): unknown =>
    rows.set(id, { ...(rows.get(id) as Article), ...fields });
  switch (change.kind) {
    case 'insert':
    case 'upsert':
      rows.set(change.row.id, change.row);
      break;
    case 'update':
      update(change.id, change.fields);
      break;
    case 'increment':
      update(change.id, { section: (rows.get(change.id) as Article).section + 1 });
      break;
    case 'delete':
      rows.delete(change.id);
      break;
    case 'updateWhere':
      for (const { id } of resultOf(found(rows, change.query), change.query)) update(id, change.fields);
      break;
    case 'deleteWhere':
      for (const { id } of resultOf(found(rows, change.query), change.query)) rows.delete(id);
  }
}

/** Makes a change by a batch or a transaction. `query`: begins a query for it. */
export async function make(on: Batch | Transaction, change: Change, query: () => ArticleQuery): Promise<unknown> {
  switch (change.kind) {
    case 'insert':
      return on.insert(articles, change.row);
    case 'upsert':
      return on.upsert(articles, change.row);
    case 'update':
      return on.update(articles, { id: change.id, ...change.fields });
    case 'increment':
      return on.increment(articles, change.id, { section: 1 });
    case 'delete':
      return on.delete(articles, change.id);
    case 'updateWhere':
      return on.updateWhere(built(query(), change.query), change.fields);
    case 'deleteWhere':
      return on.deleteWhere(built(query(), change.query));
  }
}

export class ArticleWorld {
  readonly nodes: Nodes;
  readonly random: Random;
  /** All rows that are committed. */
  readonly rows: Articles = new Map();
  /** Whether all commits are merged. */
  isMerged = true;
  #nextId = 1000;
  #a: Database | undefined;
  #b: Database | undefined;

  constructor(random: Random) {
    this.random = random;
    this.nodes = new Nodes();
  }

  get a(): Database {
    return this.#a as Database;
  }

  get b(): Database {
    return this.#b as Database;
  }

  /** Starts the instances, and commits and merges some rows. */
  async start(): Promise<void> {
    const started: Database[] = [];
    for (const nodeId of [0, 1]) {
      const { db } = this.nodes.make(nodeId, { logLevel: 'silent', blockSizeBytes: 4096 });
      db.registerSchema(articles);
      await db.start();
      started.push(db);
    }
    [this.#a, this.#b] = started;
    await this.commit(Array.from({ length: 60 }, (_, i) => ({ kind: 'insert', row: articleOf(this.random, i * 2) })));
    await this.merge();
  }

  async stop(): Promise<void> {
    await this.a.stop();
    await this.b.stop();
  }

  /** Commits changes by one of the instances. The other one follows, unless it finds out by itself. */
  async commit(
    changes: readonly Change[],
    by: Database = this.random.pick([this.a, this.b]),
    follow = true,
  ): Promise<void> {
    if (changes.length === 0) return;
    const batch = by.batch();
    for (const change of changes) await make(batch, change, () => by.query(articles) as ArticleQuery);
    await batch.flush();
    for (const change of changes) applyTo(this.rows, change);
    this.isMerged = false;
    if (follow) await this.follow();
  }

  /** Lets both instances see every commit. */
  async follow(): Promise<void> {
    await this.a.refresh();
    await this.b.refresh();
  }

  async merge(): Promise<void> {
    await this.a.checkpoint();
    await this.follow();
    this.isMerged = true;
  }

  newArticle(): Article {
    return articleOf(this.random, this.#nextId++);
  }

  /** Returns random changes of different rows. `rows`: those that there are; `whole`: also those by the query of a search. */
  changes(rows: Articles, count: number, { whole = false, deletes = true } = {}): Change[] {
    const view = new Map(rows);
    const taken = new Set<number>();
    return Array.from({ length: count }, () => {
      const change = whole && this.random.chance(0.15) ? this.#wholeChange() : this.#change(view, taken, deletes);
      applyTo(view, change);
      return change;
    });
  }

  #wholeChange(): Change {
    const { random } = this;
    const query = { ...searchOf(random), ...queryOf(random) };
    const asked = isCutByScore(query) ? { ...query, limit: undefined, offset: 0 } : query;
    if (random.chance(0.5)) return { kind: 'deleteWhere', query: asked };
    return { kind: 'updateWhere', query: asked, fields: this.#fields() };
  }

  #change(rows: Articles, taken: Set<number>, deletes: boolean): Change {
    const { random } = this;
    const id = random.pick([...rows.keys()]);
    if (random.chance(0.25) || taken.has(id)) return { kind: 'insert', row: this.newArticle() };
    taken.add(id);
    const kind = random.pick(['update', 'update', 'upsert', 'increment', 'delete'] as const);
    if (kind === 'upsert') return { kind, row: articleOf(random, id) };
    if (kind === 'update' || (kind === 'delete' && !deletes)) return { kind: 'update', id, fields: this.#fields() };
    return { kind, id };
  }

  #fields(): Partial<Article> {
    const { random } = this;
    const { title, body, section } = articleOf(random, 0);
    return random.pick([{ title }, { body }, { section }, { title: textOf(random, 2), section }]);
  }
}
