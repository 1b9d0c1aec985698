/**
 * The commonest query: the row with a certain primary key, and nothing else is asked for. No other way to it can be better, so
 * that it is looked up without a plan.
 */
import { isPromise } from '../base/brands.ts';
import { ByteWriter } from '../base/bytes.ts';
import { writeKeyComponent } from '../format/ordered-key.ts';
import type { QueryHost } from '../table/query-host.ts';
import type { TableState } from '../table/table-state.ts';
import type { RowHit } from '../tree/tree.ts';
import type { Row } from './execute.ts';
import { plainValue } from './comparison.ts';
import type { FieldValue } from './comparison.ts';
import { areHeavy, compileWhere } from './written-query.ts';
import type { Where, WrittenQuery } from './written-query.ts';

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
  if (where === undefined || wheres.length > 1 || orders.length > 0 || areHeavy(wheres)) return undefined;
  if (fields !== undefined || limit === 0 || offset > 0) return undefined;
  const value = keyOf(host, state, where);
  if (value === undefined) return undefined;
  const { primaryKey } = state.shape;
  key.length = 0;
  writeKeyComponent(key, primaryKey.typeId, value);
  // Primary keys are held whole: that of a value which is too long for one is no row's.
  const found = state.lookup(key.bytes, key.length);
  return isPromise(found) ? found.then((hit) => decoded(state, hit)) : decoded(state, found);
}

/** The primary key that rows must have, if that is all that a clause says. */
function keyOf(host: QueryHost, { shape }: TableState, where: Where): FieldValue | undefined {
  const { written } = where;
  if (written.kind !== 'condition') return undefined;
  const { name, operator, captured } = written.condition;
  const { primaryKey } = shape;
  if (operator === '=' && name === primaryKey.name && host.registeredFunction(name) === undefined) {
    const value = plainValue(primaryKey.typeId, captured);
    if (value !== undefined) return value;
  }
  const conditions = compileWhere(host, shape, where);
  const on = conditions.length === 1 ? conditions[0]?.on : undefined;
  if (on?.field !== primaryKey) return undefined;
  const { comparison } = on;
  return comparison.kind === 'value' && comparison.operator === '=' ? comparison.value : undefined;
}

function decoded({ shape: { decoder } }: TableState, hit: RowHit | undefined): Row[] {
  return hit === undefined ? [] : [decoder.decode(hit.source, hit.base)];
}
