/** The models keep to the engine: what each of their steps mirrors is there. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catalog } from '../../../model/catalog.ts';

describe.each(catalog.map((entry) => [entry.name, entry] as const))('the model "%s"', (_, entry) => {
  const { actions } = entry.make(entry.scopes[0] as string);
  const mirrored = actions.flatMap(({ name, mirrors }) => (mirrors === undefined ? [] : [[name, ...mirrors] as const]));

  it.each(mirrored)('mirrors with "%s" the step of %s at "%s"', (_name, file, text) => {
    const url = new URL(`../../../${file}`, import.meta.url);
    expect(existsSync(url)).toBe(true);
    expect(readFileSync(url, 'utf8')).toContain(text);
  });

  it('can be made for each of its scopes and mutants', () => {
    for (const scope of [...entry.scopes, ...entry.largeScopes])
      expect(entry.make(scope).actions).toHaveLength(actions.length);
    const known = new Set([...entry.scopes, ...entry.largeScopes]);
    for (const mutant of Object.keys(entry.mutants)) expect(known).toContain(entry.scopeOf(mutant));
    expect(() => entry.make('no such scope')).toThrow(RangeError);
    expect(() => entry.make(entry.scopes[0] as string, 'no such mutant')).toThrow(RangeError);
  });
});
