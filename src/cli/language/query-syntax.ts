/**
 * Parses the queries of the command line:
 *
 *     query     = [ "select" columns "from" ] table [ "where" condition ] [ "group" "by" field { "," field } ]
 *                 [ "order" "by" orders ] [ "limit" number ] [ "offset" number ]
 *     columns   = "*" | column { "," column }
 *     column    = ( field | aggregate ) [ "as" name ]
 *     aggregate = "count" "(" [ "*" | field ] ")" | ( "min" | "max" | "sum" | "avg" ) "(" field ")"
 *     orders    = order { "," order }
 *     order     = ( field | aggregate ) [ "asc" | "desc" ]
 *
 * The grammar of `condition` is at the head of condition-clauses.ts.
 */
import { isListOperator } from '../../query/conditions/comparison.ts';
import type { ListOperator, Operator } from '../../query/conditions/comparison.ts';
import { TokenReader } from './tokens.ts';
import type { Token } from './tokens.ts';

const aggregateKinds = ['count', 'min', 'max', 'sum', 'avg'] as const;
export type AggregateKind = (typeof aggregateKinds)[number];

/** A field or an aggregate. */
export interface WrittenTerm {
  readonly at: number;
  readonly aggregate: AggregateKind | undefined;
  /** Undefined for a count of rows. */
  readonly field: Token | undefined;
}

export interface WrittenColumn extends WrittenTerm {
  readonly as: string | undefined;
}

export interface WrittenOrderTerm extends WrittenTerm {
  readonly direction: 'asc' | 'desc';
}

/** A parsed query, with its text for messages. */
export interface WrittenQueryText {
  readonly source: string;
  readonly table: Token;
  /** Undefined: all fields, or the fields of `group by`. */
  readonly columns: readonly WrittenColumn[] | undefined;
  readonly where: WrittenConditionNode | undefined;
  readonly groupBy: readonly Token[];
  readonly orderBy: readonly WrittenOrderTerm[];
  readonly limit: number | undefined;
  readonly offset: number | undefined;
  /** The texts that the columns and the orders were read from, if other than `source`. */
  readonly columnSource?: string;
  readonly orderSource?: string;
}

function takeTerm(reader: TokenReader, what: string): WrittenTerm {
  const { at, kind, value } = reader.next;
  if (kind !== 'word' || !reader.isSymbol('(', 1)) return { at, aggregate: undefined, field: takeName(reader, what) };
  const aggregate = aggregateKinds.find((known) => known === value.toLowerCase());
  if (aggregate === undefined) {
    return reader.fail(`There is no aggregate ${value}: the aggregates are ${aggregateKinds.join(', ')}`, { at });
  }
  reader.take();
  reader.take();
  const isOfRows = aggregate === 'count' && (reader.takeWord('*') || reader.isSymbol(')'));
  const field = isOfRows ? undefined : takeName(reader, `the field of ${aggregate}`);
  reader.expectSymbol(')', ')');
  return { at, aggregate, field };
}

function takeColumn(reader: TokenReader): WrittenColumn {
  const term = takeTerm(reader, 'a field or an aggregate such as count()');
  return { ...term, as: reader.takeWord('as') ? takeName(reader, 'the name of the column').value : undefined };
}

function takeOrder(reader: TokenReader): WrittenOrderTerm {
  const term = takeTerm(reader, 'a field to order by');
  if (reader.takeWord('desc')) return { ...term, direction: 'desc' };
  if (reader.takeWord('asc') || term.field?.kind !== 'word') return { ...term, direction: 'asc' };
  // The short form of the option: population:desc.
  const [, name, direction] = /^(.+):(asc|desc)$/i.exec(term.field.value) ?? [];
  if (name === undefined || direction === undefined) return { ...term, direction: 'asc' };
  return { ...term, field: { ...term.field, value: name }, direction: direction.toLowerCase() as 'asc' | 'desc' };
}

function takeCount(reader: TokenReader, word: string): number | undefined {
  if (!reader.takeWord(word)) return undefined;
  const { kind, value } = reader.next;
  const count = Number(value);
  if (kind !== 'word' || !/^\d+$/.test(value) || !Number.isSafeInteger(count)) reader.expected('a whole number');
  reader.take();
  return count;
}

/** Parses a query. `tables`: existing names; a text that is one of them means all of its rows. Throws `LanguageError`. */
export function parseQuery(source: string, tables: readonly string[]): WrittenQueryText {
  const all = { columns: undefined, where: undefined, groupBy: [], orderBy: [], limit: undefined, offset: undefined };
  if (tables.includes(source)) return { ...all, source, table: { kind: 'name', value: source, at: 0 } };
  const reader = new TokenReader(source);
  let columns: readonly WrittenColumn[] | undefined;
  if (reader.takeWord('select')) {
    if (!reader.takeWord('*')) columns = reader.list(() => takeColumn(reader));
    reader.expectWord('from', 'from and a table, or a comma');
  }
  const table = takeName(reader, 'a table');
  const where = reader.takeWord('where') ? takeCondition(reader) : undefined;
  const groupBy = reader.takeWord('group', 'by') ? reader.list(() => takeName(reader, 'a field to group by')) : [];
  const orderBy = reader.takeWord('order', 'by') ? reader.list(() => takeOrder(reader)) : [];
  const limit = takeCount(reader, 'limit');
  const offset = takeCount(reader, 'offset');
  const rest = ['where', 'group by', 'order by', 'limit', 'offset'];
  const gone = [where !== undefined, groupBy.length > 0, orderBy.length > 0, limit !== undefined, offset !== undefined];
  const open = rest.slice(gone.lastIndexOf(true) + 1);
  const joins = where !== undefined && gone.lastIndexOf(true) === 0 ? ['and', 'or'] : [];
  reader.end([...joins, ...open, 'the end'].join(', ').replace(/, (?=[^,]*$)/, ' or '));
  return { source, table, columns, where, groupBy, orderBy, limit, offset };
}

/** Parses a condition without a query. Throws `LanguageError`. */
export function parseCondition(source: string): WrittenConditionNode {
  const reader = new TokenReader(source);
  const condition = takeCondition(reader);
  reader.end('and, or or the end; a text of several words needs quotes');
  return condition;
}

/** Parses orders without a query: `name, population desc`. Throws `LanguageError`. */
export function parseOrders(source: string): readonly WrittenOrderTerm[] {
  const reader = new TokenReader(source);
  const orders = reader.list(() => takeOrder(reader));
  reader.end('a comma, asc, desc or the end');
  return orders;
}

/** Parses names separated by commas. Throws `LanguageError`. */
export function parseNames(source: string): readonly Token[] {
  const reader = new TokenReader(source);
  const names = reader.list(() => takeName(reader, 'the name of a field'));
  reader.end('a comma or the end');
  return names;
}

/** Parses names with a value behind each: `title = 5, body = 0.5`. Throws `LanguageError`. */
export function parseValues(source: string, what: string): readonly (readonly [name: Token, value: Token])[] {
  const reader = new TokenReader(source);
  const pairs = reader.list(() => {
    const name = takeName(reader, 'the name of a field');
    reader.expectSymbol('=', `= and ${what}`);
    return [name, takeValue(reader)] as const;
  });
  reader.end('a comma or the end');
  return pairs;
}

/** The operator of a comparison: an operator of the query builder, or `LIKE`. */
export type WrittenOperator = Operator | 'LIKE';

export type WrittenConditionNode =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly WrittenConditionNode[] }
  | { readonly kind: 'not'; readonly part: WrittenConditionNode }
  | { readonly kind: 'null'; readonly field: Token }
  | {
      readonly kind: 'compared';
      readonly field: Token;
      readonly operator: WrittenOperator;
      /** One value; two for `BETWEEN`, and any number for `IN`, `HAS ANY` and `HAS ALL`. */
      readonly values: readonly Token[];
    }
  | {
      readonly kind: 'together';
      readonly fields: readonly Token[];
      readonly operator: TupleOperator;
      /** One tuple; two for `BETWEEN`, and any number for `IN`. Each has a value for each field. */
      readonly tuples: readonly (readonly Token[])[];
    };

/** The operator of a comparison of several fields together. */
export type TupleOperator = Exclude<WrittenOperator, '!=' | 'PREFIX' | 'LIKE' | ListOperator>;

/** Each level may become two clauses of the query builder, which allows 100 levels. */
const maxDepth = 40;
const symbols: ReadonlySet<string> = new Set(['=', '!=', '<', '<=', '>', '>=']);
const operators = '=, !=, <, <=, >, >=, is, in, between, like, prefix or has';

/** Words that need quotes to be values. */
const reserved: ReadonlySet<string> = new Set('and or not select from where group order limit offset'.split(' '));

/** Takes the name of a field. In double quotes it may be any text. */
function takeName(reader: TokenReader, what: string): Token {
  const { kind } = reader.next;
  return kind === 'word' || kind === 'name' ? reader.take() : reader.expected(what);
}

function takeValue(reader: TokenReader): Token {
  const { kind, value } = reader.next;
  if (kind === 'symbol' || kind === 'end') reader.expected('a value');
  if (kind === 'word' && reserved.has(value.toLowerCase())) {
    reader.fail(`Expected a value, and ${value} is a keyword: write '${value}' for a text`, reader.next);
  }
  return reader.take();
}

function takeValues(reader: TokenReader, operator: WrittenOperator): Token[] {
  if (operator === 'IN' || operator === 'HAS ANY' || operator === 'HAS ALL') {
    reader.expectSymbol('(', `( with the values: ${operator.toLowerCase()} (1, 2)`);
    const values = reader.list(() => takeValue(reader));
    reader.expectSymbol(')', ') or a comma');
    return values;
  }
  const first = takeValue(reader);
  if (operator !== 'BETWEEN') return [first];
  reader.expectWord('and', 'and: between 1 and 5');
  return [first, takeValue(reader)];
}

function takeOperator(reader: TokenReader): WrittenOperator {
  const { kind, value } = reader.next;
  const operator = value === '<>' ? '!=' : value;
  if (kind === 'symbol' && symbols.has(operator)) {
    reader.take();
    return operator as WrittenOperator;
  }
  for (const word of ['in', 'between', 'like', 'prefix'] as const) {
    if (reader.takeWord(word)) return word.toUpperCase() as WrittenOperator;
  }
  if (reader.takeWord('has')) return reader.takeWord('any') ? 'HAS ANY' : reader.takeWord('all') ? 'HAS ALL' : 'HAS';
  return reader.expected(`how the field is compared (${operators})`);
}

function takeComparison(reader: TokenReader): WrittenConditionNode {
  const field = takeName(reader, 'a field, not or (');
  const opposite = (isNegated: boolean, part: WrittenConditionNode): WrittenConditionNode => {
    return isNegated ? { kind: 'not', part } : part;
  };
  if (reader.takeWord('is')) {
    const isNegated = reader.takeWord('not');
    reader.expectWord('null', isNegated ? 'null' : 'null or not null');
    return opposite(isNegated, { kind: 'null', field });
  }
  const isNegated = reader.takeWord('not');
  if (isNegated && reader.next.kind === 'symbol') reader.expected('in, between, like, prefix or has');
  const operator = takeOperator(reader);
  return opposite(isNegated, { kind: 'compared', field, operator, values: takeValues(reader, operator) });
}

/** Takes the values for several fields: `(1, 'a')`. */
function takeTuple(reader: TokenReader, fields: readonly Token[]): readonly Token[] {
  const { at } = reader.next;
  const names = fields.map(({ value }) => value).join(', ');
  reader.expectSymbol('(', `( with a value for each of ${names}`);
  const values = reader.list(() => takeValue(reader));
  reader.expectSymbol(')', ') or a comma');
  if (values.length === fields.length) return values;
  return reader.fail(
    `Expected ${fields.length} values, one for each of ${names}, but there ${values.length === 1 ? 'is 1' : `are ${values.length}`}`,
    { at },
  );
}

/** Takes a comparison of several fields together, after its first parenthesis. */
function takeTogether(reader: TokenReader): WrittenConditionNode {
  const fields = reader.list(() => takeName(reader, 'a field'));
  reader.expectSymbol(')', ') or a comma');
  const isNegated = reader.takeWord('not');
  if (isNegated && reader.next.kind === 'symbol') reader.expected('in or between');
  const { next } = reader;
  const written = reader.isWord('is') ? undefined : takeOperator(reader);
  if (written === undefined || written === 'LIKE' || written === 'PREFIX' || isListOperator(written)) {
    const instead = 'compare several fields together by =, !=, <, <=, >, >=, in or between';
    return reader.fail(`${next.value} is not possible here: ${instead}`, next);
  }
  const operator = written === '!=' ? '=' : written;
  const tuple = (): readonly Token[] => takeTuple(reader, fields);
  let tuples: readonly (readonly Token[])[];
  if (operator === 'IN') {
    reader.expectSymbol('(', '( with the values: in ((1, 2), (3, 4))');
    tuples = reader.list(tuple);
    reader.expectSymbol(')', ') or a comma');
  } else if (operator === 'BETWEEN') {
    const low = tuple();
    reader.expectWord('and', 'and: between (1, 2) and (3, 4)');
    tuples = [low, tuple()];
  } else tuples = [tuple()];
  const together: WrittenConditionNode = { kind: 'together', fields, operator, tuples };
  return isNegated || written === '!=' ? { kind: 'not', part: together } : together;
}

function takeSingle(reader: TokenReader, depth: number): WrittenConditionNode {
  if (depth > maxDepth) reader.fail(`Conditions can be nested up to ${maxDepth} levels deep`, reader.next);
  if (reader.takeWord('not')) return { kind: 'not', part: takeSingle(reader, depth + 1) };
  if (!reader.takeSymbol('(')) return takeComparison(reader);
  if (reader.isSymbol(',', 1)) return takeTogether(reader);
  const inner = takeCondition(reader, depth);
  reader.expectSymbol(')', 'and, or or )');
  return inner;
}

function takeJoined(reader: TokenReader, kind: 'and' | 'or', part: () => WrittenConditionNode): WrittenConditionNode {
  const first = part();
  if (!reader.isWord(kind)) return first;
  const parts = [first];
  while (reader.takeWord(kind)) parts.push(part());
  return { kind, parts };
}

/** Takes the longest condition that comes next. Throws `LanguageError`. */
function takeCondition(reader: TokenReader, depth = 0): WrittenConditionNode {
  return takeJoined(reader, 'or', () => takeJoined(reader, 'and', () => takeSingle(reader, depth + 1)));
}
