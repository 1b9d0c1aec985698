/** The command line options for reading files. */
import type { ArgumentsOf } from '../arguments/options.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { parseRenames } from './columns.ts';
import { quoteRules } from './csv-parser.ts';
import { parseDateFormats, timeUnits } from './field-values.ts';
import { encodingNamed, encodingNames } from './encodings.ts';
import { largeIntegerRules } from './json-parser.ts';
import type { InputFile } from './input-files.ts';
import { inputFormatOf, inputFormats } from './row-reader.ts';
import type { ReadOptions } from './row-reader.ts';

interface OneOf<T> {
  readonly choices: T;
  readonly describe: string;
}

interface Flag<D extends boolean> {
  readonly type: 'boolean';
  readonly default: D;
  readonly describe: string;
}

interface Words {
  readonly type: 'string';
  readonly array: true;
  readonly describe: string;
}

// An alias, since interfaces have no index signature.
type ReadingOptions = {
  readonly format: OneOf<typeof inputFormats>;
  readonly encoding: OneOf<typeof encodingNames> & { readonly coerce: typeof encodingNamed };
  readonly delimiter: { readonly type: 'string'; readonly describe: string };
  readonly quotes: OneOf<typeof quoteRules> & { readonly default: 'strict' };
  readonly header: Flag<true>;
  readonly columns: { readonly type: 'string'; readonly describe: string };
  readonly rename: Words;
  readonly 'ignore-extra': Flag<false>;
  readonly null: Words;
  readonly 'date-format': Words;
  readonly 'time-unit': OneOf<typeof timeUnits>;
  readonly 'large-integers': OneOf<typeof largeIntegerRules> & { readonly default: 'refuse' };
  readonly 'scalars-as-text': Flag<false>;
};

export const readingOptions: ReadingOptions = {
  format: { choices: inputFormats, describe: 'Format of the files; default: by the file name, else ndjson' },
  encoding: {
    choices: encodingNames,
    coerce: encodingNamed,
    describe: 'Character encoding; default: by the byte order mark, else utf-8',
  },
  delimiter: {
    type: 'string',
    describe:
      'Separator of CSV fields; \\t is a tab. Default: a comma, or the separator that the first line has instead',
  },
  quotes: {
    choices: quoteRules,
    default: 'strict',
    describe: 'Quotes in CSV: strict refuses stray quotes, lenient reads them as text, none reads all quotes as text',
  },
  header: { type: 'boolean', default: true, describe: 'The first line of CSV names the columns' },
  columns: {
    type: 'string',
    describe: 'Columns to read, separated by commas; with --no-header: the names of the columns, in order',
  },
  rename: { type: 'string', array: true, describe: 'column=field: read a column into this field' },
  'ignore-extra': {
    type: 'boolean',
    default: false,
    describe: 'Leave out columns that have no field of the same name',
  },
  null: { type: 'string', array: true, describe: 'Text without quotes that stands for null in CSV' },
  'date-format': {
    type: 'string',
    array: true,

    describe: 'Format of dates: DD/MM/YYYY, or field=M/D/YYYY for one field; default: ISO 8601',
  },
  'time-unit': {
    choices: timeUnits,
    describe: 'Unit of numbers in timestamp fields; default: ms, and only for the years 1973 to 2200',
  },
  'large-integers': {
    choices: largeIntegerRules,
    default: 'refuse',
    describe: 'Integers beyond 2^53 in json fields: refuse them, keep their digits as text, or round them',
  },
  'scalars-as-text': {
    type: 'boolean',
    default: false,
    describe: 'Accept numbers, true and false from JSON in text fields',
  },
};

export type ReadingArguments = ArgumentsOf<ReadingOptions>;

/** Returns the options for reading each file. `skipsBadBytes`: as in `ReadOptions`. Throws `UsageError`. */
export function readOptionsOf(
  args: ReadingArguments,
  skipsBadBytes: boolean,
): (file: Pick<InputFile, 'path'>) => ReadOptions {
  const { format, encoding, quotes, header: hasHead, null: nulls = [] } = args;
  const delimiter = args.delimiter?.replaceAll('\\t', '\t');
  if (delimiter !== undefined && (delimiter === '' || /["\r\n]/.test(delimiter))) {
    throw new UsageError('--delimiter takes one or more characters, but no quotes and no line ends.');
  }
  const columns = {
    columns: args.columns?.split(',').map((name) => name.trim()),
    renames: parseRenames(args.rename ?? []),
    ignoreExtra: args['ignore-extra'],
  };
  const values = {
    largeIntegers: args['large-integers'],
    timeUnit: args['time-unit'],
    scalarsAsText: args['scalars-as-text'],
  };
  const dates = parseDateFormats(args['date-format'] ?? []);
  return ({ path }) => ({
    format: format ?? inputFormatOf(path) ?? 'ndjson',
    encoding,
    delimiter,
    quotes,
    hasHead,
    nulls,
    columns,
    values,
    dates,
    skipsBadBytes,
  });
}
