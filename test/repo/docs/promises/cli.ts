import type { PagePromises } from './page-promises.ts';

export const cli: PagePromises = {
  'Names and values cannot control a terminal.': [
    'test/features/cli/control-characters.slow.test.ts: as text, in a pipe and in a terminal',
    'test/features/cli/control-characters.slow.test.ts: as JSON',
    'test/features/cli/control-characters.slow.test.ts: has heads without controls',
  ],
  'An output that cannot be written, as on a full disk, is one: status 3.': [
    'test/features/cli/outputs.slow.test.ts: is reported in a line if it is full',
  ],
  'of a symbolic link, it replaces the target. Named pipes and devices are written to directly.': [
    'test/features/cli/outputs.slow.test.ts: goes through a link to where it leads',
    'test/features/cli/outputs.slow.test.ts: goes into a named pipe once somebody reads it',
    'test/features/cli/outputs.slow.test.ts: goes to a device, and reports a full one',
  ],
  'Commands that write (`import`, `indexes` with `--drop`, `drop` of a table, `clear`, `gc`, `tend`, `repair`, `migrate`, `publish`, `rename`, `rewrite`, `snapshots release`, `loads discard`, `studio` with `--write`, and the commands that take a snapshot: `export`, `backup` and `clone`) are a node like any other while they run':
    ['test/repo/docs/options.test.ts: names the commands that are a node while they run'],
  'It needs no schemas, since it uses the stored ones.': [
    'test/features/cli/commands.slow.test.ts: tables: versions, rows, fields and indexes',
  ],
  'A URL without a prefix makes the command look for databases, with a listing for each folder; with several there, it names them.':
    ['test/features/cli/usage.slow.test.ts: has them named'],
  'Results go to the standard output, and everything else to stderr': [
    'test/servers/terminal/cli.test.ts: gives pipes neither lines nor colours, cuts nothing, and ends when nobody reads on',
  ],
  'Errors are JSON too then': ['test/features/cli/usage.slow.test.ts: errors are JSON for those who want that'],
  'Tables are printed piece by piece: the first 1,000 rows determine the widths of the columns.': [
    'test/features/cli/outputs.slow.test.ts: is printed piece by piece, at any length',
    'test/features/cli/outputs.slow.test.ts: lines up behind the rows that were measured, and cuts nothing in a pipe',
  ],
  'it prints the first 100 rows, unless `--limit` says otherwise.': [
    'test/features/cli/outputs.slow.test.ts: is cut to the first rows in a terminal without a pager, with word of it',
  ],
  'A reader that stops early, such as `head`, is no failure.': [
    'test/features/cli/outputs.slow.test.ts: is no failure where its reader has seen enough: %s',
  ],
  'The command worked, and found what it looks for: damage (`verify`, `repair`)': [
    'test/features/cli/commands.slow.test.ts: verify reports faults, repair mends them, and exit statuses show both',
  ],
  'an import stops between two flushes and says from which line to go on, and an export leaves no file.': [
    'test/features/cli/imports.slow.test.ts: ends an import between two flushes',
    'test/servers/terminal/cli.test.ts: shows how far it is, and leaves nothing half done after Ctrl-C',
  ],
  '`clear` deletes the rows of a table, all or those that a condition finds': [
    'test/features/cli/removal.slow.test.ts: deletes the rows that a condition finds, or all, after a confirmation',
    'test/features/cli/removal.slow.test.ts: deletes any number of rows, in commits of some',
  ],
  'then a process that still runs on the database writes nothing more, and `start()` refuses to make a new one of the rest.':
    [
      'test/features/cli/removal.slow.test.ts: refuses while nodes are registered, unless it is forced to',
      'test/features/cli/removal.slow.test.ts: goes on where it was stopped: Block 0 goes first, so that nothing is made of the rest',
    ],
  'It deletes only objects of the database: other objects under the prefix, among them a database whose prefix begins with this one, stay.':
    [
      'test/features/cli/removal.slow.test.ts: deletes all of a database after a confirmation, and nothing else in the store',
    ],
  'If it is stopped on the way, or rows were written meanwhile, the old database is whole': [
    'test/features/cli/removal.slow.test.ts: deletes nothing if somebody wrote meanwhile',
  ],
  'Both refuse while nodes are registered': [
    'test/features/cli/removal.slow.test.ts: refuses while nodes are registered, unless it is forced to',
    'test/features/cli/removal.slow.test.ts: refuses its own name, a place that is taken, and a database that nodes are registered in',
  ],
  'This makes the rows that a migration under way still lacks': [
    'test/features/cli/commands.slow.test.ts: makes the rest of a version that %s, and retires the old one',
    'test/features/cli/commands.slow.test.ts: asks for the application where its function makes the rows',
  ],
  'completes the migrations that were requested and the indexes on fields that were begun': [
    'test/features/cli/maintenance.slow.test.ts: completes a migration that was requested',
    'test/features/cli/maintenance.slow.test.ts: adds an index that another process has begun',
    'test/features/cli/maintenance.slow.test.ts: says which migration needs the application, and collects all the same',
  ],
  'under the prefix that the URL names, `--concurrency` of them at a time': [
    'test/features/cli/maintenance.slow.test.ts: tends every database of a folder with --all, goes on where one fails, and says which',
    'test/features/cli/maintenance.slow.test.ts: finds more databases with --all than a search by itself looks for',
  ],
  'Where one fails, has no such table, or is blocked by its rows, the others are migrated all the same, and the exit status is 1.':
    [
      'test/features/cli/migrate-all.slow.test.ts: migrates every database of a folder, goes on where one fails, and says which',
    ],
  'lists the changes of the fields, each change once with the number of databases, and asks one question for all.': [
    'test/features/cli/migrate-all.slow.test.ts: reports the changes of the fields, each once, before it asks one question for all',
  ],
  'With `--finish`, an old version that an instance is known to use stays, and counts as a failure': [
    'test/features/cli/migrate-all.slow.test.ts: reports the progress of all, goes back, and retires the old version if no instance is known to use it',
  ],
  'This drops an index for all processes, without a new version of the table': [
    'test/features/cli/indexes.slow.test.ts: drops an index after a confirmation, and nothing else',
  ],
  'Processes whose definition of the table has the index add it again': [
    'test/features/cli/indexes.slow.test.ts: warns that a definition with it adds it again, and that happens',
  ],
  'Rows are read one by one, so that a result may be of any length.': [
    'test/features/cli/large-answers.slow.test.ts: is printed row by row %s',
    'test/features/cli/large-answers.slow.test.ts: waits for a reader that is slower than the store, from the shell too',
    'test/features/cli/large-answers.slow.test.ts: would not fit if it were held, as rows are that come in an order of their own',
  ],
  'asks first; `--yes` answers.': [
    'test/features/cli/indexes.slow.test.ts: drops an index after a confirmation, and nothing else',
    'test/features/cli/removal.slow.test.ts: moves a database to another prefix, after a confirmation',
    'test/features/cli/maintenance.slow.test.ts: merges pending commits and deletes garbage, after a confirmation',
    'test/features/cli/maintenance.slow.test.ts: ends a snapshot by its id, after a confirmation',
    'test/features/cli/commands.slow.test.ts: gc reports first, asks, and deletes',
    'test/servers/terminal/cli.test.ts: asks before steps that cannot be undone',
  ],
  'An import of such a file restores exactly the exported values: every type, null and empty text, negative zero, infinities, 64-bit integers.':
    ['test/features/cli/round-trip.slow.test.ts: is the same table'],
  'Imported, they have the same bytes and media types, and new references.': [
    'test/features/cli/imports.slow.test.ts: come from the folder that is named, and nothing else does',
    'test/features/cli/imports.slow.test.ts: have the media types that are beside them',
    'test/features/cli/round-trip.slow.test.ts: is the same table',
  ],
  "An export says how many there are, and with `--defuse-formulas` puts a `'` before each": [
    'test/features/cli/outputs.slow.test.ts: counts the texts that a spreadsheet takes for formulas, and defuses them if asked',
  ],
  'an export gives each field the type that holds its values exactly, and an import with `--create` takes the types of the file.':
    [
      'test/features/cli/round-trip.slow.test.ts: is the same table',
      'test/features/cli/parquet.slow.test.ts: has its types in a draft, for any values',
    ],
  '`NaN` is refused, unless `--null NaN` takes it for null': [
    'test/features/cli/parquet.slow.test.ts: becomes a table with the types that it has, and exactly its values',
  ],
  'An export is compressed with Snappy, in groups of up to 100,000 rows and about 16 MB, of which one is in memory at a time.':
    ['test/features/cli/parquet.slow.test.ts: writes groups of rows that are bounded by their size'],
  'The libraries for it, `hyparquet` and `hyparquet-writer`, are loaded when they are needed.': [
    'test/features/cli/parquet.slow.test.ts: is loaded where such a file is read or written, and nowhere before',
  ],
  'Integers beyond 2^53 in it are refused, unless `--large-integers` says `text` or `round`': [
    'test/features/cli/import-files.slow.test.ts: is refused before anything is written: %s %j %j',
    'test/features/cli/import-files.slow.test.ts: has integers beyond 2^53, which arrive exactly',
  ],
  '`--quotes strict` refuses stray ones such as in `5" disk`, with line and column; `lenient` takes those as text, `none` takes all so':
    [
      'test/features/cli/import-files.slow.test.ts: is refused before anything is written: %s %j %j',
      'test/features/cli/import-files.slow.test.ts: is read as it is: %s %j %j',
    ],
  'Numbers outside of 1973 to 2200 are refused, as `2024` and `20240131` are, unless `--time-unit` says what they count':
    [
      'test/features/cli/import-files.slow.test.ts: is refused before anything is written: %s %j %j',
      'test/features/cli/import-files.slow.test.ts: has numbers for times, in the unit that is named',
    ],
  '`--yes` answers; without it and without a terminal nothing is written, and the exit status is 2.': [
    'test/features/cli/drafts.slow.test.ts: shows the draft and writes nothing where nobody says yes',
    'test/servers/terminal/cli.test.ts: makes a table of a file once somebody has said yes',
  ],
  'it is only an expectation, and a longer value is stored in full': [
    'test/features/cli/drafts.slow.test.ts: has room for longer texts, and loses none of those that are longer still',
  ],
  'A value further down that does not fit is named with its line before anything is made.': [
    'test/features/cli/drafts.slow.test.ts: comes behind a sample only, and is named before anything is made',
  ],
  'Else it is one that has a value in every row of the whole file, and none twice': [
    'test/features/cli/drafts.slow.test.ts: %s %j %s',
    'test/features/cli/drafts.slow.test.ts: is looked for in the whole file, wherever the types come from',
  ],
  'Bytes that are not text cost the row that has them (in UTF-16, all that follows), and so does a unique index.': [
    'test/features/cli/import-files.slow.test.ts: may have bytes that are no text, which costs no other row: %s %#',
    'test/features/cli/import-files.slow.test.ts: are those as well that agree with others in a unique index',
  ],
  'All files are read first, and only if every row is good is anything written': [
    'test/features/cli/import-files.slow.test.ts: are named with their line before anything is written',
    'test/features/cli/imports.slow.test.ts: %j is named, and nothing is imported',
  ],
  'The message says up to which line, and where to go on': [
    'test/features/cli/imports.slow.test.ts: from a pipe leaves the rows before it, and says where to go on',
  ],
  '`--mode insert` refuses rows whose key is in the table; `upsert` replaces them, `update` changes the fields that are given, and `skip-existing` leaves them as they are.':
    [
      'test/features/cli/import-files.slow.test.ts: are skipped, and those that come twice: a second run gives the same state',
      'test/features/cli/imports.slow.test.ts: are refused, replaced or updated',
    ],
  'Text that cannot be parsed is refused, with its place marked below it, and with `--json` as `position`, counted from 1':
    ['test/features/cli/language.slow.test.ts: is refused with the place: %s'],
  'Processes that still have the schema registered see no rows, and [their writes are refused](guide/tables.md#drop-a-table).':
    ['test/features/drop-table/dropping.test.ts: takes no write of a registration from before: %s'],
};
