/** What a query can have seen, for those who must know whether a change would have made a difference to it. */
import type { QueryRead } from '../view/query-host.ts';
import { filterOf } from './conditions/condition.ts';
import type { Condition } from './conditions/condition.ts';
import type { CompiledQuery, Plan } from './planner/access-paths.ts';

const nothing: QueryRead = { keys: [], range: undefined, matches: undefined };

function matching(conditions: readonly Condition[]): QueryRead['matches'] {
  if (conditions.length === 0) return undefined;
  const filter = filterOf(conditions);
  return (source, base) => filter.matches(source, base);
}

/** Limit, offset and order are left out of account: a row that matches may move another one in or out. */
export function readOf({ query, plan }: { readonly query: CompiledQuery; readonly plan: Plan }): QueryRead {
  const { access, residual } = plan;
  switch (access.kind) {
    case 'nothing':
      return nothing;
    case 'keys':
      return { keys: access.keys, range: undefined, matches: matching(residual) };
    case 'table':
      if (access.ranges.length > 1) return { keys: undefined, range: undefined, matches: matching(query.conditions) };
      return { keys: undefined, range: access.ranges[0], matches: matching(residual) };
    case 'index':
    case 'intersection':
    case 'union':
      // What the index has tested, a row that is not in it yet must be tested for.
      return { keys: undefined, range: undefined, matches: matching(query.conditions) };
  }
}
