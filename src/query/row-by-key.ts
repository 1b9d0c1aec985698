/**
 * The commonest query: the row with a certain primary key, and nothing else is asked for. No other way to it can be better, so
 * that it is looked up without a plan.
 */
import { ByteWriter } from '../base/bytes.ts';
import { writeKeyComponent } from '../format/ordered-key.ts';
import type { QueryHost } from '../table/query-host.ts';
import type { TableState } from '../table/table-state.ts';
import type { RowHit } from '../tree/tree.ts';
import type { Row } from './execute.ts';
import { compileWhere } from './written-query.ts';
import type { WrittenQuery } from './written-query.ts';

/** Shared: a look-up that must wait copies the key. */
const key = new ByteWriter(64);

/** The row that a query asks for by nothing but its primary key; undefined for every other query. */
export function rowByKey(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
): Row[] | Promise<Row[]> | undefined {
  const { wheres, orders, fields, limit, offset } = written;
  const [where] = wheres;
  if (where === undefined || wheres.length > 1 || orders.length > 0) return undefined;
  if (fields !== undefined || limit === 0 || offset > 0) return undefined;
  const { shape } = state;
  const conditions = compileWhere(host, shape, where);
  const on = conditions.length === 1 ? conditions[0]?.on : undefined;
  if (on?.field !== shape.primaryKey) return undefined;
  const { comparison } = on;
  if (comparison.kind !== 'value' || comparison.operator !== '=') return undefined;
  key.length = 0;
  writeKeyComponent(key, on.field.typeId, comparison.value);
  // Primary keys are held whole: that of a value which is too long for one is no row's.
  const found = state.lookup(key.bytes, key.length);
  return found instanceof Promise ? found.then((hit) => decoded(state, hit)) : decoded(state, found);
}

function decoded({ shape: { decoder } }: TableState, hit: RowHit | undefined): Row[] {
  return hit === undefined ? [] : [decoder.decode(hit.source, hit.base)];
}
