/** A query as TypeScript, to copy into code. */
import type { AggregateAsked, Cell, Condition, QueryAsked, SearchAsked, TableInfo } from '../../src/studio/messages.ts';
import { comparedIn } from './values.ts';
import type { ComparedType } from './values.ts';

function quoted(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll(String.raw`\"`, '"').replaceAll("'", String.raw`\'`)}'`;
}

/** Returns a value as TypeScript. */
function valueText(type: ComparedType, value: Cell): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return `[${(value as readonly Cell[]).map((each) => valueText(type, each)).join(', ')}]`;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (type === 'timestamp') return `new Date(${quoted(text)})`;
  if (type === 'bytes') return `Buffer.from(${quoted(text)}, 'base64')`;
  if (type === 'int64' || type === 'uint64') return `${text}n`;
  if (typeof value === 'string') return /^-?Infinity$/.test(value) && type.startsWith('float') ? value : quoted(value);
  return text;
}

function aggregateText({ name, kind, field }: AggregateAsked): string {
  const key = keyText(name);
  return kind === 'count' && field === undefined ? `${key}: 'count'` : `${key}: { ${kind}: ${quoted(field ?? '')} }`;
}

/** Returns a name as the key of an object. */
function keyText(name: string): string {
  return /^[a-z_$][\w$]*$/i.test(name) ? name : quoted(name);
}

function searchText({ text, match, prefix, fuzzy, fields, weights, index }: SearchAsked): string {
  const weightTexts = Object.entries(weights ?? {}).map(([field, weight]) => `${keyText(field)}: ${weight}`);
  const options = [
    ...(match === undefined ? [] : [`match: '${match}'`]),
    ...(prefix === undefined ? [] : [`prefix: ${prefix}`]),
    ...(fuzzy === undefined ? [] : [`fuzzy: ${fuzzy}`]),
    ...(fields === undefined ? [] : [`fields: [${fields.map(quoted).join(', ')}]`]),
    ...(weights === undefined ? [] : [`weights: { ${weightTexts.join(', ')} }`]),
    ...(index === undefined ? [] : [`index: ${quoted(index)}`]),
  ];
  return `.search(${quoted(text)}${options.length === 0 ? '' : `, { ${options.join(', ')} }`})`;
}

/** Returns the lines of a query. */
export function queryText(table: TableInfo, asked: QueryAsked): string {
  const where = ({ field, operator, value }: Condition): string =>
    `.where(${quoted(field)}, '${operator}', ${valueText(comparedIn(table, field).type, value)})`;
  const { groupBy = [], aggregates = [], budget } = asked;
  const budgetParts = Object.entries(budget ?? {}).map(([name, value]) => `${name}: ${value}`);
  const isGrouped = groupBy.length > 0 || aggregates.length > 0;
  const calls = [
    `.query(${quoted(asked.table)})`,
    ...(asked.search === undefined ? [] : [searchText(asked.search)]),
    ...asked.where.map(where),
    ...(isGrouped ? [] : asked.orderBy).map(
      ({ field, direction }) => `.orderBy(${quoted(field)}${direction === 'desc' ? ", 'desc'" : ''})`,
    ),
    ...(asked.fields === undefined || isGrouped ? [] : [`.select(${asked.fields.map(quoted).join(', ')})`]),
    ...(asked.limit === undefined || isGrouped ? [] : [`.limit(${asked.limit})`]),
    ...(budgetParts.length === 0 ? [] : [`.budget({ ${budgetParts.join(', ')} })`]),
    ...(groupBy.length > 0 ? [`.groupBy(${groupBy.map(quoted).join(', ')})`] : []),
    isGrouped ? `.aggregate({ ${aggregates.map(aggregateText).join(', ')} })` : '.execute()',
  ];
  const name = isGrouped ? (groupBy.length > 0 ? 'groups' : 'figures') : 'rows';
  const query = `${[`const ${name} = await db`, ...calls.map((line) => `  ${line}`)].join('\n')};`;
  return groupBy.length > 0 ? `${query}${groupsText(asked)}` : query;
}

/** Returns the line that sorts groups and takes the first of them: order and limit of a query would be those of its rows. */
function groupsText({ orderBy, limit }: QueryAsked): string {
  const sorts = orderBy.toReversed().map(({ field, direction }) => {
    const [less, more] = direction === 'asc' ? [-1, 1] : [1, -1];
    const member = /^[a-z_$][\w$]*$/i.test(field) ? `.${field}` : `[${quoted(field)}]`;
    return `.toSorted((a, b) => (a${member} < b${member} ? ${less} : ${more}))`;
  });
  const parts = [...sorts, ...(limit === undefined ? [] : [`.slice(0, ${limit})`])];
  return parts.length === 0 ? '' : `\nconst first = groups\n  ${parts.join('\n  ')};`;
}
