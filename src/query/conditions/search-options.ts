/** The options of `query.search()`. */
import { isBytes } from '../../base/brands.ts';
import { InvalidQueryError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { isNotKnown, kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';
import { isWeight } from '../../format/stored-schema.ts';
import { isSameShape } from '../../schema/same-shape.ts';
import type { TableIndex, TableShape } from '../../schema/table-shape.ts';

/** Options of `query.search()`. */
export interface SearchOptions {
  /** Whether the last word also stands for all words that begin with it, as somebody types it. Default false. */
  readonly prefix?: boolean;
  /** Whether words that differ in a letter or two are found too: one from four letters on, two from eight. Default false. */
  readonly fuzzy?: boolean;
  /** Whether a row must have all words, or any of them. Default 'all'. */
  readonly match?: 'all' | 'any';
  /** The names of the fields to search, of the index. Default: all of its fields. */
  readonly fields?: readonly string[];
  /** How much the words of a field count, by its name: numbers above 0. Default: the weights of the index. */
  readonly weights?: { readonly [field: string]: number };
  /**
   * The name of the index on texts. Default: the first one of the table that has the fields, one without `where` before
   * others.
   */
  readonly index?: string;
}

const fieldNames: OptionKind = {
  allowed: 'an array of names of fields',
  accepts: (value) => Array.isArray(value) && value.every((name: unknown) => typeof name === 'string'),
};

const fieldWeights: OptionKind = {
  allowed: 'an object of fields and their weights, which are numbers above 0, such as { title: 3 }',
  accepts: (value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isWeight),
  describe(value) {
    const wrong = isBytes(value) || Array.isArray(value) ? undefined : wrongWeight(value);
    return wrong === undefined
      ? describeValue(value)
      : `an object in which '${wrong[0]}' is ${describeValue(wrong[1])}`;
  },
};

/** Returns the first entry of an object that is no weight; undefined if there is none. */
function wrongWeight(value: unknown): readonly [string, unknown] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([, weight]) => !isWeight(weight));
}

export const searchOptions: OptionTable<SearchOptions> = new OptionTable<SearchOptions>({
  prefix: kinds.flag,
  fuzzy: kinds.flag,
  match: kinds.choice('all', 'any'),
  fields: fieldNames,
  weights: fieldWeights,
  index: kinds.text('the name of an index', (name) => name !== ''),
});

/** A part of a text, in UTF-16 units as `text.slice(start, end)` takes them. */
export interface TextSpan {
  /** The place of its first unit. */
  readonly start: number;
  /** The place behind its last unit. */
  readonly end: number;
}

/** A place in the order of a search. */
export interface RankedPlace {
  readonly score: number;
  /** How many of the found rows there were up to it. */
  readonly rank: number;
  /** The primary key of the row. */
  readonly key: Uint8Array;
}

/** A search as it is written. */
export interface WrittenSearch {
  readonly text: string;
  readonly options: SearchOptions;
  /** Where the rows of a page begin, in a search without orders: behind a place; undefined: with the best row. */
  readonly page?: { placeIn(shape: TableShape): RankedPlace | undefined };
}

/** Checks the arguments of `query.search()`. Throws `InvalidQueryError` or `InvalidOptionError`. */
export function writtenSearch(text: unknown, options: SearchOptions): WrittenSearch {
  if (typeof text !== 'string') {
    throw new InvalidQueryError(`search() takes a text, not ${describeValue(text)}.`);
  }
  const checked = searchOptions.check('query.search()', options);
  const { fields, weights } = checked;
  return {
    text,
    options: { ...checked, ...(fields && { fields: [...fields] }), ...(weights && { weights: { ...weights } }) },
  };
}

/** An index on texts. */
export interface SearchedIndex {
  readonly index: TableIndex;
  /** The weight of each field of the index; 0: the field is not searched. */
  readonly weights: readonly number[];
}

/** The parts of a table's definition in which a search looks for its index. */
type SearchedTable = Pick<TableShape, 'name' | 'indexes'>;

/** Returns the indexes of a table that a search may use: those that are registered, which need not be there yet, and those that are stored. */
export function searchedTable(
  host: { registeredShape?(table: string): TableShape | undefined },
  shape: TableShape,
): SearchedTable {
  const registered = host.registeredShape?.(shape.name);
  if (registered === undefined || registered === shape || !isSameShape(registered, shape)) return shape;
  const more = shape.indexes.filter(({ name }) => !registered.indexes.some((own) => own.name === name));
  return more.length === 0 ? registered : { name: shape.name, indexes: [...registered.indexes, ...more] };
}

/** Returns the index for a search. Throws `InvalidQueryError` if there is none. */
export function requireTextIndex({ name: table, indexes }: SearchedTable, options: SearchOptions): SearchedIndex {
  const { index: wanted, fields, weights: given = {} } = options;
  const all = indexes.filter(({ text }) => text !== undefined);
  if (all.length === 0) {
    throw new InvalidQueryError(
      `search(): table '${table}' has no index on texts. Add one such as { fields: ['title'], text: {} } to its indexes.`,
    );
  }
  const named = wanted === undefined ? all : all.filter(({ name }) => name === wanted);
  if (named.length === 0) {
    const names = all.map(({ name }) => `'${name}'`).join(', ');
    throw new InvalidQueryError(
      `search(): table '${table}' has no index on texts of the name '${wanted}', but ${names}.`,
    );
  }
  const namesOf = (index: TableIndex): string[] => (index.text?.fields ?? []).map(({ name }) => name);
  const fitting = named.filter((one) => fields === undefined || fields.every((field) => namesOf(one).includes(field)));
  const index = fitting.find(({ where }) => where === undefined) ?? fitting[0];
  if (index?.text === undefined) {
    const names = named.map((one) => `'${one.name}' (${namesOf(one).join(', ')})`).join(', ');
    throw new InvalidQueryError(
      `search(): no index on texts of table '${table}' has the fields ${fields?.join(', ')}. It has ${names}.`,
    );
  }
  if (fields?.length === 0)
    throw new InvalidQueryError('search(): `fields` is empty. Leave it out to search all fields.');
  const { text } = index;
  const names = namesOf(index);
  const other = Object.keys(given).find((field) => !names.includes(field));
  if (other !== undefined) {
    throw new InvalidQueryError(
      `search(): \`weights\` has '${other}', which ${isNotKnown(other, names)} Index '${index.name}' is on ${names.join(', ')}.`,
    );
  }
  return {
    index,
    weights: names.map((name, i) => {
      if (fields !== undefined && !fields.includes(name)) return 0;
      return Object.hasOwn(given, name) ? (given[name] as number) : (text.weights[i] as number);
    }),
  };
}
