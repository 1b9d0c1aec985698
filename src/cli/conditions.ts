/** Conditions and orders as they are written on the command line. */
import { operators } from '../query/comparison.ts';
import type { Operator } from '../query/comparison.ts';
import type { Query } from '../query/builder.ts';
import type { SchemaDefinition } from '../table/schema.ts';
import { UsageError } from './exit-code.ts';
import { fromText, ValueError } from './row-values.ts';

type Row = Record<string, unknown>;

const form = 'field operator value, such as "country = FR", "year BETWEEN 1900,1950" or "name PREFIX \'New \'"';
const pattern = /^\s*(?:"([^"]+)"|([^\s"'!=<>]+))\s*(!=|>=|<=|=|>|<|\b(?:IN|BETWEEN|PREFIX)\b)(.*)$/is;

function unquoted(text: string): string {
  const match = /^'((?:[^']|'')*)'$/s.exec(text) ?? /^"((?:[^"]|"")*)"$/s.exec(text);
  return match === null ? text : (match[1] as string).replace(/''|""/g, (pair) => pair.charAt(0));
}

/** Splits at commas that are not in quotes. */
function items(text: string): string[] {
  if (text.trim() === '') return [];
  return (text.match(/(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^,])+/gs) ?? []).map((item) => item.trim());
}

function fieldOf(schema: SchemaDefinition, name: string): SchemaDefinition['fields'][string] {
  const field = Object.hasOwn(schema.fields, name) ? schema.fields[name] : undefined;
  if (field !== undefined) return field;
  throw new UsageError(`Table ${schema.name} has no field ${name}. It has ${Object.keys(schema.fields).join(', ')}.`);
}

/** One value; `null` without quotes is null. */
function valueOf(schema: SchemaDefinition, name: string, text: string): unknown {
  if (text === 'null') return null;
  try {
    return fromText(fieldOf(schema, name).typeId, unquoted(text));
  } catch (error) {
    if (error instanceof ValueError) throw new UsageError(`Field ${name}: ${error.message}.`);
    throw error;
  }
}

/** The query with the conditions added. Throws `UsageError`. */
export function addConditions(query: Query<Row>, schema: SchemaDefinition, conditions: readonly string[]): Query<Row> {
  let asked = query;
  for (const condition of conditions) {
    const match = pattern.exec(condition.trim());
    if (match === null) throw new UsageError(`'${condition}' is no condition: write ${form}.`);
    const name = (match[1] ?? match[2]) as string;
    const operator = (match[3] as string).toUpperCase() as Operator;
    const text = (match[4] as string).trim();
    if (!operators.includes(operator)) throw new UsageError(`There is no operator ${operator}.`);
    fieldOf(schema, name);
    const isList = operator === 'IN' || operator === 'BETWEEN';
    const value = isList
      ? items(text.replace(/^[[(](.*)[\])]$/s, '$1')).map((item) => valueOf(schema, name, item))
      : valueOf(schema, name, text);
    asked = asked.where(name, operator as '=', value as never);
  }
  return asked;
}

/** The query with orders added such as `name` and `population:desc`. Throws `UsageError`. */
export function addOrders(query: Query<Row>, schema: SchemaDefinition, orders: readonly string[]): Query<Row> {
  let asked = query;
  for (const order of orders) {
    const [, name = '', direction = 'asc'] = /^(.*?)(?::(asc|desc))?$/is.exec(order) ?? [];
    fieldOf(schema, name);
    asked = asked.orderBy(name, direction.toLowerCase() as 'asc' | 'desc');
  }
  return asked;
}
