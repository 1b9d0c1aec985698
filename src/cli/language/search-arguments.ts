/** The options of the command line that search for words, and the search that they ask for. */
import { defined } from '../../base/options.ts';
import { isWeight } from '../../format/stored-schema.ts';
import type { SearchOptions } from '../../query/conditions/search-options.ts';
import type { Query } from '../../query/query.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { fieldOf } from './condition-clauses.ts';
import type { Row } from './condition-clauses.ts';
import { parseNames, parseValues } from './query-syntax.ts';
import { LanguageError } from './tokens.ts';

/** The command line options for the words of a query. */
export const searchOptions = {
  search: {
    type: 'string',
    describe: 'Words to find by the index on texts of the table, the best rows first: \'red "glass of wine" -tea\'',
  },
  in: { type: 'string', describe: 'Fields to search, separated by commas; default: all fields of the index' },
  weights: {
    type: 'string',
    describe: 'How much the words of a field count: "title = 5, body = 0.5"; default: as the index says',
  },
  index: { type: 'string', describe: 'Name of the index on texts to search, where the table has several' },
  any: { type: 'boolean', describe: 'Find rows with any of the words, not only those with all' },
  prefix: { type: 'boolean', describe: 'The last word also stands for words that begin with it' },
  fuzzy: { type: 'boolean', describe: 'Also find words in which a letter or two differ' },
} as const;

export interface SearchArguments {
  readonly search?: string | undefined;
  readonly in?: string | undefined;
  readonly weights?: string | undefined;
  readonly index?: string | undefined;
  readonly any?: boolean | undefined;
  readonly prefix?: boolean | undefined;
  readonly fuzzy?: boolean | undefined;
}

/** Returns the fields that are searched. Throws `LanguageError`. */
function fieldsIn(schema: SchemaDefinition, source: string): readonly string[] {
  return parseNames(source).map((field) => {
    fieldOf(schema, field, source);
    return field.value;
  });
}

/** Returns the weights of fields. Throws `LanguageError`. */
function weightsIn(schema: SchemaDefinition, source: string): NonNullable<SearchOptions['weights']> {
  const weights = new Map<string, number>();
  for (const [field, { value, at }] of parseValues(source, 'its weight')) {
    const name = field.value;
    fieldOf(schema, field, source);
    if (weights.has(name)) throw new LanguageError(`There are two weights of ${name}`, source, field.at);
    const weight = Number(value);
    if (value.trim() === '' || !isWeight(weight)) {
      throw new LanguageError(`The weight of ${name} must be a number above 0, and is ${value}`, source, at);
    }
    weights.set(name, weight);
  }
  return Object.fromEntries(weights);
}

/** Adds a search to a query. Throws `UsageError` if the table has no index for it. */
export function withSearch(query: Query<Row>, schema: SchemaDefinition, options: SearchArguments): Query<Row> {
  const { search, in: fields, weights, index, any = false, prefix = false, fuzzy = false } = options;
  const { name, indexes = [] } = schema;
  if (search === undefined) {
    const isGiven = [fields, weights, index].some((given) => given !== undefined);
    if (isGiven || any || prefix || fuzzy) {
      throw new UsageError('--in, --weights, --index, --any, --prefix and --fuzzy say how to search: add --search.');
    }
    return query;
  }
  const hasTexts = indexes.some((one) => typeof one !== 'string' && 'text' in one && one.text !== undefined);
  if (!hasTexts) {
    throw new UsageError(
      `Table ${name} has no index on texts, which --search needs. Add one to its schema in the application, such as ` +
        "{ fields: ['title'], text: {} }, and start the application.",
    );
  }
  return query.search(search, {
    prefix,
    fuzzy,
    match: any ? 'any' : 'all',
    ...(fields !== undefined && { fields: fieldsIn(schema, fields) }),
    ...(weights !== undefined && { weights: weightsIn(schema, weights) }),
    ...defined({ index }),
  });
}
