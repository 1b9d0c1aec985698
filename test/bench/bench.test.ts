/** That the benchmark beside other databases runs, with StoreDb alone, and that its page is that of its figures. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { figuresFile, merged, noFigures, readFigures } from '../../bench/peers/figures.ts';
import type { Figures } from '../../bench/peers/figures.ts';
import { goalTable, pageWith, storeTable } from '../../bench/peers/page.ts';
import { plots } from '../../bench/peers/plots.ts';
import { LocalRounds } from '../../bench/peers/rounds.ts';
import { StoreRounds } from '../../bench/peers/store-rounds.ts';
import { workloads } from '../../bench/peers/workloads.ts';

function docs(name: string): Promise<string> {
  return readFile(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
}

const rows = 2000;
const onStep = (): void => undefined;

describe('the benchmark', () => {
  it('gives StoreDb all of its work in a folder, and finds its answers right', async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'store-db-bench-'));
    onTestFinished(() => rm(root, { recursive: true, force: true }));
    const timing = { rows, rounds: 1, budgetMs: 1, root, onStep };
    const parts = ['load', 'reads', 'writes'] as const;
    const { failures, measurements } = await new LocalRounds({
      ...timing,
      parts,
      contenders: ['StoreDb'],
      only: undefined,
    }).run();
    expect(failures).toEqual([]);
    const names = measurements.map(({ workload }) => workload);
    expect(names).toEqual(['load-bulk', 'load-batches', ...workloads.map(({ name }) => name)]);
    expect(measurements.every(({ values }) => values.length === 1 && (values[0] ?? 0) > 0)).toBe(true);
  });

  it('gives StoreDb all of its work on an object store, and counts requests', async () => {
    const options = { contenders: ['StoreDb'], rows, rounds: 1, delayMs: 1, ycsbMs: 1, updates: 3, onStep };
    const figures = await new StoreRounds(options).run();
    expect(figures.failures).toEqual([]);
    const table = storeTable(figures, rows);
    expect(table?.rows[0]?.slice(1)).toEqual(['3', 'at most 3', 'reached']);
    expect(table?.rows.every((row) => Number(row[1]?.replaceAll(',', '')) > 0)).toBe(true);
  });

  it('tells of a contender that cannot be run', async () => {
    const options = { rows, rounds: 1, budgetMs: 1, root: tmpdir(), onStep, only: undefined };
    const rounds = new LocalRounds({ ...options, parts: ['reads'], contenders: ['nobody'] });
    expect((await rounds.run()).failures).toMatchObject([{ contender: 'nobody', part: 'load' }]);
  });
});

describe('figures', () => {
  const measured = (workload: string, contender: string, value: number): Figures => ({
    ...noFigures(),
    measurements: [{ part: 'reads', rows, workload, contender, values: [1, value, 1e9] }],
  });

  it('are put in the place of older ones of the same kind', () => {
    const old = merged(measured('get', 'StoreDb', 5), measured('get', 'lmdb', 4));
    expect(merged(old, measured('get', 'StoreDb', 6)).measurements).toEqual([
      measured('get', 'StoreDb', 6).measurements[0],
      measured('get', 'lmdb', 4).measurements[0],
    ]);
  });

  it('tell whether a goal is reached', () => {
    const of = (own: number): unknown =>
      goalTable(merged(measured('get', 'StoreDb', own), measured('get', 'lmdb', 100)), rows)?.rows[0]?.slice(1);
    expect(of(120)).toEqual(['lmdb', '1.20', '1.20', 'reached']);
    expect(of(60)).toEqual(['lmdb', '1.20', '0.60', 'missed: 50 %']);
  });
});

describe('the page', () => {
  it('has the tables and plots of the figures beside it', async () => {
    const figures = await readFigures(figuresFile);
    const page = await docs('benchmarks.md');
    expect(pageWith(figures, page)).toBe(page);
    for (const [name, svg] of Object.entries(plots(figures))) {
      expect(await docs(`${name}.svg`)).toBe(svg);
      expect(page).toContain(`](${name}.svg)`);
    }
  });
});
