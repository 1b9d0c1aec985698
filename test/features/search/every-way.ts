/** A search run in every way that could have been chosen, each with its reads. */
import { writtenClause } from '../../../src/query/conditions/clause.ts';
import type { SearchOptions, WrittenSearch } from '../../../src/query/conditions/search-options.ts';
import { Execution } from '../../../src/query/operators/executor.ts';
import type { Row } from '../../../src/query/operators/executor.ts';
import type { WrittenQuery } from '../../../src/query/planner/query-spec.ts';
import { searchRows } from '../../../src/query/search/search-rows.ts';
import type { EntryCounts } from '../../../src/query/search/search-rows.ts';
import { cheapestWay } from '../../../src/query/search/search-ways.ts';
import type { SearchWay } from '../../../src/query/search/search-ways.ts';
import { clauseOf } from '../query/model.ts';
import type { ModelQuery } from '../query/model.ts';
import type { TestTable } from '../query/test-table.ts';

export interface WayRun {
  readonly way: SearchWay;
  readonly rows: Row[];
  readonly requests: number;
  readonly use: EntryCounts;
  readonly lookups: number;
  readonly matches: number;
}

export interface AskedSearch extends ModelQuery {
  readonly text: string;
  readonly options: SearchOptions;
}

export function written({ wheres, orders, limit, offset }: ModelQuery): WrittenQuery {
  return {
    wheres: wheres.map((where) => {
      const { written: clause } = writtenClause<Row>((clauses) => clauseOf(clauses, where));
      return { written: clause, weight: 1, compiled: undefined };
    }),
    orders: orders.map(([name, direction]) => ({ name, direction })),
    fields: undefined,
    limit,
    offset,
  };
}

/** Runs a search in the way that is chosen, or in the `at`-th one. `before` is called before. */
export async function runOneWay(
  table: TestTable,
  asked: AskedSearch,
  at?: number,
): Promise<WayRun & { readonly ways: number }> {
  const { state, environment } = table;
  const requests = table.requests;
  const search: WrittenSearch = { text: asked.text, options: asked.options };
  const choose: typeof cheapestWay = (ways, query) =>
    at === undefined ? cheapestWay(ways, query) : (ways[at] as SearchWay);
  const { query, plan, use, ways, way } = await searchRows(table, state, written(asked), search, undefined, choose);
  const execution = new Execution(state, query, plan, { environment });
  const rows = await execution.rows();
  const { work } = execution;
  return {
    way,
    rows,
    requests: table.requests - requests,
    use,
    lookups: work.lookups,
    matches: work.matches,
    ways: ways.length,
  };
}

/** Runs a search in each way. `before` is called before each run. */
export async function runEveryWay(
  table: TestTable,
  asked: AskedSearch,
  before: () => unknown = () => undefined,
): Promise<WayRun[]> {
  const runs: WayRun[] = [];
  for (let at = 0, count = 1; at < count; at++) {
    await before();
    const run = await runOneWay(table, asked, at);
    runs.push(run);
    count = run.ways;
  }
  return runs;
}
