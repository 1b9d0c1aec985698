/** Describes fields and indexes. */
import { typeName, Types } from '../../format/types.ts';
import { describeConditions } from '../../schema/index-condition.ts';
import { nameOfIndexed } from '../../schema/index-definitions.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { plural } from '../terminal/figures.ts';

/** Describes the fields of a table: name, type, and the rules for values, as in `name varchar required`. */
export function describeFields({ fields, expireAfter }: SchemaDefinition): string[] {
  return Object.entries(fields).map(([name, { typeId, required, oneOf }]) => {
    const rules = `${required === true ? ' required' : ''}${oneOf === undefined ? '' : ` (${oneOf.join(' | ')})`}`;
    const expiry = expireAfter?.field === name ? ` (rows expire ${afterText(expireAfter.seconds)})` : '';
    return `${name} ${typeName(typeId)}${rules}${expiry}`;
  });
}

const units = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
] as const;

/** Describes the time after the time in a field, in the largest unit that needs no fraction: `2 days after it`. */
function afterText(seconds: number): string {
  if (seconds === 0) return 'then';
  const [length, unit] = units.find(([each]) => seconds % each === 0) ?? [1, 'second'];
  return `${plural(seconds / length, unit)} after it`;
}

export function describeIndexes({ indexes = [] }: SchemaDefinition): string {
  if (indexes.length === 0) return 'none';
  return indexes
    .map((index) => {
      if (typeof index === 'string') return index;
      if ('function' in index) {
        const { function: made, name = made, typeId, each = false } = index;
        return `${name} (${each ? 'each element' : typeName(typeId)} of function${name === made ? '' : ` ${made}`})`;
      }
      const { fields, unique = false, where, include, each = false, text } = index;
      const { name = fields.map(nameOfIndexed).join('+') } = index;
      const paths = fields.filter((field) => typeof field === 'object').filter(({ typeId }) => typeId !== Types.json);
      const told = [
        ...paths.map(({ path, typeId }) => `${path === name ? 'path' : path} as ${typeName(typeId)}`),
        ...(unique ? ['unique'] : []),
        ...(each ? ['each element'] : []),
        ...(text === undefined ? [] : [`each word${text.language === undefined ? '' : ` of ${text.language}`}`]),
        ...(where === undefined ? [] : [`where ${describeConditions(where)}`]),
        ...(include === undefined ? [] : [`includes ${include.join(', ')}`]),
      ];
      return told.length === 0 ? name : `${name} (${told.join(' ')})`;
    })
    .join(', ');
}
