/**
 * Searches in real text beside FTS5 of SQLite and MiniSearch: `npm run bench:search [-- --rows 1000000 --contenders StoreDb,FTS5]`.
 * Each contender has a process of its own. Rounds are interleaved; the tables show medians of rounds, in time of the processor, and
 * medians of the ratios of a round. The peers are those of `npm run bench`.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { loadAnalyzer } from '../../src/search/analyzer.ts';
import { Child } from '../peers/child.ts';
import type { ContenderName } from './contenders.ts';
import { openers } from './contenders.ts';
import type { Cold } from './cold.ts';
import { searches } from './searches.ts';
import { articles } from './texts.ts';
import type { Built, Request, Searched, Value } from './worker.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    contenders: { type: 'string', default: 'StoreDb,FTS5,MiniSearch' },
    rounds: { type: 'string', default: '9' },
    /** How long a search is repeated in a round. */
    budgetMs: { type: 'string', default: '150' },
  },
});

const rows = Number(values.rows);
const names = values.contenders.split(',').filter((name): name is ContenderName => name in openers);
const folder = mkdtempSync(path.join(tmpdir(), 'store-db-search-'));

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function line(cells: readonly (string | number)[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

function shown(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US');
}

let textBytes = 0;
for (const { title, body } of articles(rows)) textBytes += Buffer.byteLength(title) + Buffer.byteLength(body);

/** Measures what it takes to make the words of the texts, in nanoseconds a word. */
async function wordCost(): Promise<void> {
  const analyzer = await loadAnalyzer('en');
  const texts = [...articles(Math.min(rows, 100_000))].flatMap(({ title, body }) => [title, body]);
  const costs: number[] = [];
  for (let round = 0; round < 5; round++) {
    const started = process.cpuUsage();
    let words = 0;
    for (const text of texts) {
      analyzer.eachWord(text, () => {
        words++;
      });
    }
    const { user, system } = process.cpuUsage(started);
    costs.push(((user + system) * 1000) / words);
  }
  console.log(`Words of English, with their stems: ${shown(median(costs))} ns each.\n`);
}

const children = new Map<ContenderName, Child<Request, Value>>();

async function build(): Promise<void> {
  line(['', 'Build, s of CPU', 'Index, MB', 'Index / text', 'Memory, MB']);
  line(['---', '---:', '---:', '---:', '---:']);
  for (const name of names) {
    const place = path.join(folder, name);
    mkdirSync(place);
    const child = new Child<Request, Value>('../search/worker.ts', [name, place]);
    children.set(name, child);
    const { cpuSeconds, memoryBytes } = (await child.ask({ kind: 'build', rows })) as Built;
    const bytes = (await child.ask({ kind: 'indexBytes', rows })) as number | undefined;
    const size = bytes === undefined ? ['', ''] : [shown(bytes / 1e6), shown(bytes / textBytes)];
    line([name, shown(cpuSeconds), ...size, shown(memoryBytes / 1e6)]);
  }
  console.log(`\n${rows} rows, ${shown(textBytes / 1e6)} MB of text.\n`);
}

/** Runs all searches for a while, so that their code is compiled and their blocks are in memory. */
async function warmUp(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (const search of searches.keys()) {
      for (const child of children.values()) await child.ask({ kind: 'search', search, budgetMs: 200 });
    }
  }
}

async function measure(): Promise<void> {
  const others = names.filter((name) => name !== 'StoreDb');
  line([
    'Search',
    ...names.map((name) => `${name}, µs`),
    ...others.map((name) => `StoreDb / ${name}`),
    'Same rows as FTS5',
  ]);
  line(['---', ...names.map(() => '---:'), ...others.map(() => '---:'), '---:']);
  for (const [i, { title, text }] of searches.entries()) {
    const found = new Map(names.map((name) => [name, [] as Searched[]]));
    for (let round = 0; round <= Number(values.rounds); round++) {
      for (const [name, child] of children) {
        const request = { kind: 'search', search: i, budgetMs: Number(values.budgetMs) } as const;
        const one = (await child.ask(request)) as Searched;
        // The first round warms up.
        if (round > 0) found.get(name)?.push(one);
      }
    }
    const all = (name: ContenderName): Searched[] => found.get(name) ?? [];
    const ids = all('StoreDb')[0]?.ids ?? [];
    const same = ids.filter((id) => all('FTS5')[0]?.ids.includes(id)).length;
    line([
      `${title}: ${text}`,
      ...names.map((name) => shown(median(all(name).map(({ micros }) => micros)))),
      ...others.map((name) => {
        const ratios = all(name).map(({ micros }, round) => (all('StoreDb')[round]?.micros ?? Number.NaN) / micros);
        return shown(median(ratios));
      }),
      `${same} of ${ids.length}`,
    ]);
  }
}

async function measureCold(child: Child<Request, Value>): Promise<void> {
  console.log('');
  line(['Search, cold', 'Requests', 'Rounds']);
  line(['---', '---:', '---:']);
  for (const [i, { title, text }] of searches.entries()) {
    const { requests, rounds } = (await child.ask({ kind: 'cold', search: i })) as Cold;
    line([`${title}: ${text}`, requests, shown(rounds)]);
  }
}

try {
  await wordCost();
  await build();
  await warmUp();
  await measure();
  const own = children.get('StoreDb');
  if (own !== undefined) await measureCold(own);
  for (const child of children.values()) await child.ask({ kind: 'close' });
} finally {
  for (const child of children.values()) child.kill();
  rmSync(folder, { recursive: true, force: true });
}
