/** Random queries, run in every way that a query can be run, against the model's answer. */
import type { Database } from '../../../src/api/database.ts';
import type { Batch } from '../../../src/batch/batch.ts';
import type { Operator } from '../../../src/query/conditions/comparison.ts';
import { valueOperators } from '../../../src/query/conditions/comparison.ts';
import { Types } from '../../../src/format/types.ts';
import { run, rowText } from './naive.ts';
import type { Alternatives, Condition, ModelQuery, Rows } from './naive.ts';
import type { Random } from './random.ts';
import type { ModelField, ModelTable } from './schemas.ts';
import { comparedValue, textOf } from './values.ts';

/** What a text or bytes begin with, cut anywhere. */
function beginning(random: Random, value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, random.below(value.length + 1));
  return (value as Uint8Array).subarray(0, random.below((value as Uint8Array).length + 1));
}

function randomCondition(random: Random, table: ModelTable): Condition {
  // Keys and indexes are where plans differ, so that they come more often.
  const keyed = table.fields.filter((field) => field === table.primaryKey || table.indexes.includes(field.name));
  const field = random.pick(random.chance(0.6) ? keyed : table.fields);
  if (field.typeId === Types.json) return { field, operator: random.pick(['=', '!=']), value: null };
  const operator: Operator = random.pick(valueOperators);
  if (operator === 'PREFIX') {
    const texts = table.fields.filter(({ typeId }) => typeId === Types.varchar || typeId === Types.bytes);
    if (texts.length === 0) return randomCondition(random, table);
    const text = random.pick(texts);
    return {
      field: text,
      operator,
      value: random.chance(0.1) ? null : beginning(random, comparedValue(random, text.typeId)),
    };
  }
  if (operator === 'BETWEEN') {
    const value = [0, 1].map(() => (random.chance(0.1) ? null : comparedValue(random, field.typeId)));
    return { field, operator, value };
  }
  if (operator === 'IN') {
    const value = Array.from({ length: random.below(5) }, () => {
      return random.chance(0.15) ? null : comparedValue(random, field.typeId);
    });
    return { field, operator, value };
  }
  return { field, operator, value: random.chance(0.1) ? null : comparedValue(random, field.typeId) };
}

export function randomQuery(random: Random, table: ModelTable): ModelQuery {
  const sortable = table.fields.filter(({ typeId }) => typeId !== Types.json);
  const conditions = Array.from({ length: random.pick([0, 0, 1, 1, 1, 2, 3]) }, () => randomCondition(random, table));
  const order = Array.from({ length: random.pick([0, 0, 1, 1, 2]) }, () => {
    return { field: random.pick(sortable), descending: random.chance(0.5) };
  });
  const alternatives = Array.from({ length: random.pick([0, 0, 0, 1, 1, 2]) }, (): Alternatives => {
    const branches = Array.from({ length: 1 + random.below(3) }, () => {
      return Array.from({ length: random.pick([1, 1, 1, 2]) }, () => randomCondition(random, table));
    });
    return { branches, negated: random.chance(0.2) };
  });
  return {
    conditions,
    alternatives,
    order,
    limit: random.chance(0.4) ? random.pick([0, 1, 2, 5, 20, 1000]) : undefined,
    offset: random.chance(0.3) ? random.pick([0, 1, 3, 50]) : 0,
  };
}

function describeConditions(conditions: readonly Condition[]): string {
  return conditions.map(({ field, operator, value }) => `${field.name} ${operator} ${textOf(value)}`).join(' and ');
}

function describeQuery(table: ModelTable, query: ModelQuery): string {
  const clauses = query.alternatives.map(({ branches, negated }) => {
    return `${negated ? 'not ' : ''}(${branches.map(describeConditions).join(' or ')})`;
  });
  const conditions = [describeConditions(query.conditions), ...clauses];
  const order = query.order.map(({ field, descending }) => `${field.name}${descending ? ' desc' : ''}`);
  return `${table.name} where ${conditions.join(' and ')} order by ${order.join()} limit ${query.limit} offset ${query.offset}`;
}

/** Where queries are asked: a database as it is, or as it was. */
type Asked = Pick<Database, 'query'>;

function build(
  db: Asked,
  table: ModelTable,
  query: ModelQuery,
  overlay: Batch | undefined,
): ReturnType<Database['query']> {
  let built = db.query(table.name);
  for (const { field, operator, value } of query.conditions) built = built.where(field.name, operator, value);
  for (const { branches, negated } of query.alternatives) {
    built = built.where(({ is, and, or, not }) => {
      const all = branches.map((branch) =>
        and(...branch.map(({ field, operator, value }) => is(field.name, operator, value))),
      );
      return negated ? not(or(...all)) : or(...all);
    });
  }
  for (const { field, descending } of query.order) built = built.orderBy(field.name, descending ? 'desc' : 'asc');
  if (query.limit !== undefined) built = built.limit(query.limit);
  if (query.offset > 0) built = built.offset(query.offset);
  if (overlay !== undefined) built = built.overlay(overlay);
  return built;
}

function check(what: string, got: readonly string[], expected: readonly string[], context: string): void {
  if (got.length === expected.length && got.every((row, i) => row === expected[i])) return;
  const at = expected.findIndex((row, i) => row !== got[i]);
  throw new Error(
    `${what} gave ${got.length} rows and the model ${expected.length}; they differ at row ${at}:\n` +
      `got      ${got[at === -1 ? expected.length : at]}\nexpected ${expected[at]}\nfor ${context}`,
  );
}

/** Runs a query in some of the ways there are, and throws where the answer is not the model's. */
export async function checkQuery(
  random: Random,
  db: Asked,
  table: ModelTable,
  rows: Rows,
  overlay: Batch | undefined,
): Promise<void> {
  const query = randomQuery(random, table);
  const context = describeQuery(table, query);
  const found = run(table, rows, query);
  const expected = found.map((row) => rowText(table, row));
  const make = (): ReturnType<Database['query']> => build(db, table, query, overlay);
  check('execute()', (await make().execute()).map(textOf), expected, context);
  switch (random.below(6)) {
    case 0: {
      const count = await make().count();
      if (count !== expected.length) throw new Error(`count() gave ${count}, not ${expected.length}, for ${context}`);
      break;
    }
    case 1: {
      const first = await make().first();
      check('first()', first === undefined ? [] : [textOf(first)], expected.slice(0, 1), context);
      break;
    }
    case 2: {
      const streamed: string[] = [];
      for await (const row of make()) streamed.push(textOf(row));
      check('async iteration', streamed, expected, context);
      break;
    }
    case 3: {
      const fields: ModelField[] = table.fields.filter(() => random.chance(0.5));
      const chosen = fields.length > 0 ? fields : [table.primaryKey];
      const selected = await make()
        .select(...chosen.map(({ name }) => name))
        .execute();
      const wanted = found.map((row) => rowText(table, row, chosen));
      check('select()', selected.map(textOf), wanted, context);
      break;
    }
    case 4: {
      if (query.limit !== undefined || query.offset > 0) break;
      const size = 1 + random.below(Math.max(1, expected.length));
      const paged: string[] = [];
      for (let after: string | undefined, more = true; more; more = after !== undefined) {
        const page = await make().page({ size, after });
        paged.push(...page.rows.map(textOf));
        after = page.next;
      }
      check('page()', paged, expected, context);
      break;
    }
    default:
      break;
  }
}
