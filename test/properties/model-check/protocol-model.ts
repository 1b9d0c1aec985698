/** The tests of every model: its scopes are exhausted, its mutants are found, and docs/model.md matches. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catalog } from '../../../model/catalog.ts';
import { exampleMutant, formatTables, runModel } from '../../../model/report.ts';
import { partOf } from '../../../scripts/figures/page-parts.ts';
import type { ModelRun } from '../../../model/report.ts';

const page = readFileSync(new URL('../../../docs/model.md', import.meta.url), 'utf8');

/** Tests of one model, in the order of the tables in docs/model.md. */
export function testModel(name: string): void {
  const entry = catalog.find((other) => other.name === name);
  if (entry === undefined) throw new RangeError(`There is no model "${name}"`);
  const runs: ModelRun[] = [];

  describe(`the model "${name}"`, () => {
    it.each(entry.scopes)('is right in every state of the scope "%s"', { timeout: 180_000 }, (scope) => {
      const run = runModel(entry, scope, undefined);
      runs.push(run);
      expect(run.trace).toBe(undefined);
      expect(run.result.exhausted).toBe(true);
    });

    it('makes every step somewhere', () => {
      const correct = runs.filter(({ mutant }) => mutant === undefined);
      const unused = correct.map((run) => new Set(run.unused));
      const never = [...(unused[0] ?? [])].filter((action) => unused.every((others) => others.has(action)));
      expect(never).toEqual([]);
    });

    it.each(Object.entries(entry.mutants))('finds the mutant "%s": %s', (mutant) => {
      const run = runModel(entry, entry.scopeOf(mutant), mutant);
      runs.push(run);
      expect(run.result.violation).toBeDefined();
      // The way that is told leads to the violation, step by step.
      const told = run.trace?.split('\n').filter((line) => /^ *\d+\. /.test(line));
      expect(told).toHaveLength(run.result.depth);
    });

    it('is described as it is', () => {
      expect(partOf(page, name)).toBe(formatTables(entry, runs));
      if (name !== exampleMutant.model) return;
      const example = runs.find(({ mutant }) => mutant === exampleMutant.mutant);
      expect(partOf(page, 'a trace')).toBe(`\`\`\`text\n${example?.trace}\n\`\`\``);
    });
  });
}
