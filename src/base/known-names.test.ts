import { describe, expect, it } from 'vitest';
import { didYouMean, nearestName } from './options.ts';

describe('the nearest known name', () => {
  const known = ['name', 'version', 'fields', 'primaryKey', 'indexes', 'migrate'];
  it.each([
    ['indexs', 'indexes'],
    ['index', 'indexes'],
    ['primarykey', 'primaryKey'],
    ['PRIMARYKEY', 'primaryKey'],
    ['primayrKey', 'primaryKey'],
    ['feilds', 'fields'],
    ['nam', 'name'],
    ['naem', 'name'],
    ['colour', undefined],
    ['', undefined],
    ['x', undefined],
    ['n'.repeat(100_000), undefined],
  ])('to %s is %s', (written, meant) => {
    expect(nearestName(written, known)).toBe(meant);
  });

  it('is given where there is one', () => {
    expect(didYouMean('indexs', known)).toBe(': did you mean indexes?');
    expect(didYouMean('colour', known)).toBe('');
  });
});
