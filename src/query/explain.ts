/** A plan as a plain object, for people to read. */
import type { Access, Plan } from './plan.ts';

/** How a query would be run, as `query.explain()` tells it. */
export interface Explanation {
  /** Name of the table. */
  readonly table: string;
  /** `nothing`, `keys` (by primary key), `table` (a scan of it, or of ranges), `index`, or `union` of several of these. */
  readonly access: string;
  /** The index that is used. */
  readonly index?: string;
  /** How many keys, or ranges of keys, are looked at. */
  readonly ranges: number;
  /** Whether it is read from the end to the beginning. */
  readonly descending: boolean;
  /** Fields and functions that rows are tested for. */
  readonly filters: readonly string[];
  /** Of a union: what it is of. */
  readonly parts?: readonly Explanation[];
  /** How the rows come into order: as they are read, or sorted afterwards. */
  readonly order: 'access' | 'sort';
}

function rangesOf(access: Access): number {
  switch (access.kind) {
    case 'nothing':
      return 0;
    case 'keys':
      return access.keys.length;
    case 'table':
    case 'index':
      return access.ranges.length;
    case 'union':
      return access.parts.reduce((sum, { plan }) => sum + rangesOf(plan.access), 0);
  }
}

export function explainPlan(table: string, { access, residual, ordered }: Plan): Explanation {
  return {
    table,
    access: access.kind,
    ...(access.kind === 'index' ? { index: access.index.name } : {}),
    ranges: rangesOf(access),
    descending: 'descending' in access && access.descending,
    filters: [...new Set(residual.flatMap(({ names }) => names))],
    order: ordered ? 'access' : 'sort',
    ...(access.kind === 'union' ? { parts: access.parts.map((part) => explainPlan(table, part.plan)) } : {}),
  };
}
