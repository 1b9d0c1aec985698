/** Calls that read rows: pages of them, a single one, queries and their plans. */
import { compareValues } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import { defined } from '../base/options.ts';
import { InvalidOptionError, Types } from '../index.ts';
import type { Aggregates, Database, Snapshot, TypeName } from '../index.ts';
import { toJson } from '../text/cell-values.ts';
import { compareJson } from '../text/json-order.ts';
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import { CostMeter } from './cost-meter.ts';
import { nameOfType } from './known-tables.ts';
import type { KnownTable } from './known-tables.ts';
import type { Calls, RowMarks } from './messages.ts';
import { columnsOf, conditionedQuery, fieldIn, maxConditions, ordersOf, selectingQuery } from './selection.ts';
import type { CheckedOrder, LooseBuilder, LooseQuery } from './selection.ts';

const maxPage = 1000;
const maxRows = 10_000;
const maxAggregates = 32;

type Values = Readonly<Record<string, unknown>>;

function tableAsked(context: CallContext, asked: Asked, signal: AbortSignal): Promise<KnownTable> {
  return context.tables.get(asked.text('table'), signal);
}

/** `rows`: a page of rows. */
export async function rows(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['rows'][1]> {
  const meter = new CostMeter(context.db, context.environment);
  const table = await tableAsked(context, asked, signal);
  const size = asked.whole('size', 1, maxPage);
  const after = asked.optionalText('after');
  const columns = columnsOf(table, asked);
  return context.states.use(asked.optionalPart('at'), signal, async (source) => {
    // At least this: the query may see newer commits.
    const position = source === context.db ? context.db.position : undefined;
    const selecting = selectingQuery(source, table, asked);
    const page = await selecting.page({ size, signal, ...defined({ after }) });
    const cells = page.rows.map((values) => columns.map((name) => table.cell(name, values[name])));
    const marks = await marksOf(selecting, asked, columns, page.rows);
    return { columns, rows: cells, ...defined({ marks, next: page.next, position }), cost: meter.cost };
  });
}

/** Returns where the words of a search are in the cells of rows; undefined for a query without a search. */
async function marksOf(
  selecting: LooseQuery,
  asked: Asked,
  columns: readonly string[],
  found: readonly Values[],
): Promise<readonly RowMarks[] | undefined> {
  if (asked.optionalPart('search') === undefined) return undefined;
  return Promise.all(
    found.map(async (values) => {
      const spans = await selecting.highlight(values);
      return columns.map((name) => (spans[name] ?? []).map(({ start, end }) => [start, end] as const));
    }),
  );
}

/** `count`: the number of rows that match. */
export async function count(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['count'][1]> {
  const meter = new CostMeter(context.db, context.environment);
  const table = await tableAsked(context, asked, signal);
  return context.states.use(asked.optionalPart('at'), signal, async (source) => {
    return { count: await conditionedQuery(source, table, asked).count({ signal }), cost: meter.cost };
  });
}

/** `row`: a row by its key. */
export async function row(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['row'][1]> {
  const table = await tableAsked(context, asked, signal);
  const key = table.key(asked.list('key', table.keyNames.length));
  return context.states.use(asked.optionalPart('at'), signal, async (source) => {
    const found: Values | undefined = await source.get(table.name, key);
    return { row: found === undefined ? null : table.row(found) };
  });
}

/** A column of a result. */
interface ResultColumn {
  readonly name: string;
  readonly type: TypeName;
}

/** Groups and aggregates of a query. */
interface Folding {
  readonly groupBy: readonly string[];
  readonly aggregates: readonly (readonly [name: string, aggregate: Aggregates<object>[string]])[];
  readonly columns: readonly ResultColumn[];
  /** The fields that are aggregated. */
  readonly taken: readonly string[];
}

/** Returns the type of an aggregate's values. */
function typeOfAggregate(table: KnownTable, kind: string, field: string | undefined): TypeName {
  if (kind === 'count') return 'uint64';
  const type = nameOfType(table.typeOf(field as string));
  if (kind === 'min' || kind === 'max' || (kind === 'sum' && type.endsWith('int64'))) return type;
  return 'float64';
}

/** Returns the groups and aggregates that were asked for; undefined for a query of rows. Throws `InvalidOptionError`. */
function foldingOf(table: KnownTable, asked: Asked): Folding | undefined {
  const groupBy = asked.optionalTexts('groupBy', table.fields.size) ?? [];
  const given = asked.parts('aggregates', maxAggregates);
  if (groupBy.length === 0 && given.length === 0) return undefined;
  if (given.length === 0)
    throw new InvalidOptionError('aggregates', 'Groups need an aggregate: a count, for instance.');
  const columns = [...new Set(groupBy)].map((name) => ({ name, type: nameOfType(table.typeOf(name)) }));
  const taken: string[] = [];
  const aggregates = given.map((part) => {
    const name = part.text('name');
    if (columns.some((column) => column.name === name)) part.fail('name', 'a name that no other column has');
    const kind = part.oneOf('kind', ['count', 'sum', 'avg', 'min', 'max']);
    const field = kind === 'count' && part.any('field') === undefined ? undefined : fieldIn(table, part);
    if (field !== undefined) taken.push(field);
    columns.push({ name, type: typeOfAggregate(table, kind, field) });
    return [name, field === undefined ? 'count' : { [kind]: field }] as [string, Aggregates<object>[string]];
  });
  return { groupBy, aggregates, columns, taken };
}

function withBudget(unbounded: LooseQuery, asked: Asked): LooseQuery {
  const budget = asked.optionalPart('budget');
  if (budget === undefined) return unbounded;
  const limit = (name: string): number | undefined => budget.any(name) as number | undefined;
  return unbounded.budget(defined({ requests: limit('requests'), bytes: limit('bytes'), ms: limit('ms') }));
}

/** Sorts groups: null comes first. */
function sortGroups(groups: Values[], orders: readonly CheckedOrder[], { columns }: Folding): Values[] {
  for (const { field } of orders) {
    if (columns.some(({ name }) => name === field)) continue;
    throw new InvalidOptionError('orderBy', `Groups are not sorted by ${field}: it is no column of the result.`);
  }
  const isJson = new Set(columns.filter(({ type }) => type === 'json').map(({ name }) => name));
  const compare = (a: unknown, b: unknown, name: string): number => {
    // What is at a path may be of any type.
    if (isJson.has(name)) return compareJson(a, b);
    if (a === null || b === null) return Number(a !== null) - Number(b !== null);
    return compareValues(a as OrderedValue, b as OrderedValue);
  };
  return groups.toSorted((a, b) => {
    for (const { field, direction } of orders) {
      const order = compare(a[field], b[field], field);
      if (order !== 0) return direction === 'asc' ? order : -order;
    }
    return 0;
  });
}

async function foldedRows(
  source: Database | Snapshot,
  table: KnownTable,
  asked: Asked,
  folding: Folding,
  signal: AbortSignal,
): Promise<Values[]> {
  const matching = withBudget(conditionedQuery(source, table, asked), asked);
  const aggregates = Object.fromEntries(folding.aggregates) as never;
  const found: unknown =
    folding.groupBy.length === 0
      ? [await matching.aggregate(aggregates, { signal })]
      : await matching.groupBy(...(folding.groupBy as never[])).aggregate(aggregates, { signal });
  return sortGroups(found as Values[], ordersOf(asked), folding);
}

/** `query`: rows, or groups of them. */
export async function query(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['query'][1]> {
  const meter = new CostMeter(context.db, context.environment);
  const table = await tableAsked(context, asked, signal);
  const limit = asked.optionalWhole('limit', 0, Number.MAX_SAFE_INTEGER) ?? Infinity;
  const most = Math.min(limit, maxRows);
  const folding = foldingOf(table, asked);
  const columns =
    folding?.columns ?? columnsOf(table, asked).map((name) => ({ name, type: nameOfType(table.field(name).typeId) }));
  return context.states.use(asked.optionalPart('at'), signal, async (source) => {
    const selecting = folding === undefined ? withBudget(selectingQuery(source, table, asked), asked) : undefined;
    const found: readonly Values[] =
      folding === undefined
        ? ((await selecting?.limit(limit <= maxRows ? limit : maxRows + 1).execute({ signal })) ?? [])
        : await foldedRows(source, table, asked, folding, signal);
    const shown = found.slice(0, most);
    const cells = shown.map((values) => columns.map(({ name, type }) => toJson(Types[type], values[name])));
    const names = columns.map(({ name }) => name);
    const marks = selecting && (await marksOf(selecting, asked, names, shown));
    const isCut = limit > maxRows && found.length > maxRows;
    return { columns, rows: cells, ...defined({ marks }), ...(isCut && { isCut }), cost: meter.cost };
  });
}

/**
 * Returns a query with the plan of one that groups: it takes the fields of the groups and aggregates only, so that an index which has them
 * is read instead of the rows. Groups come in any order, so an order that would need a sort is left out.
 */
async function foldedQuery(whole: LooseQuery, { groupBy, taken }: Folding, signal: AbortSignal): Promise<LooseQuery> {
  const [first = taken[0]] = groupBy;
  if (first === undefined) return whole;
  const narrow = (whole as LooseBuilder).select(...new Set([...groupBy, ...taken]));
  const ordered = (narrow as LooseBuilder).orderBy(first, 'asc');
  const { indexOnly, order } = await ordered.explain({ signal });
  return indexOnly && order === 'access' ? ordered : whole;
}

/** `explain`: the plan of a query, and what it costs. */
export async function explain(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['explain'][1]> {
  const table = await tableAsked(context, asked, signal);
  const folding = foldingOf(table, asked);
  const limit = asked.optionalWhole('limit', 0, Number.MAX_SAFE_INTEGER);
  const run = asked.flag('run');
  return context.states.use(asked.optionalPart('at'), signal, async (source) => {
    let asking =
      folding === undefined
        ? selectingQuery(source, table, asked)
        : await foldedQuery(conditionedQuery(source, table, asked), folding, signal);
    if (limit !== undefined && folding === undefined) asking = asking.limit(limit);
    const explanation = await withBudget(asking, asked).explain({ run, signal });
    const { missingIndex } = explanation;
    return { explanation, ...(missingIndex !== undefined && { indexLine: lineOf(table, asked, missingIndex) }) };
  });
}

/** Returns the line of a schema that defines an index. */
function lineOf(table: KnownTable, asked: Asked, fields: readonly string[]): string {
  const quoted = (name: string): string => `'${name.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const written = fields.map((name) => {
    return table.isPath(name) ? `{ path: ${quoted(name)}, typeId: Types.${comparedType(asked, name)} }` : quoted(name);
  });
  const isName = fields.length === 1 && !table.isPath(fields[0] as string);
  return `indexes: [${isName ? written[0] : `{ fields: [${written.join(', ')}] }`}]`;
}

/** Returns the type in which an index would read a path: that of the first value that a condition compares it with. */
function comparedType(asked: Asked, path: string): TypeName {
  const conditions = asked.parts('where', maxConditions);
  const value = conditions.find((condition) => condition.any('field') === path)?.any('value');
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof first === 'number') return 'float64';
  return typeof first === 'boolean' ? 'boolean' : 'varchar';
}
