/**
 * The commonest query: the row with a certain primary key, and nothing else is asked for. No other way to it can be better, so
 * that it is looked up without a plan.
 */
import { isPromise } from '../base/brands.ts';
import { ByteWriter } from '../base/bytes.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { KeyValue } from '../schema/table-shape.ts';
import type { QueryHost } from '../view/query-host.ts';
import type { TableState } from '../view/table-state.ts';
import type { RowHit } from '../tree/tree.ts';
import type { Row } from './operators/executor.ts';
import { plainValue } from './conditions/comparison.ts';
import type { Condition } from './conditions/condition.ts';
import type { FieldValue } from './conditions/comparison.ts';
import { areHeavy, compileWhere } from './planner/query-spec.ts';
import type { Where, WrittenQuery } from './planner/query-spec.ts';

/** Shared: a look-up that must wait copies the key. */
const key = new ByteWriter(64);

/** The row that a query asks for by nothing but its primary key; undefined for every other query. */
export function rowByKey(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
): Row[] | Promise<Row[]> | undefined {
  const { wheres, orders, fields, limit, offset } = written;
  const { keyField, keyFields } = state.shape;
  if (wheres.length === 0 || wheres.length > keyFields.length || orders.length > 0 || areHeavy(wheres))
    return undefined;
  if (fields !== undefined || limit === 0 || offset > 0) return undefined;
  const value =
    keyField === undefined ? valuesOf(host, state, wheres) : keyOf(host, state, keyField, wheres[0] as Where);
  if (value === undefined) return undefined;
  key.length = 0;
  state.shape.writeKey(key, value);
  // Primary keys are held whole: that of a value which is too long for one is no row's.
  const found = state.lookup(key.bytes, key.length);
  return isPromise(found) ? found.then((hit) => decoded(state, hit)) : decoded(state, found);
}

/** The primary key that rows must have, if that is all that a clause says. */
function keyOf(host: QueryHost, { shape }: TableState, keyField: LayoutField, where: Where): FieldValue | undefined {
  const { written } = where;
  if (written.kind !== 'condition') return undefined;
  const { name, operator, captured } = written.condition;
  if (operator === '=' && name === keyField.name && host.registeredFunction(name) === undefined) {
    const value = plainValue(keyField.typeId, captured);
    if (value !== undefined) return value;
  }
  const conditions = compileWhere(host, shape, where);
  return conditions.length === 1 ? valueOf(conditions[0] as Condition, keyField) : undefined;
}

/** The value that a condition asks a field to have; undefined if it is no such condition. */
function valueOf({ on }: Condition, field: LayoutField): FieldValue | undefined {
  if (on?.field !== field) return undefined;
  const { comparison } = on;
  return comparison.kind === 'value' && comparison.operator === '=' ? comparison.value : undefined;
}

/** The same for a primary key of several fields, if all that clauses say is a value for each. */
function valuesOf(host: QueryHost, { shape }: TableState, wheres: readonly Where[]): KeyValue | undefined {
  const { keyFields } = shape;
  const conditions = wheres.flatMap((where) => compileWhere(host, shape, where));
  if (conditions.length !== keyFields.length) return undefined;
  const values: FieldValue[] = [];
  for (const field of keyFields) {
    const condition = conditions.find(({ on }) => on?.field === field);
    const value = condition && valueOf(condition, field);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

function decoded({ shape: { decoder } }: TableState, hit: RowHit | undefined): Row[] {
  return hit === undefined ? [] : [decoder.decode(hit.source, hit.base)];
}
