/** The options by which commands are told how files are to be read. */
import type { InferredOptionTypes } from 'yargs';
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
  readonly requiresArg: true;
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
  format: { choices: inputFormats, describe: 'Default: by the name of the file, else ndjson' },
  encoding: {
    choices: encodingNames,
    coerce: encodingNamed,
    describe: 'Default: by the mark at the beginning, else utf-8',
  },
  delimiter: {
    type: 'string',
    describe: 'What separates fields of CSV; \\t is a tab. Default: a comma, or what the first line has in its place',
  },
  quotes: {
    choices: quoteRules,
    default: 'strict',
    describe: 'Quotes in CSV: strict refuses stray ones, lenient takes those as text, none takes all so',
  },
  header: { type: 'boolean', default: true, describe: 'The first line of CSV names the columns' },
  columns: { type: 'string', describe: 'Columns to take, by commas; without a header: their names, in their order' },
  rename: { type: 'string', array: true, requiresArg: true, describe: 'column=field: which field a column goes to' },
  'ignore-extra': { type: 'boolean', default: false, describe: 'Leave out columns that no field is named like' },
  null: { type: 'string', array: true, requiresArg: true, describe: 'Text without quotes that stands for null in CSV' },
  'date-format': {
    type: 'string',
    array: true,
    requiresArg: true,
    describe: 'How dates are written: DD/MM/YYYY, or field=M/D/YYYY for one field; default: ISO 8601',
  },
  'time-unit': {
    choices: timeUnits,
    describe: 'What numbers in timestamps count; default: ms, of years from 1973 to 2200',
  },
  'large-integers': {
    choices: largeIntegerRules,
    default: 'refuse',
    describe: 'Integers beyond 2^53 within json: refuse them, keep their digits as text, or round',
  },
  'scalars-as-text': {
    type: 'boolean',
    default: false,
    describe: 'Take numbers, true and false in JSON for text where the field is text',
  },
};

export type ReadingArguments = InferredOptionTypes<ReadingOptions>;

/** How each file is read. `skipsBadBytes`: as in `ReadOptions`. Throws `UsageError`. */
export function readOptionsOf(
  args: ReadingArguments,
  skipsBadBytes: boolean,
): (file: Pick<InputFile, 'path'>) => ReadOptions {
  const { format, encoding, quotes, header: hasHead, null: nulls = [] } = args;
  const delimiter = args.delimiter?.replaceAll('\\t', '\t');
  if (delimiter !== undefined && (delimiter === '' || /["\r\n]/.test(delimiter))) {
    throw new UsageError('--delimiter takes one character or several, and neither quotes nor line ends.');
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
