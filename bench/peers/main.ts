/**
 * The benchmark beside other databases: `npm run bench -- --rows 1000000 --rounds 5 --write`. Without options it takes some
 * minutes, prints its figures and changes nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Presets, SingleBar } from 'cli-progress';
import Table from 'cli-table3';
import { openers, storeOpeners } from './contenders.ts';
import { figuresFile, merged, noFigures, readFigures, writeFigures } from './figures.ts';
import type { Figures } from './figures.ts';
import { LocalRounds } from './rounds.ts';
import type { LocalPart } from './rounds.ts';
import { StoreRounds } from './store-rounds.ts';
import { localTable } from './page.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '171075' },
    rounds: { type: 'string', default: '3' },
    parts: { type: 'string', default: 'load,reads,writes' },
    contenders: { type: 'string' },
    workloads: { type: 'string' },
    'budget-ms': { type: 'string', default: '300' },
    'delay-ms': { type: 'string', default: '20' },
    sizes: { type: 'string', default: '1000,10000,100000,1000000' },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

const rows = Number(values.rows);
const rounds = Number(values.rounds);
const parts = values.parts.split(',') as (LocalPart | 'store')[];
const contenders = values.contenders?.split(',');

const machine = { node: process.version, cpu: cpus()[0]?.model.trim() ?? 'unknown', cpus: availableParallelism() };
const date = new Date().toISOString().slice(0, 10);
const runs = parts.map((part) => ({ part, rows: part === 'growth' ? 0 : rows, date, ...machine, rounds }));
const file = values.json ?? (values.write ? figuresFile : undefined);
const old = file === undefined ? noFigures() : await readFigures(file).catch(noFigures);

/** Also in between, so that a run that ends early leaves what it has. */
async function save(figures: Figures): Promise<void> {
  if (file !== undefined) await writeFigures(file, merged(old, { ...figures, runs }));
}

function print(figures: Figures): void {
  for (const { title, head, rows: lines } of [
    ...localTable(figures, rows),
    ...localTable(figures, rows, 'perCpuSecond'),
  ]) {
    console.log(`\n${title}`);
    const colAligns = head.map((_, i) => (i === 0 ? 'left' : 'right') as 'left' | 'right');
    const table = new Table({ head: [...head], style: { head: [], border: [] }, colAligns });
    for (const line of lines) table.push([...line]);
    console.log(table.toString());
  }
  for (const { contender, part, error } of figures.failures) console.log(`${contender}, ${part}: ${error}`);
}

const root = await mkdtemp(path.join(tmpdir(), 'store-db-bench-'));
const bar = new SingleBar(
  { format: '{duration_formatted} | {name}', fps: 4, noTTYOutput: true, notTTYSchedule: 10_000 },
  Presets.legacy,
);
bar.start(1, 0, { name: '' });
try {
  const onStep = (name: string, sofar: Figures): void => {
    bar.update({ name });
    void save(sofar);
  };
  const figures = noFigures();
  const localParts = parts.filter((part) => part !== 'store' && part !== 'growth');
  if (localParts.length > 0) {
    const names = contenders ?? Object.keys(openers);
    const only = values.workloads?.split(',');
    const options = { parts: localParts, contenders: names, only, rows, rounds, root, onStep };
    Object.assign(figures, await new LocalRounds({ ...options, budgetMs: Number(values['budget-ms']) }).run());
  }
  for (const size of parts.includes('growth') ? values.sizes.split(',').map(Number) : []) {
    const options = { parts: ['growth'] as const, contenders: contenders ?? ['StoreDb'], only: ['get', 'ycsb-c'] };
    const timing = { rounds, budgetMs: Number(values['budget-ms']) };
    const grown = await new LocalRounds({ ...options, ...timing, rows: size, root, onStep }).run();
    figures.measurements.push(...grown.measurements);
    figures.failures.push(...grown.failures);
  }
  if (parts.includes('store')) {
    const names = contenders ?? Object.keys(storeOpeners);
    const delayMs = Number(values['delay-ms']);
    const onStore = await new StoreRounds({ contenders: names, rows, rounds, delayMs, onStep }).run();
    figures.measurements.push(...onStore.measurements);
    figures.failures.push(...onStore.failures);
  }
  bar.stop();
  print(figures);
  await save(figures);
} finally {
  bar.stop();
  await rm(root, { recursive: true, force: true });
}
