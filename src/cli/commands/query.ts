import { command, databasePositional, tablePositional } from '../command.ts';
import type { Command, Session } from '../command.ts';
import { ExitCode, UsageError } from '../exit-code.ts';
import { plural } from '../figures.ts';
import { toJson, toText } from '../row-values.ts';
import { TableWriter } from '../text-table.ts';
import { queryFrom, queryOptions } from '../written-query.ts';
import type { TypeId } from '../../format/types.ts';
import { Types } from '../../format/types.ts';
import type { Query } from '../../query/builder.ts';

/** Rows that are shown where no limit is given and a terminal shows them without a pager. */
const shownRows = 100;

const numbers: ReadonlySet<TypeId> = new Set<TypeId>([
  Types.uint8,
  Types.uint16,
  Types.uint32,
  Types.uint64,
  Types.int8,
  Types.int16,
  Types.int32,
  Types.int64,
  Types.float32,
  Types.float64,
]);

interface FieldColumn {
  readonly name: string;
  readonly typeId: TypeId;
}

type Rows = Pick<Query<Record<string, unknown>>, 'limit' | typeof Symbol.asyncIterator>;

async function printObjects({ terminal, signal }: Session, rows: Rows, columns: readonly FieldColumn[]): Promise<void> {
  for await (const row of rows) {
    signal.throwIfAborted();
    terminal.printJson(Object.fromEntries(columns.map(({ name, typeId }) => [name, toJson(typeId, row[name])])));
    await terminal.drained();
  }
}

async function printRows(
  { terminal, signal }: Session,
  rows: Rows,
  columns: readonly FieldColumn[],
  { pager, isLimited }: { readonly pager: boolean; readonly isLimited: boolean },
): Promise<void> {
  const isPaged = pager && (await terminal.page());
  const most = isLimited || isPaged || terminal.columns === undefined ? undefined : shownRows;
  const table = new TableWriter(
    terminal,
    columns.map(({ name, typeId }) => ({ name, align: numbers.has(typeId) ? 'right' : 'left' })),
  );
  let count = 0;
  try {
    for await (const row of most === undefined ? rows : rows.limit(most + 1)) {
      signal.throwIfAborted();
      if (++count > (most ?? count)) break;
      await table.add(columns.map(({ name, typeId }) => (row[name] === null ? 'null' : toText(typeId, row[name]))));
    }
    table.end();
  } finally {
    await terminal.endPager();
  }
  if (most !== undefined && count > most) {
    terminal.tell(`These are the first ${most} rows, and there are more: --limit says how many to print.`);
  } else if (terminal.isInteractive) terminal.tell(plural(count, 'row'));
}

/** `query`: rows of a table. */
export const query: Command = command({
  name: 'query',
  summary: 'Print rows of a table',
  positionals: { ...databasePositional, ...tablePositional },
  options: {
    ...queryOptions,
    fields: { type: 'string', describe: 'Fields to print, separated by commas; default all' },
    count: { type: 'boolean', default: false, describe: 'Print only how many rows there are' },
    pager: {
      type: 'boolean',
      default: true,
      describe: 'Show the rows in a pager, where a terminal shows them: STOREDB_PAGER, PAGER or less',
    },
    'max-requests': { type: 'number', describe: 'Fail rather than make more requests than that' },
  },
  examples: [
    ['query file:./data cities --where "country = FR" --order population:desc --limit 10', 'the largest ones'],
    ['query s3://bucket/shop orders --where "total >= 100" --count', 'how many there are'],
  ],
  run: async (session, { database, table, fields, count, pager, 'max-requests': requests, ...written }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'replica');
    const schema = opened.table(table);
    let all = queryFrom(opened.db, schema, written);
    if (requests !== undefined) all = all.budget({ requests });
    if (count) {
      const found = await all.count({ signal });
      if (terminal.json) terminal.printJson({ count: found });
      else terminal.print(String(found));
      return ExitCode.done;
    }
    const names = fields === undefined ? Object.keys(schema.fields) : fields.split(',').map((name) => name.trim());
    const unknown = names.find((name) => !Object.hasOwn(schema.fields, name));
    if (unknown !== undefined) throw new UsageError(`Table ${table} has no field ${unknown}.`);
    const rows = all.select(...names);
    const columns = names.map((name) => ({ name, typeId: schema.fields[name]?.typeId as TypeId }));
    if (terminal.json) await printObjects(session, rows, columns);
    else await printRows(session, rows, columns, { pager, isLimited: written.limit !== undefined });
    return ExitCode.done;
  },
});
