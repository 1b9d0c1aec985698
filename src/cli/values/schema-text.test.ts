import { expect, it } from 'vitest';
import { Types } from '../../format/types.ts';
import { describeFields } from './schema-text.ts';

const fields = {
  id: { typeId: Types.uint32 },
  state: { typeId: Types.varchar, required: true, oneOf: ['new', 'old'] },
  seen: { typeId: Types.timestamp },
} as const;

it('describes fields with their rules', () => {
  expect(describeFields({ name: 't', version: 1, fields, primaryKey: 'id' })).toEqual([
    'id uint32',
    'state varchar required (new | old)',
    'seen timestamp',
  ]);
});

it.each([
  [0, 'then'],
  [1, '1 second after it'],
  [90, '90 seconds after it'],
  [120, '2 minutes after it'],
  [3600, '1 hour after it'],
  [5400, '90 minutes after it'],
  [86_400, '1 day after it'],
  [864_000_000, '10,000 days after it'],
])('says of rows that expire %d s after the time in a field: %s', (seconds, text) => {
  const expireAfter = { field: 'seen', seconds };
  const schema = { name: 't', version: 1, fields, primaryKey: 'id', indexes: ['seen'], expireAfter } as const;
  expect(describeFields(schema)[2]).toBe(`seen timestamp (rows expire ${text})`);
});
