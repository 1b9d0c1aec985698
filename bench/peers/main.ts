/**
 * The benchmark beside other databases. Without options it takes some minutes, prints its figures and changes nothing.
 *
 *   --rows 1000000          how many rows; --rounds, how often
 *   --parts load,reads      of load, reads, sorted (rows of a country side by side), writes, store (on an object store)
 *                           and growth (get against the number of rows)
 *   --contenders StoreDb,lmdb    some of those in contenders.ts; --workloads get,ycsb-c    some of those in workloads.ts
 *   --sizes 1000,10000000   the numbers of rows of growth
 *   --budget-ms 300         how long each measurement takes; --delay-ms 20    what each request of the store takes
 *   --json figures.json     keeps the figures in a file, in place of older ones of the same kind
 *   --write                 keeps them in docs/benchmarks.json, and makes docs/benchmarks.md and its plots anew;
 *   --page-only             only that
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
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
import { pageWith, printedTables } from './page.ts';
import { plots } from './plots.ts';
import { sortedWorkloads } from './workloads.ts';

type Part = LocalPart | 'store';
const knownParts: ReadonlySet<Part> = new Set<Part>(['load', 'reads', 'sorted', 'writes', 'growth', 'store']);

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '171075' },
    rounds: { type: 'string', default: '3' },
    parts: { type: 'string', default: 'load,reads,sorted,writes' },
    contenders: { type: 'string' },
    workloads: { type: 'string' },
    'budget-ms': { type: 'string', default: '300' },
    'delay-ms': { type: 'string', default: '20' },
    sizes: { type: 'string', default: '1000,10000,100000,1000000' },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
    'page-only': { type: 'boolean', default: false },
  },
});

if (!import.meta.resolve('store-db').includes('/dist/')) {
  throw new Error('What is to be measured is the package as it is built: run it by `npm run bench`.');
}
const rows = Number(values.rows);
const rounds = Number(values.rounds);
const parts = values.parts.split(',') as Part[];
const contenders = values.contenders?.split(',');
const unknown = [
  ...parts.filter((part) => !knownParts.has(part)),
  ...(contenders ?? []).filter((name) => openers[name] === undefined && storeOpeners[name] === undefined),
];
if (unknown.length > 0 || !(rows > 0) || !(rounds > 0))
  throw new Error(`What is meant by ${unknown.join(', ') || 'rows and rounds'}?`);

const machine = { node: process.version, cpu: cpus()[0]?.model.trim() ?? 'unknown', cpus: availableParallelism() };
const loadAverage = loadavg()[0] ?? 0;
const date = new Date().toISOString().slice(0, 10);
const whoDefault = { store: Object.keys(storeOpeners), growth: ['StoreDb'] } as Readonly<
  Partial<Record<Part, string[]>>
>;
const runs = parts.map((part) => {
  const who = contenders ?? whoDefault[part] ?? Object.keys(openers);
  return { part, rows: part === 'growth' ? 0 : rows, contenders: who, date, ...machine, rounds, loadAverage };
});
const file = values.json ?? (values.write ? figuresFile : undefined);
const old = file === undefined ? noFigures() : await readFigures(file).catch(noFigures);

let saving: Promise<void> = Promise.resolve();
/** Also in between, so that a run that ends early leaves what it has. */
function save(...figures: readonly Figures[]): Promise<void> {
  if (file === undefined) return saving;
  const all = [...figures, { ...noFigures(), runs }].reduce(merged, old);
  saving = saving.then(() => writeFigures(file, all));
  return saving;
}

function print(figures: Figures): void {
  for (const { title, head, rows: lines } of printedTables(figures)) {
    console.log(`\n${title}`);
    const colAligns = head.map((_, i) => (i === 0 ? 'left' : 'right'));
    const table = new Table({ head: [...head], style: { head: [], border: [] }, colAligns });
    for (const line of lines) table.push([...line]);
    console.log(table.toString());
  }
}

/** Makes the page and its plots anew from the file with the figures. */
async function writePage(): Promise<void> {
  const figures = await readFigures(figuresFile);
  const page = new URL('../../docs/benchmarks.md', import.meta.url);
  await writeFile(page, pageWith(figures, await readFile(page, 'utf8')));
  for (const [name, svg] of Object.entries(plots(figures))) {
    await writeFile(new URL(`../../docs/${name}.svg`, import.meta.url), svg);
  }
}

/** All parts that are asked for, one after the other. */
async function measure(root: string, onStep: (name: string, sofar: Figures) => void): Promise<Figures> {
  const budgetMs = Number(values['budget-ms']);
  let figures = noFigures();
  const add = (more: Figures): void => {
    figures = merged(figures, more);
  };
  const step = (name: string, sofar: Figures): void => onStep(name, merged(figures, sofar));
  const local = { rounds, budgetMs, root, onStep: step };
  const localParts = parts.filter((part) => part !== 'store' && part !== 'growth' && part !== 'sorted');
  if (localParts.length > 0) {
    const only = values.workloads?.split(',');
    const names = contenders ?? Object.keys(openers);
    add(await new LocalRounds({ ...local, parts: localParts, contenders: names, only, rows }).run());
  }
  if (parts.includes('sorted')) {
    const options = {
      parts: ['sorted'] as const,
      contenders: contenders ?? Object.keys(openers),
      only: sortedWorkloads,
    };
    add(await new LocalRounds({ ...local, ...options, rows }).run());
  }
  for (const size of parts.includes('growth') ? values.sizes.split(',').map(Number) : []) {
    const options = { parts: ['growth'] as const, contenders: contenders ?? ['StoreDb'], only: ['get', 'ycsb-c'] };
    add(await new LocalRounds({ ...local, ...options, rows: size }).run());
  }
  if (parts.includes('store')) {
    const names = contenders ?? Object.keys(storeOpeners);
    const delayMs = Number(values['delay-ms']);
    add(await new StoreRounds({ contenders: names, rows, rounds, delayMs, onStep: step }).run());
  }
  return figures;
}

async function run(): Promise<void> {
  const root = await mkdtemp(path.join(tmpdir(), 'store-db-bench-'));
  const format = { format: '{duration_formatted} | {name}', fps: 4, noTTYOutput: true, notTTYSchedule: 10_000 };
  const bar = new SingleBar(format, Presets.legacy);
  bar.start(1, 0, { name: '' });
  try {
    const figures = await measure(root, (name, sofar) => {
      bar.update({ name });
      void save(sofar);
    });
    bar.stop();
    print(figures);
    await save(figures);
  } finally {
    bar.stop();
    await rm(root, { recursive: true, force: true });
  }
}

if (!values['page-only']) await run();
if (values.write || values['page-only']) await writePage();
