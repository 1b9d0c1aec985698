/** Makes queries of every kind on a table whose rows have few values: conditions, clauses, orders, pages, aggregates, groups. */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Query } from '../../../src/query/query.ts';
import type { BudgetLimits } from '../../../src/query/budget.ts';
import { answers } from './ask.ts';
import type { Answer, Ask } from './ask.ts';
import type { ModelClause, ModelQuery, Where } from './model.ts';
import type { Value } from './tables.ts';

const operators = ['=', '=', '!=', '<', '<=', '>', '>='] as const;

export interface QueryField {
  readonly name: string;
  readonly isNumber: boolean;
}

/** A table to ask for. */
export interface QueriedTable {
  readonly name: string;
  readonly fields: readonly QueryField[];
  /** Fields that are compared together; left out: none are. */
  readonly tuples?: readonly (readonly string[])[];
  /** Orders that indexes and keys have; left out: there are none of several fields. */
  readonly orders?: readonly (readonly string[])[];
}

/** Somebody who asks queries for all that they can be asked for. */
export interface Asker {
  /** Whether what is done next is of this kind. */
  chance(): boolean;
  /** Asks a query for something else than its rows. `queryOf` makes one of a table. */
  ask(queryOf: (table: string) => Query): { readonly table: string; readonly given: AsyncGenerator<Answer, void> };
}

export class QueryMaker {
  readonly #random: SeededRandom;
  readonly #value: (field: string) => Value;

  /** `value`: one that rows may have in a field, or nearly so. */
  constructor(random: SeededRandom, value: (field: string) => Value) {
    this.#random = random;
    this.#value = value;
  }

  #where({ fields, tuples = [] }: QueriedTable): Where {
    const random = this.#random;
    if (tuples.length > 0 && random.chance(0.3)) return this.#tuples(random.pick(tuples));
    const { name: field, isNumber } = random.pick(fields);
    const dice = random.next();
    const some = (): Value => this.#value(field) ?? (isNumber ? 1 : 'e');
    if (dice < 0.2) return { field, operator: 'BETWEEN', value: [some(), some()] };
    if (dice < 0.35) return { field, operator: 'IN', value: [some(), this.#value(field), some()] };
    if (dice < 0.5 && !isNumber)
      return { field, operator: 'PREFIX', value: `${some()}`.slice(0, random.integer(0, 2)) };
    return { field, operator: random.pick(operators), value: this.#value(field) };
  }

  #tuples(field: readonly string[]): Where {
    const random = this.#random;
    const tuple = (): Value[] => field.map((name) => this.#value(name));
    if (random.chance(0.3)) return { field, operator: '=', value: tuple() };
    return { field, operator: 'IN', value: Array.from({ length: random.integer(0, 6) }, tuple) };
  }

  #clause(of: QueriedTable, depth: number): ModelClause {
    const random = this.#random;
    const dice = random.next();
    if (depth === 0 || dice < 0.3) return this.#where(of);
    if (dice < 0.5) return { not: this.#clause(of, depth - 1) };
    const parts = Array.from({ length: random.pick([0, 1, 2, 2, 2, 3]) }, () => this.#clause(of, depth - 1));
    return dice < 0.7 ? { and: parts } : { or: parts };
  }

  query(of: QueriedTable): ModelQuery {
    const random = this.#random;
    const wheres = Array.from({ length: random.pick([0, 0, 1, 1, 2]) }, () => this.#where(of));
    const clause = random.chance(0.5) ? this.#clause(of, 3) : undefined;
    const any = Array.from({ length: random.pick([0, 0, 1, 2]) }, () => ({
      field: random.pick(of.fields).name,
      direction: random.pick(['asc', 'desc'] as const),
    }));
    const { orders = [] } = of;
    const like = random.chance(0.15) && orders.length > 0;
    const both = random.pick(['asc', 'desc'] as const);
    const theirs = (): ModelQuery['orders'] =>
      (orders.length > 1 ? random.pick(orders) : orders.flat()).map((field) => ({ field, direction: both }));
    const ordered = like ? theirs() : any;
    const page = random.chance(0.3) ? { limit: random.integer(0, 8), offset: random.integer(0, 3) } : { offset: 0 };
    return { table: of.name, wheres, ...(clause && { clause }), orders: ordered, ...page };
  }

  #budget(): BudgetLimits | undefined {
    const random = this.#random;
    if (random.chance(0.75)) return undefined;
    const limit = random.pick(['requests', 'bytes', 'ms'] as const);
    return {
      [limit]: random.pick({ requests: [0, 1, 2, 4, 1e6], bytes: [0, 700, 3000, 1e9], ms: [0, 5, 50, 1e9] }[limit]),
    };
  }

  /** Asks a query on one of some tables for something else than its rows. `choose` is called first. */
  ask(choose: () => QueriedTable, queryOf: (table: string) => Query): ReturnType<Asker['ask']> {
    const { query, ask } = this.#asked(choose());
    return { table: query.table, given: answers(() => queryOf(query.table), query, ask) };
  }

  #asked(of: QueriedTable): { readonly query: ModelQuery; readonly ask: Ask } {
    const random = this.#random;
    const whole = this.query(of);
    const budget = this.#budget();
    const kind = random.pick([
      'rows',
      'first',
      'count',
      'min',
      'max',
      'sum',
      'avg',
      'groups',
      'groups',
      'pages',
      'pages',
    ] as const);
    const { fields } = of;
    const field = random.pick(fields.filter(({ isNumber }) => isNumber)).name;
    if (kind === 'pages') {
      const { limit: _, ...query } = whole;
      return {
        query: { ...query, offset: 0 },
        ask: { kind, size: random.integer(1, 6), most: random.integer(1, 5), budget },
      };
    }
    if (kind !== 'groups') return { query: whole, ask: { kind, field, budget } };
    const by = random.shuffled(fields.map(({ name }) => name)).slice(0, random.integer(0, 2));
    return { query: whole, ask: { kind, by, field, budget } };
  }
}
