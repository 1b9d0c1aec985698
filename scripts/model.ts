/**
 * Explores the models of the protocol (docs/model.md): `npm run model -- --model log --scope large`,
 * `npm run model -- --model log --mutant no-check-after-put`. Without options it runs everything that the tests run.
 * `--write` generates the tables of docs/model.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { catalog } from '../model/catalog.ts';
import type { CatalogEntry } from '../model/catalog.ts';
import { exampleMutant, formatCount, formatTables, runModel } from '../model/report.ts';
import { withPart } from './figures/page-parts.ts';
import type { ModelRun } from '../model/report.ts';

const { values } = parseArgs({
  options: {
    model: { type: 'string' },
    scope: { type: 'string' },
    mutant: { type: 'string' },
    'max-states': { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

const wanted = values.model === undefined ? catalog : catalog.filter(({ name }) => name === values.model);
if (wanted.length === 0)
  throw new RangeError(`There is no model "${values.model}": ${catalog.map((e) => e.name).join(', ')}`);
const maxStates = values['max-states'] === undefined ? Infinity : Number(values['max-states']);

function run(entry: CatalogEntry, scope: string, mutant: string | undefined): ModelRun {
  const startedMs = performance.now();
  const done = runModel(entry, scope, mutant, {
    maxStates,
    onProgress: ({ states, depth, waiting }) => {
      const seconds = (performance.now() - startedMs) / 1000;
      const rate = formatCount(Math.round(states / seconds));
      const memory = (process.memoryUsage().rss / 2 ** 30).toFixed(1);
      console.error(
        `  ${formatCount(states)} states, depth ${depth}, ${formatCount(waiting)} waiting, ` +
          `${seconds.toFixed(0)} s, ${rate} a second, ${memory} GiB`,
      );
    },
  });
  const { result, durationMs, trace } = done;
  const { states, depth, exhausted, violation } = result;
  const outcome = violation === undefined ? (exhausted ? 'exhausted' : 'given up') : `violates ${violation.property}`;
  const what = `${entry.name}, ${scope}${mutant === undefined ? '' : `, ${mutant}`}`;
  const rate = formatCount(Math.round((states / durationMs) * 1000));
  const seconds = (durationMs / 1000).toFixed(2);
  console.log(`${what}: ${outcome}, ${formatCount(states)} states, depth ${depth}, ${seconds} s, ${rate} a second`);
  const isExpected = mutant !== undefined && violation !== undefined;
  if (trace !== undefined && (!isExpected || values.mutant !== undefined)) console.log(`${trace}\n`);
  if (exhausted === (mutant !== undefined) || (mutant === undefined && violation !== undefined)) process.exitCode = 1;
  return done;
}

/** A chosen scope is run without mutants, a chosen mutant in its own scope; by default everything. */
function runsOf(entry: CatalogEntry): ModelRun[] {
  const { scopes, mutants, scopeOf } = entry;
  const { scope, mutant } = values;
  if (mutant !== undefined) {
    const names = mutant === 'all' ? Object.keys(mutants) : Object.keys(mutants).filter((name) => name === mutant);
    return names.map((name) => run(entry, scope ?? scopeOf(name), name));
  }
  if (scope !== undefined) return [run(entry, scope, undefined)];
  return [
    ...scopes.map((name) => run(entry, name, undefined)),
    ...Object.keys(mutants).map((name) => run(entry, scopeOf(name), name)),
  ];
}

const path = new URL('../docs/model.md', import.meta.url);
for (const entry of wanted) {
  const runs = runsOf(entry);
  if (!values.write) continue;
  let page = withPart(readFileSync(path, 'utf8'), entry.name, formatTables(entry, runs));
  const example = runs.find(({ mutant }) => entry.name === exampleMutant.model && mutant === exampleMutant.mutant);
  if (example !== undefined) page = withPart(page, 'a trace', `\`\`\`text\n${example.trace}\n\`\`\``);
  writeFileSync(path, page);
}
