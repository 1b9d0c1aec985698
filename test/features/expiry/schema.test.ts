/** `expireAfter` in a schema: what it takes, and what it refuses. */
import { describe, expect, it } from 'vitest';
import { schemaFormat } from '../../../src/format/stored-schema.ts';
import { Types } from '../../../src/format/types.ts';
import { expiryVersion } from '../../../src/format/version.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import { toDefinition } from '../../../src/schema/stored-definition.ts';
import { isSameShape } from '../../../src/schema/same-shape.ts';
import { shapeOf } from '../../../src/schema/table-shape.ts';

function definition(expireAfter: unknown): object {
  return {
    name: 't',
    version: 1,
    fields: {
      id: { typeId: Types.int32 },
      seen: { typeId: Types.timestamp },
      end: { typeId: Types.int64 },
      name: { typeId: Types.varchar },
      other: { typeId: Types.timestamp },
    },
    primaryKey: 'id',
    indexes: [{ fields: ['seen', 'name'] }, 'end', 'name', { fields: ['other'], where: { name: { not: null } } }],
    expireAfter,
  };
}

describe('expireAfter', () => {
  it.each([
    ['no object', 5, /must be an object \{ field, seconds \}, not 5/],
    ['another property', { field: 'seen', second: 1 }, /has a property `second`/],
    [
      'no field',
      { field: 'sen', seconds: 1 },
      /names the field 'sen', which the table does not have: did you mean seen/,
    ],
    ['another type', { field: 'name', seconds: 1 }, /which is of type varchar/],
    ['no seconds', { field: 'seen' }, /takes `seconds` from 0 to/],
    ['a list', [{ field: 'seen', seconds: 1 }], /must be an object \{ field, seconds \}, not an array/],
    ['negative seconds', { field: 'seen', seconds: -1 }, /takes `seconds` from 0 to/],
    ['a fraction', { field: 'seen', seconds: 0.5 }, /an integer, not 0\.5/],
    ['a partial index', { field: 'other', seconds: 1 }, /no index on all rows begins with it: add 'other'/],
  ])('refuses %s', (_, expireAfter, message) => {
    expect(() => toStoredSchema(definition(expireAfter))).toThrow(message);
  });

  it.each(['seen', 'end'])('takes the field %s, and is read back as it was given', (field) => {
    const stored = toStoredSchema(definition({ field, seconds: 60 }));
    expect(stored.expireAfter).toEqual({ field, seconds: 60 });
    expect(toStoredSchema(toDefinition(stored))).toEqual(stored);
    expect(schemaFormat(stored)).toBe(expiryVersion);
  });

  it('makes another definition where it differs', () => {
    const [one, same, other, none] = [60, 60, 61, undefined].map((seconds) =>
      shapeOf(toStoredSchema(definition(seconds === undefined ? undefined : { field: 'seen', seconds }))),
    );
    expect(
      [same, other, none].map((shape) => shape !== undefined && one !== undefined && isSameShape(one, shape)),
    ).toEqual([true, false, false]);
  });
});
