/**
 * Random searches with the writes of a batch or a transaction on top, against a model; what transactions have searched holds when they are
 * committed; and pages of searches while rows change.
 */
import { expect, it } from 'vitest';
import type { Page } from '../../../src/query/page-options.ts';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import { Random } from '../../properties/model/random.ts';
import { ArticleWorld, applyTo, built, found, isCutByScore, make } from './article-world.ts';
import type { ArticleQuery, Articles, Change } from './article-world.ts';
import { articleOf, articles, expectRanked, isAtLeast, queryOf, resultOf, searchOf } from './random-articles.ts';
import type { AskedArticles } from './random-articles.ts';
import type { Article, Scored, Statistics } from './search-model.ts';

const seeds = [1, 2, 3];
const everyRow = { wheres: [], orders: [], limit: undefined, offset: 0 };

function askedBy(random: Random): AskedArticles {
  return { ...searchOf(random), ...queryOf(random) };
}

function idsOf(rows: readonly Article[]): number[] {
  return rows.map(({ id }) => id);
}

/** Runs a test on articles that random changes are made of. */
async function inWorld(seed: number, work: (world: ArticleWorld) => Promise<void>): Promise<void> {
  const world = new ArticleWorld(new Random(seed));
  const all = async (): Promise<void> => {
    await world.start();
    await work(world);
    await world.stop();
  };
  await world.nodes.run(all());
}

/** Returns the rows of all pages. */
async function paged(query: ArticleQuery, size: number): Promise<Article[]> {
  const rows: Article[] = [];
  let next: string | undefined;
  do {
    const page: Page<Article> = await query.page({ size, after: next });
    rows.push(...page.rows);
    ({ next } = page);
  } while (next !== undefined);
  return rows;
}

/** Compares what is taken of a query with the model, by all rows of its search. */
async function check(query: ArticleQuery, asked: AskedArticles, ranked: readonly Scored[]): Promise<void> {
  const expected = resultOf(ranked, asked);
  const asking = built(query, asked);
  expect({ asked, rows: await asking.execute() }).toEqual({ asked, rows: expected });
  expect({ asked, count: await asking.count() }).toEqual({ asked, count: expected.length });
  expect({ asked, first: await asking.first() }).toEqual({ asked, first: expected[0] });
  const iterated: Article[] = [];
  for await (const row of asking) iterated.push(row);
  expect({ asked, iterated }).toEqual({ asked, iterated: expected });
  const sections = [...new Set(expected.map(({ section }) => section))].toSorted((a, b) => a - b);
  expect(await asking.groupBy('section').aggregate({ rows: 'count', most: { max: 'id' } })).toEqual(
    sections.map((section) => {
      const ids = idsOf(expected.filter((row) => row.section === section));
      return { section, rows: ids.length, most: Math.max(...ids) };
    }),
  );
  const endless = { ...asked, limit: undefined, offset: 0 };
  expect({ asked, pages: await paged(built(query, endless), 4) }).toEqual({ asked, pages: resultOf(ranked, endless) });
}

/** What the scores depend on, if it is known: commits that are not merged are joined now and then. */
function statisticsOf(
  { isMerged, rows }: ArticleWorld,
  view: Articles,
  changes: readonly Change[],
): Statistics | undefined {
  if (!isMerged) return undefined;
  const changed = new Set<number>();
  for (const change of changes) {
    if (change.kind === 'updateWhere' || change.kind === 'deleteWhere') return undefined;
    changed.add('row' in change ? change.row.id : change.id);
  }
  const newer = [...changed].flatMap((id) => view.get(id) ?? []);
  return { rows: [...rows.values(), ...newer], count: rows.size + changed.size };
}

it.each(seeds)(
  'see the rows of a batch, and those of commits that are not merged: seed %i',
  { timeout: 300_000 },
  async (seed) => {
    await inWorld(seed, async (world) => {
      const { random, rows } = world;
      for (let round = 0; round < 6; round++) {
        await world.commit(world.changes(rows, random.below(6), { whole: true }));
        if (random.chance(0.5)) await world.merge();
        const db = random.pick([world.a, world.b]);
        const changes = world.changes(rows, random.below(8), { whole: random.chance(0.5) });
        const batch = db.batch();
        const view = new Map(rows);
        for (const change of changes) {
          await make(batch, change, () => db.query(articles) as ArticleQuery);
          applyTo(view, change);
        }
        const statistics = statisticsOf(world, view, changes);
        for (let i = 0; i < 5; i++) {
          const asked = askedBy(random);
          const overlaid = (db.query(articles) as ArticleQuery).overlay(batch);
          const whole = await built(overlaid, { ...asked, ...everyRow }).execute();
          const ranked = expectRanked(whole, [...view.values()], asked, statistics);
          await check(overlaid, asked, ranked);
        }
        if (changes.length === 0 || random.chance(0.3)) continue;
        await batch.flush();
        await world.follow();
        world.isMerged = false;
        for (const change of changes) applyTo(rows, change);
        const asked = askedBy(random);
        const whole = await built(db.query(articles) as ArticleQuery, { ...asked, ...everyRow }).execute();
        expectRanked(whole, [...rows.values()], asked, undefined);
      }
    });
  },
);

/** Expects that a query has found what it should. Which rows come first by their scores is not known. */
function expectFound(asked: AskedArticles, own: readonly Article[], rows: Articles): void {
  const all = resultOf(found(rows, asked), { ...asked, limit: undefined, offset: 0 });
  if (!isCutByScore(asked)) {
    const expected = asked.orders.length > 0 ? resultOf(found(rows, asked), asked) : all;
    const sorted = (some: readonly Article[]): readonly Article[] =>
      asked.orders.length > 0 ? some : some.toSorted((a, b) => a.id - b.id);
    expect({ asked, rows: sorted(own) }).toEqual({ asked, rows: sorted(expected) });
    return;
  }
  const { limit = Number.POSITIVE_INFINITY, offset } = asked;
  expect({ asked, count: own.length }).toEqual({ asked, count: Math.min(limit, Math.max(0, all.length - offset)) });
  for (const row of own) expect(all).toContainEqual(row);
}

/** A step of a transaction: a change, or a search and how its rows are taken. */
type Step =
  | Change
  | { readonly kind: 'search'; readonly asked: AskedArticles; readonly by: 'execute' | 'iterate' | 'page' };

async function taken(query: ArticleQuery, { asked, by }: Extract<Step, { kind: 'search' }>): Promise<Article[]> {
  const { limit } = asked;
  if (by === 'page') return paged(built(query, { ...asked, limit: undefined, offset: 0 }), 5);
  if (by === 'execute') return built(query, asked).execute();
  const rows: Article[] = [];
  for await (const row of built(query, { ...asked, limit: undefined })) {
    if (rows.length === limit) break;
    rows.push(row);
  }
  return rows;
}

/** Whether some changed rows are among those of the searches of a transaction, or those whose fields show through its writes. */
function areRead(changed: readonly Article[], steps: readonly Step[]): boolean {
  const rows: Articles = new Map(changed.map((row) => [row.id, row]));
  return steps.some((step) => {
    if (step.kind === 'update' || step.kind === 'increment') return rows.has(step.id);
    const asked = step.kind === 'search' ? step.asked : 'query' in step ? step.query : undefined;
    return asked !== undefined && resultOf(found(rows, asked), { ...asked, limit: undefined, offset: 0 }).length > 0;
  });
}

/** Returns the steps of a transaction. Changes by queries come last: another attempt may find rows for them that a change is of. */
function stepsIn({ random }: ArticleWorld, changes: readonly Change[]): Step[] {
  const isWhole = (change: Change): boolean => 'query' in change;
  const steps: Step[] = [...changes.filter((one) => !isWhole(one)), ...changes.filter(isWhole)];
  for (let i = random.between(1, 3); i > 0; i--) {
    const by = random.pick(['execute', 'iterate', 'page'] as const);
    const asked = { ...askedBy(random), ...(by === 'page' && { limit: undefined, offset: 0 }) };
    steps.splice(random.below(steps.length + 1), 0, { kind: 'search', asked, by });
  }
  return steps;
}

interface Seen {
  readonly asked: AskedArticles;
  readonly rows: readonly Article[];
}

/** Takes steps in a transaction, and compares what it sees with the model. `between`: runs before the `at`-th step. */
async function take(
  tx: Transaction,
  steps: readonly Step[],
  view: Articles,
  between: (at: number) => Promise<void>,
): Promise<Seen[]> {
  const seen: Seen[] = [];
  const query = (): ArticleQuery => tx.query(articles) as ArticleQuery;
  for (const [at, step] of steps.entries()) {
    await between(at);
    if (step.kind === 'search') {
      const rows = await taken(query(), step);
      expectFound(step.asked, rows, view);
      seen.push({ asked: step.asked, rows });
    } else {
      await make(tx, step, query);
      applyTo(view, step);
    }
  }
  await between(steps.length);
  return seen;
}

/** Runs a transaction while another instance commits something. Returns how often it was run. */
async function transact(world: ArticleWorld): Promise<number> {
  const { random, rows, a, b } = world;
  const own = world.changes(rows, random.below(4), { whole: true });
  const steps = stepsIn(world, own);
  const before = new Map(rows);
  const written = new Set(own.flatMap((change) => ('id' in change ? [change.id] : [])));
  // A row that the transaction changes is not deleted: that would be an error.
  const others = world
    .changes(rows, random.between(1, 2))
    .filter((one) => one.kind !== 'delete' || !written.has(one.id));
  const when = random.below(steps.length + 1);
  let attempts = 0;
  let seen: readonly Seen[] = [];
  const result = world.newArticle();
  await a.transaction(async (tx) => {
    attempts++;
    seen = await take(tx, steps, new Map(rows), async (at) => {
      if (at === when && attempts === 1) await world.commit(others, b, false);
    });
    await tx.insert(articles, result);
  });
  const after = new Map(rows);
  // As if it had run alone: on the rows that there were right before its commit.
  let next = 0;
  for (const step of steps) {
    if (step.kind === 'search') expectFound(step.asked, (seen[next++] as Seen).rows, rows);
    else applyTo(rows, step);
  }
  rows.set(result.id, result);
  world.isMerged = false;
  const ids = others.flatMap((change) => ('row' in change ? change.row.id : 'id' in change ? change.id : []));
  const changed = (state: Articles): Article[] => ids.flatMap((id) => state.get(id) ?? []);
  const mayConflict = areRead(changed(before), steps) || areRead(changed(after), steps);
  expect({ others, steps, attempts }).toEqual({ others, steps, attempts: mayConflict ? attempts : 1 });
  return attempts;
}

it.each(seeds)(
  'are those of a transaction that runs alone, and others are no conflict: seed %i',
  { timeout: 300_000 },
  async (seed) => {
    await inWorld(seed, async (world) => {
      const attempts: number[] = [];
      for (let round = 0; round < 24; round++) {
        await world.follow();
        if (world.random.chance(0.3)) await world.merge();
        attempts.push(await transact(world));
      }
      expect(attempts.filter((one) => one > 1).length).toBeGreaterThan(2);
      expect(attempts.filter((one) => one === 1).length).toBeGreaterThan(2);
    });
  },
);

/** The last row of a page, as it was then. */
interface Place {
  readonly row: Article;
  /** Undefined if it is not known. */
  readonly score: number | undefined;
}

/** A page that is compared with the model. */
interface CheckedPage {
  readonly asked: AskedArticles;
  readonly size: number;
  readonly page: Page<Article>;
  /** All rows of the search. */
  readonly ranked: readonly Scored[];
  readonly isExact: boolean;
  /** The last row of the page before. */
  readonly last: Place | undefined;
}

/** Returns where the rows behind a place may begin among all rows of a search, where its row is not found any more. */
function startsBehind({ ranked, isExact }: CheckedPage, { score }: Place): number[] {
  const every = Array.from({ length: ranked.length + 1 }, (_, i) => i);
  if (!isExact || score === undefined) return every;
  const scoreAt = (i: number): number => ranked[i]?.score ?? Number.NEGATIVE_INFINITY;
  // Rows with the same score are behind it or not, by their keys.
  return every.filter((i) => isAtLeast(score, scoreAt(i)) && (i === 0 || isAtLeast(scoreAt(i - 1), score)));
}

/** Expects that a page of the best rows has those behind the last row of the page before. */
function expectRankedPage(checked: CheckedPage): void {
  const { asked, size, page, ranked, last } = checked;
  const own = { ids: idsOf(page.rows), isLast: page.next === undefined };
  const pageFrom = (from: number): typeof own => {
    const rows = resultOf(ranked.slice(from), asked);
    return { ids: idsOf(rows.slice(0, size)), isLast: rows.length <= size };
  };
  const place = last === undefined ? -1 : ranked.findIndex(({ row }) => row.id === last.row.id);
  const isFound = last === undefined || resultOf(ranked.slice(place, place + 1), asked).length > 0;
  // Where conditions leave its row out, it depends on the way whether the search finds it.
  const starts = isFound ? [place + 1] : [...startsBehind(checked, last), ...(place < 0 ? [] : [place + 1])];
  const allowed = starts.map(pageFrom);
  if (allowed.length === 1) expect({ asked, ...own }).toEqual({ asked, ...allowed[0] });
  else expect(allowed).toContainEqual(own);
}

/** Expects that a page has the rows behind the last row of the page before, as that was then, in an order of fields. */
function expectOrderedPage({ asked, size, page, ranked, last }: CheckedPage): void {
  const kept = new Set(resultOf(ranked, asked));
  const marker = last && { row: { ...last.row }, score: 0 };
  const all = resultOf(marker === undefined ? ranked : [...ranked, marker], { ...asked, wheres: [] });
  const from = marker === undefined ? 0 : all.indexOf(marker.row) + 1;
  const wanted = all.slice(from).filter((row) => kept.has(row));
  expect({ asked, ids: idsOf(page.rows), isLast: page.next === undefined }).toEqual({
    asked,
    ids: idsOf(wanted.slice(0, size)),
    isLast: wanted.length <= size,
  });
}

/** Goes through the pages of a query while rows change. */
async function goThrough(world: ArticleWorld, asked: AskedArticles): Promise<number> {
  const { random, rows } = world;
  const size = random.pick([1, 3, 7]);
  let last: Place | undefined;
  let after: string | undefined;
  let count = 0;
  for (; count < 12; count++) {
    const query = random.pick([world.a, world.b]).query(articles) as ArticleQuery;
    const whole = await built(query, { ...asked, ...everyRow }).execute();
    const isExact = world.isMerged;
    const statistics = isExact ? { rows: [...rows.values()], count: rows.size } : undefined;
    const ranked = expectRanked(whole, [...rows.values()], asked, statistics);
    const page: Page<Article> = await built(query, asked).page({ size, after });
    expect(page.rows).toEqual(page.rows.map(({ id }) => rows.get(id)));
    const checked: CheckedPage = { asked, size, page, ranked, isExact, last };
    if (asked.orders.length === 0) expectRankedPage(checked);
    else expectOrderedPage(checked);
    after = page.next;
    if (after === undefined) break;
    const row = page.rows.at(-1) as Article;
    const score = isExact ? ranked.find((one) => one.row.id === row.id)?.score : undefined;
    last = { row, score };
    await world.commit(world.changes(rows, random.pick([0, 0, 1, 4])));
    // The row of the bookmark changes more often than others.
    if (random.chance(0.2) && rows.has(row.id))
      await world.commit([{ kind: 'update', id: row.id, fields: textsOf(world) }]);
    if (random.chance(0.5)) await world.merge();
  }
  return count;
}

function textsOf({ random }: ArticleWorld): Partial<Article> {
  const { title, body } = articleOf(random, 0);
  return random.pick([{ title, body }, { body }, { title }]);
}

it.each(seeds)('come page by page while rows change: seed %i', { timeout: 300_000 }, async (seed) => {
  await inWorld(seed, async (world) => {
    let pages = 0;
    for (let round = 0; round < 20; round++) {
      pages += await goThrough(world, { ...askedBy(world.random), limit: undefined, offset: 0 });
      await world.merge();
    }
    expect(pages).toBeGreaterThan(10);
  });
});
