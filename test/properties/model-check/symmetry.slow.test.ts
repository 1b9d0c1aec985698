/** Taking states that differ in names for one leaves nothing out. */
import { describe, expect, it } from 'vitest';
import { catalog } from '../../../model/catalog.ts';
import { explore } from '../../../model/checker/explore.ts';
import { counterparts } from '../../../model/log/node-symmetry.ts';

describe('the symmetry of nodes', () => {
  it.each(['inserts', 'aborted', 'trimmed'])('halves the states of the scope "%s", and no more', (scope) => {
    const entry = catalog.find(({ name }) => name === 'log');
    const model = entry?.make(scope);
    if (model === undefined) throw new RangeError('There is no such model');
    expect(model.usesSymmetry).toBe(true);
    const half = explore(model);
    model.usesSymmetry = false;
    const all = explore(model);
    expect(half.depth).toBe(all.depth);
    expect(half.states * 2).toBeGreaterThanOrEqual(all.states);
    // Few states are their own counterpart: those in which both nodes have done the same.
    expect(half.states * 2).toBeLessThan(all.states * 1.02);
  });

  it('holds where both nodes do the same, in the same order', () => {
    const scope = (...flushes: readonly (readonly [number, 'set' | 'insert'])[]): number[] | undefined =>
      counterparts({ nodes: 2, slots: 1, flushes: flushes.map(([node, operation]) => ({ node, operation })) });
    expect(scope([0, 'set'], [1, 'set'])).toEqual([1, 0]);
    expect(scope([0, 'set'], [0, 'insert'], [1, 'set'], [1, 'insert'])).toEqual([2, 3, 0, 1]);
    expect(scope([0, 'set'], [1, 'insert'])).toBe(undefined);
    expect(scope([0, 'set'], [0, 'insert'], [1, 'insert'], [1, 'set'])).toBe(undefined);
    expect(scope([0, 'set'], [0, 'set'], [1, 'set'])).toBe(undefined);
  });
});
