/**
 * Shows that mistakes in the engine are noticed: `npm run mutants`. Each mutant must be found by one of 500 seeds of the
 * simulator (`--seeds`, from `--seed` on), or by the tests that it names; if one survives, the run fails. The seed that found it last is
 * tried first, except with `--all-seeds`. `--only` takes a part of the names, `--unknown` mutants without a known seed.
 * `--part 2/6` takes, of those that tests find, every sixth, from the third on.
 * `--update` writes what is found to test/repo/mutants/findings.json and docs/testing.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { MutantHunt } from '../test/repo/mutants/mutant-hunt.ts';
import type { Verdict } from '../test/repo/mutants/mutant-hunt.ts';
import type { Mutant } from '../test/repo/mutants/mutant.ts';
import { findingsFile, mutants, mutantTables, readFindings, tableOf } from '../test/repo/mutants/mutants.ts';
import { withPart } from './figures/page-parts.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '500' },
    jobs: { type: 'string', default: `${availableParallelism()}` },
    update: { type: 'boolean', default: false },
    unknown: { type: 'boolean', default: false },
    part: { type: 'string', default: '0/1' },
    'all-seeds': { type: 'boolean', default: false },
  },
});

const [part, parts] = values.part.split('/').map(Number) as [number, number];
if (!(part < parts)) throw new Error(`--part takes which of how many, as in 2/6, and not ${values.part}.`);
const findings = new Map(Object.entries(readFindings()));
const chosen = mutants
  .filter(({ name }) => name.includes(values.only))
  .filter(({ tests }, i) => tests === undefined || i % parts === part)
  .filter(({ name, tests }) => !values.unknown || (tests === undefined && !findings.has(name)));
const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => Number(values.seed) + i);

async function find(hunt: MutantHunt, mutant: Mutant): Promise<Verdict> {
  if (mutant.tests !== undefined) return hunt.byTests(mutant);
  const known = findings.get(mutant.name)?.seed;
  const first = values['all-seeds'] || known === undefined ? [] : [known];
  return hunt.bySeeds(mutant, new Set([...first, ...seeds]), 1);
}

/** Writes a finding at once: a run over all seeds of all mutants takes long, and must not begin again after an interruption. */
function note({ name }: Mutant, found: Verdict): void {
  if (found === undefined || found.seed === 0) findings.delete(name);
  else findings.set(name, found);
  const names = mutants.map((mutant) => mutant.name).filter((each) => findings.has(each));
  const sorted = Object.fromEntries(names.map((each) => [each, findings.get(each)]));
  writeFileSync(findingsFile, `${JSON.stringify(sorted, undefined, 2)}\n`);
}

const survivors: string[] = [];
const startedMs = performance.now();
const hunt = await MutantHunt.begin(chosen);
try {
  const left = chosen.values();
  const work = async (): Promise<void> => {
    for (const mutant of left) {
      const beganMs = performance.now();
      const found = await find(hunt, mutant);
      const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
      const how =
        found === undefined ? 'SURVIVES' : `${found.seed === 0 ? 'tests' : `seed ${found.seed}`}: ${found.as}`;
      console.log(`${mutant.name}: ${how} (${seconds} s)`);
      if (found === undefined) survivors.push(mutant.name);
      if (values.update) note(mutant, found);
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
} finally {
  hunt.end();
}
if (values.update) {
  const page = new URL('../docs/testing.md', import.meta.url);
  let text = readFileSync(page, 'utf8');
  for (const [name, list] of Object.entries(mutantTables)) text = withPart(text, name, tableOf(list, readFindings()));
  writeFileSync(page, text);
}
const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
console.log(`${chosen.length} mutants, ${survivors.length} survive: ${seconds} s`);
for (const name of survivors) console.error(`survives: ${name}`);
process.exitCode = survivors.length > 0 ? 1 : 0;
