/** Describes fields and indexes. */
import { typeName, Types } from '../../format/types.ts';
import { describeConditions } from '../../schema/index-condition.ts';
import { nameOfIndexed } from '../../schema/index-definitions.ts';
import type { FieldDefinition, SchemaDefinition } from '../../schema/schema.ts';

/** Describes a field: its name, its type, and the rules for its values, as in `name varchar required`. */
export function describeField(name: string, { typeId, required, oneOf }: FieldDefinition): string {
  const rules = `${required === true ? ' required' : ''}${oneOf === undefined ? '' : ` (${oneOf.join(' | ')})`}`;
  return `${name} ${typeName(typeId)}${rules}`;
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
