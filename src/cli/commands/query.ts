import { command, databasePositional, tablePositional } from '../command.ts';
import type { Command } from '../command.ts';
import { ExitCode, UsageError } from '../exit-code.ts';
import { plural } from '../figures.ts';
import { toJson, toText } from '../row-values.ts';
import { printTable } from '../text-table.ts';
import { queryFrom, queryOptions } from '../written-query.ts';
import type { TypeId } from '../../format/types.ts';
import { Types } from '../../format/types.ts';

/** Rows that are shown where no limit is given and a terminal shows them. */
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

/** `query`: rows of a table. */
export const query: Command = command({
  name: 'query',
  summary: 'Print rows of a table',
  positionals: { ...databasePositional, ...tablePositional },
  options: {
    ...queryOptions,
    fields: { type: 'string', describe: 'Fields to print, separated by commas; default all' },
    count: { type: 'boolean', default: false, describe: 'Print only how many rows there are' },
    'max-requests': { type: 'number', describe: 'Fail rather than make more requests than that' },
  },
  examples: [
    ['query file:./data cities --where "country = FR" --order population:desc --limit 10', 'the largest ones'],
    ['query s3://bucket/shop orders --where "total >= 100" --count', 'how many there are'],
  ],
  run: async (session, { database, table, fields, count, 'max-requests': requests, ...written }) => {
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
    const isCut = written.limit === undefined && terminal.columns !== undefined && !terminal.json;
    if (isCut) all = all.limit(shownRows + 1);
    const typeOf = (name: string): TypeId => schema.fields[name]?.typeId as TypeId;
    const rows = await all.select(...names).execute({ signal });
    if (terminal.json) {
      for (const row of rows) {
        terminal.printJson(Object.fromEntries(names.map((name) => [name, toJson(typeOf(name), row[name])])));
      }
      return ExitCode.done;
    }
    const shown = isCut ? rows.slice(0, shownRows) : rows;
    printTable(
      terminal,
      names.map((name) => ({ name, align: numbers.has(typeOf(name)) ? 'right' : 'left' })),
      shown.map((row) => names.map((name) => (row[name] === null ? 'null' : toText(typeOf(name), row[name])))),
    );
    if (rows.length > shown.length) terminal.tell(`There are more rows: --limit says how many to print.`);
    else if (terminal.isInteractive) terminal.tell(plural(rows.length, 'row'));
    return ExitCode.done;
  },
});
