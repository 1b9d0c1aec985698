/** Which index a query would be faster with. */
import type { TableShape } from '../schema/table-shape.ts';
import { isKeyType } from '../format/types.ts';
import type { CompiledQuery, Plan } from './planner/access-paths.ts';
import type { CostEstimate } from './planner/plan-cost.ts';

/** Tables that are so small that no index is worth its upkeep, in rows that are looked at. */
const fewRows = 1000;
/** An index is missing where so many times more rows are looked at than are of use. */
const waste = 10;

/**
 * The fields of an index that would spare most of what a plan looks at: those that conditions fix, then one of which they
 * give a range or by which rows are ordered. Undefined where nothing much can be spared.
 */
export function missingIndexOf(
  shape: TableShape,
  query: CompiledQuery,
  { access, residual, ordered, order }: Plan,
  { rows: looked, entries, matches }: Pick<CostEstimate, 'rows' | 'entries' | 'matches'>,
): readonly string[] | undefined {
  const rows = Math.max(looked, entries);
  if (access.kind === 'nothing' || access.kind === 'keys' || rows < fewRows) return undefined;
  const useful = Math.min(matches, (query.limit ?? Number.POSITIVE_INFINITY) + query.offset);
  if (rows < waste * Math.max(1, useful)) return undefined;
  // The table is in the order of what its keys begin with.
  const [keyLead] = shape.keyFields;
  const fixed: string[] = [];
  const ranged: string[] = [];
  for (const { on } of residual) {
    if (on === undefined || !isKeyType(on.field.typeId) || on.field === keyLead) continue;
    const { comparison } = on;
    const isFixed =
      comparison.kind === 'null' ||
      comparison.kind === 'in' ||
      (comparison.kind === 'value' && comparison.operator === '=');
    if (isFixed) fixed.push(on.field.name);
    else if (comparison.kind !== 'not null' && !(comparison.kind === 'value' && comparison.operator === '!='))
      ranged.push(on.field.name);
  }
  // Where an access has the order already, an index for what is fixed should have it too.
  const by = order.length === 1 && query.limit !== undefined && (!ordered || fixed.length > 0) ? order[0] : undefined;
  const isOther = by !== undefined && isKeyType(by.field.typeId) && (!ordered || by.field !== keyLead);
  const sorted = isOther ? by.field.name : undefined;
  const last = sorted ?? ranged[0];
  const fields = [...new Set(last === undefined ? fixed : [...fixed, last])];
  return fields.length === 0 ? undefined : fields;
}
