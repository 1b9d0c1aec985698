import { didYouMean } from '../../base/options.ts';
import type { IndexStatus } from '../../migration/index-status.ts';
import { describeConditions } from '../../schema/index-condition.ts';
import { keyNamesOf } from '../../schema/schema.ts';
import { command, databasePositional, tablePositional, confirmed, yesOption } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import {
  draftTable,
  KeptFiles,
  tableNameOf,
  jsonOf,
  tellOfHead,
  typeScriptOf,
  draftingOptions,
  sampleOf,
} from '../draft/draft-files.ts';
import { parseDateFormats } from '../input/field-values.ts';
import { inputFiles } from '../input/input-files.ts';
import type { InputFile } from '../input/input-files.ts';
import { describePosition, LineError } from '../input/line-error.ts';
import { readingOptions, readOptionsOf } from '../input/reading-options.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { formatBytes, formatCount, jsonText, plural } from '../terminal/figures.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';
import { describeFields, describeIndexes } from '../values/schema-text.ts';

/** `tables`: lists the tables of a database. */
export const tables: Command = command({
  name: 'tables',
  summary: 'List the tables: versions, rows, fields and indexes',
  positionals: databasePositional,
  options: {},
  examples: [['tables file:./data', 'the tables of the only database in a folder']],
  run: async (session, { database }) => {
    await using opened = await session.open(database, 'replica');
    const { terminal, signal } = session;
    const found = await Promise.all(
      opened.tables.map(async (schema) => ({ schema, rows: await opened.db.query(schema.name).count({ signal }) })),
    );
    if (terminal.json) {
      terminal.printJson(found.map(({ schema, rows }) => ({ ...schema, rows })));
      return ExitCode.done;
    }
    if (found.length === 0) terminal.tell('The database has no tables yet.');
    else {
      printTable(
        terminal,
        [
          { name: 'table' },
          { name: 'version', align: 'right' },
          { name: 'rows', align: 'right' },
          { name: 'primary key' },
          { name: 'indexes' },
          { name: 'fields' },
        ],
        found.map(({ schema, rows }) => [
          schema.name,
          String(schema.version),
          formatCount(rows),
          keyNamesOf(schema).join(', '),
          describeIndexes(schema),
          describeFields(schema).join(', '),
        ]),
      );
    }
    return ExitCode.done;
  },
});

const draft: Command = command({
  name: 'draft',
  summary: 'Print a schema for the contents of files, as TypeScript, or as JSON for --schema',
  positionals: {
    files: {
      type: 'string',
      array: true,
      isRequired: true,
      describe: 'Files to read, or patterns in quotes; -: standard input',
    },
  },
  options: { ...draftingOptions, ...readingOptions },
  examples: [['schema draft cities.csv > cities.ts', 'a module with the definition of the table']],
  run: async (session, args) => {
    const { terminal } = session;
    const named = (await inputFiles(args.files)) as [InputFile, ...InputFile[]];
    const table = args.table ?? tableNameOf(named[0]);
    await using kept = await KeptFiles.keep(named, session);
    const { files } = kept;
    let [current] = named;
    try {
      const drafted = await draftTable(
        session,
        {
          table,
          key: args.key,
          dates: parseDateFormats(args['date-format'] ?? []),
          sample: sampleOf(args),
          files,
          readOptions: readOptionsOf(args, false),
          onBadRow: (_, problem) => {
            throw problem;
          },
        },
        (file) => (current = file),
      );
      tellOfHead(terminal, drafted, args.header);
      if (terminal.json) terminal.printJson(jsonOf(drafted));
      else terminal.printLines(typeScriptOf(drafted));
      return ExitCode.done;
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      const message = `${describePosition(current.name, error)}: ${error.message}`;
      if (terminal.json) terminal.tell(jsonText({ error: { code: 'BAD_ROW', message } }));
      else terminal.tell(`${terminal.styleMessage('red', 'error')}: ${message}`);
      return ExitCode.found;
    }
  },
});

/** `schema`: groups the commands on schemas. */
export const schema: Command = command({
  name: 'schema',
  summary: 'Draft the schema of a table from files',
  positionals: {},
  options: {},
  subcommands: [draft],
  isGroup: true,
  run: async () => ExitCode.usage,
});

/** Leaves out `declared`. The command line registers the stored definition, so it would be true for all indexes. */
function withoutDeclared(status: IndexStatus): Omit<IndexStatus, 'declared'> {
  const { declared: _, ...index } = status;
  return index;
}

function print(terminal: Terminal, found: readonly IndexStatus[], sizes: boolean): void {
  const hasIncluded = found.some(({ include }) => include !== undefined);
  printTable(
    terminal,
    [
      { name: 'index' },
      { name: 'on' },
      { name: 'unique' },
      { name: 'where' },
      ...(hasIncluded ? [{ name: 'includes' }] : []),
      { name: 'state' },
      { name: 'rows done', align: 'right' },
      { name: 'entries', align: 'right' },
      ...(sizes ? [{ name: 'size', align: 'right' } as const] : []),
      { name: 'problem' },
    ],
    found.map((index) => [
      index.name,
      onFields(index),
      index.unique ? 'unique' : '',
      index.where === undefined ? '' : describeConditions(index.where),
      ...(hasIncluded ? [(index.include ?? []).join(', ')] : []),
      index.state,
      `${formatCount(index.rowsDone)} of ${formatCount(index.rowsTotal)}`,
      formatCount(index.entries),
      ...(sizes ? [index.sizeBytes === undefined ? '' : formatBytes(index.sizeBytes)] : []),
      index.problem ?? '',
    ]),
  );
}

function onFields({ fields, function: called, each = false, text }: IndexStatus): string {
  const names = called === undefined ? fields.join(', ') : `function ${called}`;
  if (text === undefined) return each ? `each of ${names}` : names;
  return text.language === undefined ? `words of ${names}` : `words of ${names} (${text.language})`;
}

/** Drops an index after confirmation. Throws `UsageError` if there is none of the name. */
async function drop(
  session: Session,
  { db }: OpenDatabase,
  { table, index, yes }: { readonly table: string; readonly index: string; readonly yes: boolean },
): Promise<ExitCode> {
  const { terminal, signal } = session;
  const found = await db.indexes(table, { signal });
  const status = found.find(({ name }) => name === index);
  if (status === undefined) {
    const names = found.map(({ name }) => name);
    const others = names.length === 0 ? 'It has no indexes.' : `Its indexes are ${names.join('; ')}.`;
    throw new UsageError(`Table ${table} has no index ${index}${didYouMean(index, names) || '.'} ${others}`);
  }
  const { entries, unique } = status;
  const until = unique ? ' Its values are no longer checked to be unique.' : '';
  const question =
    `Drop index ${index} of ${table}, which has ${plural(entries, 'entry', 'entries')}?${until} ` +
    'Processes whose definition of the table has the index add it again: deploy one without it first.';
  if (!(await confirmed(session, question, yes))) return ExitCode.interrupted;
  await db.dropIndex(table, index, { signal });
  if (terminal.json) terminal.printJson({ table, dropped: index, entries });
  else terminal.print(`Index ${index} of ${table} was dropped. gc deletes its blocks.`);
  return ExitCode.done;
}

/** `indexes`: lists the indexes of a table with the progress of new ones, or drops one. */
export const indexes: Command = command({
  name: 'indexes',
  summary: 'List the indexes of a table with the progress of new ones, or drop one',
  positionals: { ...databasePositional, ...tablePositional },
  options: {
    sizes: { type: 'boolean', default: false, describe: 'Show the size of each index, which reads inner blocks' },
    drop: { type: 'string', describe: 'Name of an index to drop, without a new version of the table' },
    ...yesOption,
  },
  examples: [
    ['indexes file:./data cities --sizes', 'with the size of each'],
    ['indexes file:./data cities --drop country', 'for all processes; rows stay'],
  ],
  run: async (session, { database, table, sizes, drop: index, yes }) => {
    const isDropped = index !== undefined;
    const more = isDropped ? { unregistered: table } : {};
    await using opened = await session.open(database, isDropped ? 'writer' : 'replica', more);
    const { terminal, signal } = session;
    const { name } = opened.table(table);
    // With await: the database stays open until the index is dropped.
    if (isDropped) return await drop(session, opened, { table: name, index, yes });
    const found = await opened.db.indexes(name, { signal, sizes });
    if (terminal.json) terminal.printJson(found.map(withoutDeclared));
    else if (found.length === 0) terminal.tell(`Table ${name} has no indexes.`);
    else print(terminal, found, sizes);
    return ExitCode.done;
  },
});
