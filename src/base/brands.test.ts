import { expect, it } from 'vitest';
import { andThen } from './brands.ts';

it('goes on at once with a value, and later with the value of a promise', async () => {
  expect(andThen(1, (value) => value + 1)).toBe(2);
  const late = andThen(Promise.resolve(1), (value: number) => value + 1);
  expect(late).toBeInstanceOf(Promise);
  expect(await late).toBe(2);
  const failed = andThen(Promise.reject<number>(new Error('no')), (value: number) => value + 1);
  await expect(failed).rejects.toThrow('no');
});
