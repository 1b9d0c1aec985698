/**
 * Other ways to ask a query than for its rows: counts, aggregates, groups and pages, some within a budget. Each answer is
 * what the model's rows give, or the budget is used up.
 */
import { BudgetExceededError } from '../../../src/base/errors.ts';
import type { BudgetLimits } from '../../../src/query/budget.ts';
import type { Query } from '../../../src/query/query.ts';
import { buildQuery } from './build-query.ts';
import { compare, compareRows, runQuery } from './model.ts';
import type { ModelQuery, TableRows } from './model.ts';
import type { Row, Value } from './tables.ts';

export type Ask = { readonly budget?: BudgetLimits | undefined } & (
  | { readonly kind: 'rows' | 'first' | 'count' }
  /** Of a number field. */
  | { readonly kind: 'min' | 'max' | 'sum' | 'avg'; readonly field: string }
  | { readonly kind: 'groups'; readonly by: readonly string[]; readonly field: string }
  /** So many pages at most. */
  | { readonly kind: 'pages'; readonly size: number; readonly most: number }
);

/** One answer, as text, and what it would be on any rows of the table. */
export interface Answer {
  readonly what: string;
  readonly found: string;
  readonly expected: (rows: TableRows) => string;
}

export const text = (answer: unknown): string => JSON.stringify(answer) ?? 'nothing';

/** The fields of a row in the order of their names. */
export function sorted(row: Row): unknown {
  return Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** What {@link folded} makes of rows, as the engine is asked for it. */
export const aggregatesOf = (field: string) =>
  ({
    all: 'count',
    some: { count: field },
    min: { min: field },
    max: { max: field },
    sum: { sum: field },
    avg: { avg: field },
  }) as const;

function folded(rows: readonly Row[], field: string): Row {
  const values = rows.map((row) => row[field] as Value).filter((value) => value !== null) as number[];
  const order = values.toSorted(compare);
  const sum = values.length === 0 ? null : values.reduce((a, b) => a + b, 0);
  return {
    all: rows.length,
    some: values.length,
    min: order[0] ?? null,
    max: order.at(-1) ?? null,
    sum,
    avg: sum === null ? null : sum / values.length,
  };
}

function grouped(rows: readonly Row[], by: readonly string[], field: string): Row[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = text(by.map((name) => row[name]));
    groups.set(group, [...(groups.get(group) ?? []), row]);
  }
  const lines = Array.from(groups.values(), (of): Row => {
    const values = by.map((name): [string, Value] => [name, (of[0] as Row)[name] as Value]);
    return { ...Object.fromEntries(values), ...folded(of, field) };
  });
  const orders = by.map((name) => ({ field: name, direction: 'asc' as const }));
  return lines.toSorted((a, b) =>
    compareRows({ table: 'marks', wheres: [], orders, offset: 0 }, { id: 0, ...a }, { id: 0, ...b }),
  );
}

async function ask(query: Query, asked: Exclude<Ask, { kind: 'pages' }>): Promise<unknown> {
  switch (asked.kind) {
    case 'rows':
      return ((await query.execute()) as Row[]).map(sorted);
    case 'first': {
      const row = await query.first();
      return row && sorted(row as Row);
    }
    case 'count':
      return query.count();
    case 'groups': {
      const { by, field } = asked;
      const groups =
        by.length === 0
          ? [await query.aggregate(aggregatesOf(field))]
          : await query.groupBy(...by).aggregate(aggregatesOf(field));
      return (groups as readonly Row[]).map(sorted);
    }
    default:
      return query[asked.kind as 'min'](asked.field);
  }
}

/** What the model's rows give. */
export function expectedAnswer(rows: readonly Row[], asked: Exclude<Ask, { kind: 'pages' }>): unknown {
  switch (asked.kind) {
    case 'rows':
      return rows.map(sorted);
    case 'first':
      return rows[0] && sorted(rows[0]);
    case 'count':
      return rows.length;
    case 'groups':
      return (asked.by.length === 0 ? [folded(rows, asked.field)] : grouped(rows, asked.by, asked.field)).map(sorted);
    default:
      return folded(rows, asked.field)[asked.kind];
  }
}

/** The error of a budget that is used up: undefined if it says what it should. */
function problemOf({ limit, used }: BudgetExceededError, budget: BudgetLimits): string | undefined {
  const allowed = budget[limit];
  if (allowed === undefined) return `a budget of ${limit} was never given`;
  if (limit === 'requests' ? used.requests === Math.floor(allowed) : limit === 'ms' || used.bytes <= allowed)
    return undefined;
  return `a budget of ${allowed} ${limit} is used up with ${used[limit]}`;
}

/** An answer, or that the budget is used up: then it is nobody's answer, unless that is wrong. */
async function within<T>({ budget }: Ask, call: () => Promise<T>): Promise<{ readonly answer: T } | undefined> {
  try {
    return { answer: await call() };
  } catch (error) {
    if (budget === undefined || !(error instanceof BudgetExceededError)) throw error;
    const problem = problemOf(error, budget);
    if (problem !== undefined) throw new Error(problem, { cause: error });
    return undefined;
  }
}

/**
 * Asks a query: what comes is told one by one, and each answer may be of another state. `query` makes a new one. Rejects if
 * a call does, but not for a budget.
 */
export async function* answers(query: () => Query, model: ModelQuery, asked: Ask): AsyncGenerator<Answer, void> {
  const build = (): Query => {
    const built = buildQuery(query(), model);
    return asked.budget === undefined ? built : built.budget(asked.budget);
  };
  const what = `${text(asked)} of ${text(model)}`;
  if (asked.kind !== 'pages') {
    const given = await within(asked, () => ask(build(), asked));
    if (given !== undefined)
      yield { what, found: text(given.answer), expected: (rows) => text(expectedAnswer(runQuery(rows, model), asked)) };
    return;
  }
  const { size } = asked;
  let last: Row | undefined;
  let after: string | undefined;
  for (let page = 0; page < asked.most; page++) {
    const [from, behind] = [after, last];
    const given = await within(asked, () => build().page({ size, after: from }));
    if (given === undefined) return;
    const { next } = given.answer;
    const rows = given.answer.rows as Row[];
    yield {
      what: `page ${page} of ${what}`,
      found: text([rows.map(sorted), next !== undefined]),
      expected: (all) => {
        const left = runQuery(all, model).filter((row) => behind === undefined || compareRows(model, behind, row) < 0);
        return text([left.slice(0, size).map(sorted), left.length > size]);
      },
    };
    after = next;
    last = rows.at(-1);
    if (after === undefined) return;
  }
}
