import type { PagePromises } from '../page-promises.ts';

const validate = 'test/features/validation/validate.test.ts';
const edge = 'test/features/validation/row-schema.test.ts';

export const validation: PagePromises = {
  'A row that is not valid rejects the flush with `ValidationError`, before anything is written.': [
    `${validate}: refuses rows by a schema of %s`,
    `${validate}: stores nothing of a batch that is too large for its commit`,
  ],
  'A field without a value may be left out or null, as the schema wants it.': [
    `${validate}: takes a field without a value as null, and as left out`,
  ],
  'They round nothing: more digits than the field has are an error.': [
    `${edge}: refuses %s with %d digits`,
    `${edge}: is ordered, compared and summed without rounding`,
  ],
};
