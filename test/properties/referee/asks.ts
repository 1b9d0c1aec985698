/** Aggregates, groups and pages of random queries, and what SQLite says of them. */
import { Types } from '../../../src/index.ts';
import type { AnyQuery } from '../../features/values/open-database.ts';
import type { Contest } from './contest.ts';
import { build, toFrom } from './random-queries.ts';
import type { RandomQuery } from './random-queries.ts';
import { toSql } from './random-tables.ts';
import type { Column } from './random-tables.ts';
import { allRows, firstColumn } from './sqlite.ts';
import type { SqlValue } from './sqlite.ts';

/** Whose sums neither database rounds, and none takes for too large. */
const exact: ReadonlySet<number> = new Set([Types.uint8, Types.int16, Types.int32, Types.uint32]);

/** Values that both databases have: of those that they have in common no two are the same text. */
function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  return typeof value === 'string' ? JSON.stringify(value) : String(toSql(value, 0));
}

/** What is wrong; undefined if nothing is. */
type Problem = string | undefined;

function difference(what: string, found: readonly string[], expected: readonly string[]): Problem {
  const [left, right] = [found.join('; '), expected.join('; ')];
  return left === right ? undefined : `${what}: ${left}; expected ${right}`;
}

/** Counts, extremes and sums of a field, of all rows or of groups, each beside the least number of its rows. */
async function compareGroups(
  { random, table, sqlite }: Contest,
  start: AnyQuery,
  query: RandomQuery,
): Promise<Problem> {
  const columns = table.columns.slice(1);
  const { name: field, kind } = random.pick(columns);
  const by: readonly Column[] = random.shuffled(columns).slice(0, random.pick([0, 1, 1, 2]));
  const isExact = exact.has(kind.typeId);
  const built = build(start, query);
  const sums = isExact ? ({ sum: { sum: field }, avg: { avg: field } } as const) : {};
  const asked = { all: 'count', some: { count: field }, ...sums } as const;
  const groups: Record<string, unknown>[] =
    by.length === 0
      ? [await built.aggregate(asked)]
      : await built.groupBy(...by.map(({ name }) => name)).aggregate(asked);
  const found = groups.map((group) => {
    const values = [...by.map(({ name }) => group[name]), group['all'], group['some'], group['sum'], group['avg']];
    return values.map((value) => (value === undefined ? 'null' : textOf(value))).join(', ');
  });
  const names = by.map(({ name }) => `"${name}"`).join(', ');
  const { sql, values } = toFrom(table, query);
  const sumSql = isExact ? `sum("${field}"), avg("${field}")` : 'NULL, NULL';
  const ending = by.length === 0 ? '' : `GROUP BY ${names} ORDER BY ${names}`;
  const shown = by.map(({ name }) => `"${name}",`).join(' ');
  const rows = allRows(
    sqlite,
    `SELECT ${shown} count(*), count("${field}"), ${sumSql} FROM (SELECT * ${sql}) ${ending}`,
    values,
  );
  return difference(
    `aggregates of ${field} by ${names}`,
    found,
    rows.map((row) => row.map(textOf).join(', ')),
  );
}

/** Whether SQLite's least or greatest value is the one that was found, as it compares them. */
async function compareExtremes(
  { random, table, sqlite }: Contest,
  start: AnyQuery,
  query: RandomQuery,
): Promise<Problem> {
  const { name, kind } = random.pick(table.columns);
  const which = random.pick(['min', 'max'] as const);
  const found: unknown = await build(start, query)[which](name);
  const { sql, values } = toFrom(table, query);
  // Bigints are bound as text, which only a column would turn into a number.
  const bound = typeof found === 'bigint' ? 'CAST(? AS INTEGER)' : '?';
  const select = `SELECT (SELECT ${which}("${name}") FROM (SELECT * ${sql})) IS ${bound}`;
  const [isSame] = firstColumn(sqlite, select, [...values, toSql(found, kind.typeId)]);
  return isSame === 1 ? undefined : `${which} of ${name}: ${textOf(found)}`;
}

/** All pages of a query, one after the other. */
async function comparePages(contest: Contest, start: () => AnyQuery, query: RandomQuery): Promise<Problem> {
  const { random, table, sqlite } = contest;
  const whole = { ...query, limit: undefined, offset: 0 };
  const size = random.pick([1, 3, 10, 40, 200]);
  const pages: (readonly unknown[])[] = [];
  let after: string | undefined;
  do {
    const { rows, next } = await build(start(), whole).page({ size, after });
    pages.push(rows.map((row) => contest.numberOf(row['k'])));
    after = next;
  } while (after !== undefined && pages.length * size < 40);
  const { sql, values } = toFrom(table, whole);
  const all: SqlValue[] = firstColumn(sqlite, `SELECT n ${sql}`, values);
  const expected = pages.map((_, i) => all.slice(i * size, (i + 1) * size));
  const texts = (list: readonly (readonly unknown[])[]): string[] => list.map((page) => page.join(', '));
  const isLast = pages.length * size >= all.length;
  if (isLast !== (after === undefined))
    return `after ${pages.length} pages of ${size} there is ${isLast ? 'more' : 'no more'}`;
  return difference(`pages of ${size}`, texts(pages), texts(expected));
}

/** Asks a query in one of these ways; what is wrong with the answer, if anything is. */
export async function compareAnswers(contest: Contest, start: () => AnyQuery, query: RandomQuery): Promise<Problem> {
  const dice = contest.random.next();
  if (dice < 0.4) return compareGroups(contest, start(), query);
  return dice < 0.6 ? compareExtremes(contest, start(), query) : comparePages(contest, start, query);
}
