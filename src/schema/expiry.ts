/** Rows that expire: the check of `expireAfter` in a schema, and whether a row has expired. */
import { InvalidSchemaError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { didYouMean, firstUnknown, isNotKnown } from '../base/options.ts';
import { isTimeType } from '../format/stored-schema.ts';
import type { StoredExpiry, StoredField, StoredIndex } from '../format/stored-schema.ts';
import { typeName } from '../format/types.ts';

const names: ReadonlySet<string> = new Set(['field', 'seconds']);

/** Checks `expireAfter` of a definition, and returns it in its stored form. Throws `InvalidSchemaError`. */
export function readExpiry(
  table: string,
  fields: readonly StoredField[],
  indexes: readonly StoredIndex[],
  given: unknown,
): StoredExpiry {
  const refuse = (problem: string): never => {
    throw new InvalidSchemaError(table, `\`expireAfter\` of table '${table}' ${problem}`);
  };
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return refuse(`must be an object { field, seconds }, not ${describeValue(given)}.`);
  }
  const unknown = firstUnknown(given, names);
  if (unknown !== undefined) return refuse(`has a property \`${unknown}\`, which ${isNotKnown(unknown, [...names])}`);
  const { field, seconds } = given as { readonly field: unknown; readonly seconds: unknown };
  const found = fields.find(({ name }) => name === field);
  if (found === undefined) {
    const hint =
      typeof field === 'string'
        ? didYouMean(
            field,
            fields.map(({ name }) => name),
          )
        : '';
    return refuse(`names the field ${describeValue(field)}, which the table does not have${hint || '.'}`);
  }
  if (!isTimeType(found.typeId)) {
    const types = 'a timestamp, or milliseconds since 1970 in an int64, uint64 or float64 field';
    return refuse(`names the field '${found.name}', which is of type ${typeName(found.typeId)}: it takes ${types}.`);
  }
  if (!Number.isSafeInteger(seconds) || (seconds as number) < 0 || (seconds as number) > maxSeconds) {
    return refuse(`takes \`seconds\` from 0 to ${maxSeconds}, an integer, not ${describeValue(seconds)}.`);
  }
  if (
    !indexes.some((index) => index.fields[0] === found.name && index.where === undefined && index.each === undefined)
  ) {
    const fix = `add '${found.name}' to its \`indexes\``;
    return refuse(`names the field '${found.name}', and no index on all rows begins with it: ${fix}.`);
  }
  return { field: found.name, seconds: seconds as number };
}

/** Ten thousand years. */
const maxSeconds = 315_576_000_000;
