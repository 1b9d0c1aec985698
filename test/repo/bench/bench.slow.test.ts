/** That the benchmark beside other databases runs, with StoreDb alone, and that its page is that of its figures. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { figuresFile, merged, noFigures, readFigures } from '../../../bench/peers/figures.ts';
import type { Figures } from '../../../bench/peers/figures.ts';
import { goalTable, pageWith, slowerTable, storeTable } from '../../../bench/peers/page.ts';
import { limitedWorkloads } from '../../../bench/peers/plain-memory.ts';
import { plots } from '../../../bench/peers/plots.ts';
import { LocalRounds } from '../../../bench/peers/rounds.ts';
import { StoreRounds } from '../../../bench/peers/store-rounds.ts';
import { workloads } from '../../../bench/peers/workloads.ts';

function docs(name: string): Promise<string> {
  return readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
}

const rows = 2000;
const onStep = (): void => undefined;
/** Several processes are started, one after the other: on a busy machine that takes its time. */
const timeoutMs = 240_000;

describe('the benchmark', () => {
  it('runs all of the work on StoreDb, checks its answers, and names databases that cannot be run, and the bottleneck', {
    timeout: timeoutMs,
  }, async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'store-db-bench-'));
    onTestFinished(() => rm(root, { recursive: true, force: true }));
    const timing = { rows, rounds: 1, budgetMs: 1, root, onStep };
    const parts = ['load', 'reads', 'writes'] as const;
    const { failures, measurements } = await new LocalRounds({
      ...timing,
      parts,
      contenders: ['StoreDb', 'nobody', 'limit'],
      only: undefined,
    }).run();
    expect(failures).toMatchObject([
      { contender: 'nobody', part: 'load' },
      { contender: 'nobody', part: 'load' },
    ]);
    const worksOf = (who: string): string[] => {
      return measurements.filter(({ contender }) => contender === who).map(({ workload }) => workload);
    };
    const all = ['load-bulk', 'load-batches', ...workloads.map(({ name }) => name)];
    expect(worksOf('StoreDb')).toEqual(all);
    expect(worksOf('limit')).toEqual(all.filter((name) => limitedWorkloads.includes(name)));
    expect(measurements.every(({ values }) => values.length === 1 && (values[0] ?? 0) > 0)).toBe(true);
  });
});

describe('the benchmark on an object store', () => {
  it('leaves out who would take too long, and says why', { timeout: timeoutMs }, async () => {
    const { failures, measurements } = await new StoreRounds({
      contenders: ['s3db.js'],
      rows: 20_000,
      rounds: 1,
      delayMs: 1,
      onStep,
    }).run();
    expect(failures).toMatchObject([{ contender: 's3db.js', part: 'store', rows: 20_000 }]);
    expect(failures[0]?.error).toContain('left out: ');
    expect(measurements.filter(({ contender }) => contender === 's3db.js')).toEqual([]);
  });
});

describe('figures', () => {
  const measured = (workload: string, contender: string, value: number, nodeMajor = 20): Figures => ({
    ...noFigures(),
    measurements: [{ part: 'reads', rows, workload, contender, nodeMajor, values: [1, value, 1e9] }],
  });

  it('are put in the place of older ones of the same kind', () => {
    const old = merged(measured('get', 'StoreDb', 5), measured('get', 'lmdb', 4));
    expect(merged(old, measured('get', 'StoreDb', 6)).measurements).toEqual([
      measured('get', 'StoreDb', 6).measurements[0],
      measured('get', 'lmdb', 4).measurements[0],
    ]);
  });

  it('say whether a goal is reached', () => {
    const of = (own: number): unknown =>
      goalTable(merged(measured('get', 'StoreDb', own), measured('get', 'lmdb', 100)), rows)?.rows[0]?.slice(1);
    expect(of(130)).toEqual(['lmdb', '1.30', '1.30', '', '', 'reached']);
    expect(of(65)).toEqual(['lmdb', '1.30', '0.65', '', '', 'missed: 50 %']);
    const all = [measured('get', 'StoreDb', 65), measured('get', 'lmdb', 100), measured('get', 'limit', 250)];
    expect(goalTable(all.reduce(merged), rows)?.rows[0]?.slice(2)).toEqual([
      '1.30',
      '0.65',
      '',
      '2.50',
      'missed: 50 %',
    ]);
  });

  it('say where another database is faster, the largest difference first, for each version of Node.js', () => {
    const all = [
      measured('get', 'StoreDb', 50),
      measured('get', 'lmdb', 100),
      measured('get', 'limit', 1000),
      measured('commit', 'StoreDb', 10),
      measured('commit', 'lmdb', 100),
      measured('ycsb-c', 'StoreDb', 10),
      measured('ycsb-c', 'lmdb', 9),
    ];
    const newer = [measured('get', 'StoreDb', 90, 24), measured('get', 'lmdb', 100, 24)];
    const figures = [...all, ...newer].reduce(merged);
    expect(slowerTable(figures, rows)?.rows).toEqual([
      ['durable update of one row, one after the other, ops/s', 'lmdb', '20', '0.10'],
      ['get by key, ops/s', 'lmdb', '20', '0.50'],
      ['get by key, ops/s', 'lmdb', '24', '0.90'],
    ]);
    expect(slowerTable(measured('get', 'StoreDb', 50), rows)).toBeUndefined();
  });

  it('say whether a limit on an object store is kept', () => {
    const of = (workload: string, value: number): unknown => {
      const one = { part: 'store', rows, workload, contender: 'StoreDb', values: [value] } as const;
      const lines = storeTable({ ...noFigures(), measurements: [one] }, rows)?.rows;
      return lines?.find(([, figure]) => figure !== '')?.slice(1);
    };
    expect(of('store-open-requests', 3)).toEqual(['3', 'at most 3', 'reached']);
    expect(of('store-open-requests', 4)).toEqual(['4', 'at most 3', 'missed']);
    expect(of('store-ycsb-b', 15_000)).toEqual(['15,000', 'at least 15,000', 'reached']);
    expect(of('store-ycsb-b', 14_999)).toEqual(['14,999', 'at least 15,000', 'missed']);
  });
});

describe('the page', () => {
  it('has the tables and plots of its figures', async () => {
    const figures = await readFigures(figuresFile);
    const page = await docs('benchmarks.md');
    expect(pageWith(figures, page)).toBe(page);
    for (const [name, svg] of Object.entries(plots(figures))) {
      expect(await docs(`${name}.svg`)).toBe(svg);
      expect(page).toContain(`](${name}.svg)`);
    }
  });
});
