import { expect, it } from 'vitest';
import { defined } from './options.ts';

it('leaves out what is undefined, and nothing else', () => {
  const after: string | undefined = undefined;
  const options: { after?: string; limit: number; name?: string | null } = defined({ after, limit: 0, name: null });
  expect(Object.entries(options)).toEqual([
    ['limit', 0],
    ['name', null],
  ]);
});
