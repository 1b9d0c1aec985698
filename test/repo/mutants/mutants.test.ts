/** The mutants fit the sources, and docs/testing.md lists their findings; `npm run mutants` looks for the findings. */
import { existsSync, readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { describe, expect, it } from 'vitest';
import { filesOf, mutate } from './mutant.ts';
import type { Mutant } from './mutant.ts';
import { mutants, mutantTables, readFindings, tableOf } from './mutants.ts';
import { partOf, withPart } from '../../../scripts/figures/page-parts.ts';

const repository = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/testing.md', repository), 'utf8');

describe('mutants', () => {
  it('have a name each', () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  });

  it.each(mutants.map((mutant) => [mutant.name, mutant] as const))('fit the sources: %s', (_, mutant) => {
    for (const file of filesOf(mutant)) {
      const text = readFileSync(new URL(file, repository), 'utf8');
      const mutated = mutate(mutant, file, text);
      expect(mutated).not.toBe(text);
      expect(parseSync(file, mutated).errors).toEqual([]);
    }
    for (const test of mutant.tests ?? []) expect(existsSync(new URL(test, repository)), test).toBe(true);
  });

  it('that fit nowhere, or in two places, are refused', () => {
    const mutant: Mutant = { name: 'm', edits: [{ file: 'a.ts', find: 'one', replace: 'two' }] };
    expect(mutate(mutant, 'a.ts', 'a one')).toBe('a two');
    expect(() => mutate(mutant, 'a.ts', 'a two')).toThrow('a.ts has 0 of');
    expect(() => mutate(mutant, 'a.ts', 'one one')).toThrow('a.ts has 2 of');
    expect(mutate(mutant, 'b.ts', 'one')).toBe('one');
  });
});

describe('docs/testing.md', () => {
  it.each(Object.entries(mutantTables))('lists the findings of the mutants: %s', (name, list) => {
    expect(partOf(page, name)).toBe(tableOf(list, readFindings()));
  });

  it('has a place for each table', () => {
    const [name = ''] = Object.keys(mutantTables);
    expect(partOf(withPart(page, name, '| a |'), name)).toBe('| a |');
    expect(() => partOf(page, 'nothing')).toThrow('no place for the table nothing');
  });

  it('knows of no mutant that is not there', () => {
    const findings = readFindings();
    expect(Object.keys(findings).filter((name) => !mutants.some((mutant) => mutant.name === name))).toEqual([]);
  });
});
