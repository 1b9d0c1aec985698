/** Runs models and formats the results: for the terminal, and for the tables of docs/model.md. */
import type { CatalogEntry } from './catalog.ts';
import { explore } from './checker/explore.ts';
import type { Exploration, ExploreOptions } from './checker/explore.ts';
import { formatTrace, traceOf } from './checker/trace.ts';

export interface ModelRun {
  readonly scope: string;
  readonly mutant: string | undefined;
  readonly result: Exploration;
  readonly durationMs: number;
  /** The way to the violation, in words; undefined without one. */
  readonly trace: string | undefined;
  /** Names of actions that the run never made. */
  readonly unused: readonly string[];
}

/** Explores one scope of a model, of a broken variant if `mutant` is given. */
export function runModel(
  entry: CatalogEntry,
  scope: string,
  mutant: string | undefined,
  options: ExploreOptions = {},
): ModelRun {
  const model = entry.make(scope, mutant);
  const startedMs = performance.now();
  let result = explore(model, options);
  if (result.violation !== undefined && model.usesSymmetry) {
    model.usesSymmetry = false;
    result = explore(model, options);
  }
  const durationMs = performance.now() - startedMs;
  const { violation } = result;
  const unused = model.actions.filter((_, index) => result.taken[index] === 0).map(({ name }) => name);
  const trace = violation && `${formatTrace(traceOf(model, result))}\n     ${violation.property}: ${violation.message}`;
  return { scope, mutant, result, durationMs, trace, unused };
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

export const scopeHeading = ['| scope | states | steps between them | depth |', '| --- | --: | --: | --: |'];

/** The line of a correct model's scope in docs/model.md. */
export function scopeRow({ scope, result }: ModelRun): string {
  const { states, transitions, depth } = result;
  return `| \`${scope}\` | ${formatCount(states)} | ${formatCount(transitions)} | ${depth} |`;
}

export const mutantHeading = [
  '| mutant | what is broken | scope | states | steps | found as |',
  '| --- | --- | --- | --: | --: | --- |',
];

/** The line of a mutant in docs/model.md. */
export function mutantRow(entry: CatalogEntry, { scope, mutant = '', result }: ModelRun): string {
  const { states, depth, violation } = result;
  const found = violation?.property ?? 'not found';
  return `| \`${mutant}\` | ${entry.mutants[mutant]} | \`${scope}\` | ${formatCount(states)} | ${depth} | ${found} |`;
}

/** The text between the marks of a model's tables in docs/model.md. */
export function formatTables(entry: CatalogEntry, runs: readonly ModelRun[]): string {
  const correct = runs.filter(({ mutant }) => mutant === undefined);
  const mutants = runs.filter(({ mutant }) => mutant !== undefined);
  return [
    ...scopeHeading,
    ...correct.map(scopeRow),
    '',
    ...mutantHeading,
    ...mutants.map((run) => mutantRow(entry, run)),
  ].join('\n');
}

/** The mutant whose trace docs/model.md shows. */
export const exampleMutant = { model: 'log', mutant: 'no-check-after-put' } as const;
