/** The tables of docs/benchmarks.md that compare with others. */
import { withPart } from '../../scripts/figures/page-parts.ts';
import { markdownOf } from '../../scripts/figures/tables.ts';
import type { FigureTable } from '../../scripts/figures/tables.ts';
import { figuresOf, medianIn, medianOf, nodeMajorOf } from './figures.ts';
import type { Figures, Measurement } from './figures.ts';
import { limitName } from './contenders.ts';
import { goals, storeFigures } from './goals.ts';
import type { StoreFigure } from './goals.ts';
import { sortedName, sortedWorkloads, workloads } from './workloads.ts';

export const workloadTitles: ReadonlyMap<string, string> = new Map([
  ...workloads.flatMap(({ name, title, unit }) => {
    const own = [name, `${title}, ${unit}/s`] as const;
    return sortedWorkloads.includes(name) ? [own, [sortedName(name), `${own[1]}, side by side`] as const] : [own];
  }),
  ['load-batches', 'load in batches of 10,000, rows/s'],
  ['load-bulk', 'load in bulk, sorted, rows/s'],
]);

function count(value: number | undefined): string {
  if (value === undefined) return '';
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

function distinct<T>(values: Iterable<T>): T[] {
  return [...new Set(values)];
}

function measuredAt(figures: Figures, rows: number): Measurement[] {
  return figures.measurements.filter(
    (one) => one.rows === rows && one.part !== 'growth' && workloadTitles.has(one.workload),
  );
}

/** Numbers of rows at which contenders were compared in folders, the one of the goals first. */
export function comparedRows({ measurements }: Figures): number[] {
  const local = measurements.filter(({ part }) => part !== 'store' && part !== 'growth');
  const rows = distinct(local.map((one) => one.rows)).toSorted((a, b) => b - a);
  return rows.includes(1_000_000) ? [1_000_000, ...rows.filter((one) => one !== 1_000_000)] : rows;
}

/** The major versions of Node.js that compared contenders in folders with so many rows. */
export function nodeMajorsAt(figures: Figures, rows: number): number[] {
  return distinct(
    measuredAt(figures, rows)
      .filter(({ part }) => part !== 'store')
      .map(nodeMajorOf),
  ).toSorted((a, b) => a - b);
}

/** A table of the figures of each version of Node.js. */
function byNode(
  figures: Figures,
  rows: number,
  tableOf: (figures: Figures, rows: number) => FigureTable | undefined,
): (FigureTable | undefined)[] {
  return nodeMajorsAt(figures, rows).map((nodeMajor) => {
    const table = tableOf(figuresOf(figures, nodeMajor), rows);
    if (table === undefined) return undefined;
    const { name, title, head, rows: lines } = table;
    return { name, title: `${title}, Node.js ${nodeMajor}`, head, rows: lines };
  });
}

/**
 * The work in which another database of the goals is faster, the largest difference first. The other databases take part in other runs,
 * when the machine may have been faster or slower.
 */
export function slowerTable(figures: Figures, rows: number): FigureTable | undefined {
  const contenders = distinct(goals.map(({ contender }) => contender));
  const slower = nodeMajorsAt(figures, rows).flatMap((nodeMajor) => {
    const measured = figuresOf(figures, nodeMajor);
    return [...workloadTitles].flatMap(([workload, title]) => {
      const own = medianIn(measured, rows, workload, 'StoreDb');
      if (own === undefined) return [];
      return contenders.flatMap((contender) => {
        const other = medianIn(measured, rows, workload, contender);
        if (other === undefined || own >= other) return [];
        return [{ ratio: own / other, cells: [title, contender, String(nodeMajor), (own / other).toFixed(2)] }];
      });
    });
  });
  if (slower.length === 0) return undefined;
  const title = `Where StoreDb is slower, ${rows.toLocaleString('en-US')} rows`;
  const lines = slower.toSorted((a, b) => a.ratio - b.ratio).map(({ cells }) => cells);
  return { name: 'slower', title, head: ['Work', 'Faster', 'Node.js', 'Ratio'], rows: lines };
}

/** Units a second, or a second of CPU time. */
export function localTable(
  figures: Figures,
  rows: number,
  of: 'values' | 'perCpuSecond' = 'values',
): FigureTable | undefined {
  const measured = measuredAt(figures, rows);
  const contenders = distinct(measured.map(({ contender }) => contender));
  const lines = [...workloadTitles].flatMap(([workload, title]) => {
    if (!measured.some((one) => one.workload === workload)) return [];
    return [[title, ...contenders.map((name) => count(medianIn(figures, rows, workload, name, of)))]];
  });
  if (lines.length === 0) return undefined;
  const title = `${rows.toLocaleString('en-US')} rows${of === 'values' ? '' : ', a second of CPU time'}`;
  return { name: 'local', title, head: ['Work', ...contenders], rows: lines };
}

/** How far a goal was reached: 1 is just so. */
export interface Reached {
  readonly workload: string;
  readonly contender: string;
  readonly goal: number;
  readonly ratio: number;
  /** What could be reached by plain JavaScript in memory, likewise. */
  readonly limit: number | undefined;
}

export function reachedGoals(figures: Figures, rows: number, of: 'values' | 'perCpuSecond' = 'values'): Reached[] {
  return goals.flatMap(({ workload, contender, ratio: goal }) => {
    const own = medianIn(figures, rows, workload, 'StoreDb', of);
    const other = medianIn(figures, rows, workload, contender, of);
    if (own === undefined || other === undefined) return [];
    const limit = medianIn(figures, rows, workload, limitName, of);
    return [{ workload, contender, goal, ratio: own / other, limit: limit && limit / other }];
  });
}

export function goalTable(figures: Figures, rows: number): FigureTable | undefined {
  const byCpu = new Map(
    reachedGoals(figures, rows, 'perCpuSecond').map(({ workload, contender, ratio }) => [
      `${workload} ${contender}`,
      ratio.toFixed(2),
    ]),
  );
  const lines = reachedGoals(figures, rows).map(({ workload, contender, goal, ratio, limit }) => [
    workloadTitles.get(workload) ?? workload,
    contender,
    goal.toFixed(2),
    ratio.toFixed(2),
    byCpu.get(`${workload} ${contender}`) ?? '',
    limit?.toFixed(2) ?? '',
    ratio >= goal ? 'reached' : `missed: ${Math.min(99, Math.round((100 * ratio) / goal))} %`,
  ]);
  if (lines.length === 0) return undefined;
  const title = `Goals at ${rows.toLocaleString('en-US')} rows`;
  return { name: 'goals', title, head: ['Work', 'Beside', 'Goal', 'Ratio', 'By CPU', 'Limit', 'Outcome'], rows: lines };
}

function storeOutcome({ most, least }: StoreFigure, own: number | undefined): [goal: string, outcome: string] {
  const goal = most === undefined ? `at least ${count(least)}` : `at most ${most}`;
  if (own === undefined) return [goal, ''];
  return [goal, own <= (most ?? Infinity) && own >= (least ?? 0) ? 'reached' : 'missed'];
}

export function storeTable(figures: Figures, rows: number): FigureTable | undefined {
  const measured = figures.measurements.filter((one) => one.part === 'store' && one.rows === rows);
  const contenders = distinct(measured.map(({ contender }) => contender));
  if (contenders.length === 0) return undefined;
  const lines = storeFigures.map((figure): string[] => {
    const of = (contender: string): number | undefined => medianIn(figures, rows, figure.workload, contender);
    const values = contenders.map((name) => count(of(name)));
    return [figure.title].concat(values, storeOutcome(figure, of('StoreDb')));
  });
  const title = `On an object store, ${rows.toLocaleString('en-US')} rows`;
  return { name: 'store', title, head: ['Work', ...contenders, 'Goal', 'Outcome'], rows: lines };
}

export function growthTable({ measurements }: Figures): FigureTable | undefined {
  const grown = measurements.filter(({ part }) => part === 'growth').toSorted((a, b) => a.rows - b.rows);
  const sizes = distinct(grown.map(({ rows }) => rows));
  if (sizes.length === 0) return undefined;
  const of = (workload: string, rows: number, key: 'values' | 'perCpuSecond'): string => {
    const values = grown.find((one) => one.workload === workload && one.rows === rows)?.[key];
    return values === undefined ? '' : (1e6 / medianOf(values)).toFixed(2);
  };
  const lines = sizes.map((rows) => [
    rows.toLocaleString('en-US'),
    of('get', rows, 'values'),
    of('get', rows, 'perCpuSecond'),
    of('ycsb-c', rows, 'values'),
    of('ycsb-c', rows, 'perCpuSecond'),
  ]);
  const head = ['Rows', 'Any key, µs', 'CPU, µs', 'Popular keys, µs', 'CPU, µs'];
  return { name: 'growth', title: 'A get against the number of rows', head, rows: lines };
}

function failureTable({ failures }: Figures): FigureTable {
  const lines = failures.map(({ contender, part, rows, error }) => [
    contender,
    part,
    rows.toLocaleString('en-US'),
    error.replaceAll('|', '\\|'),
  ]);
  return { name: 'failures', title: 'What did not work', head: ['Who', 'Part', 'Rows', 'Error'], rows: lines };
}

function runTable({ runs }: Figures): FigureTable {
  const lines = runs.map(({ part, rows, contenders, date, node, cpu, cpus, rounds, loadAverage }) => [
    part,
    rows === 0 ? 'each' : rows.toLocaleString('en-US'),
    contenders.join(', '),
    String(rounds),
    date,
    `Node.js ${node.slice(1)}, ${cpu}, ${cpus} CPUs`,
    loadAverage.toFixed(1),
  ]);
  const head = ['Part', 'Rows', 'Who', 'Rounds', 'Date', 'Machine', 'Load before'];
  return { name: 'runs', title: 'Runs', head, rows: lines };
}

/** What is printed behind a run. */
export function printedTables(figures: Figures): FigureTable[] {
  const { measurements } = figures;
  const stored = distinct(measurements.filter(({ part }) => part === 'store').map(({ rows }) => rows));
  const list = [
    ...comparedRows(figures).flatMap((rows) =>
      byNode(figures, rows, localTable).concat(
        byNode(figures, rows, (one, size) => localTable(one, size, 'perCpuSecond')),
        slowerTable(figures, rows),
        byNode(figures, rows, goalTable),
      ),
    ),
    ...stored.map((rows) => storeTable(figures, rows)),
    growthTable(figures),
    figures.failures.length === 0 ? undefined : failureTable(figures),
  ];
  return list.filter((table) => table !== undefined);
}

/** The page with its tables made anew from the figures. */
export function pageWith(figures: Figures, text: string): string {
  const stored = distinct(figures.measurements.filter(({ part }) => part === 'store').map(({ rows }) => rows));
  const parts: Readonly<Record<string, readonly (FigureTable | undefined)[]>> = {
    slower: [slowerTable(figures, comparedRows(figures)[0] ?? 0)],
    goals: byNode(figures, comparedRows(figures)[0] ?? 0, goalTable),
    local: comparedRows(figures).flatMap((rows) => byNode(figures, rows, localTable)),
    store: stored.map((rows) => storeTable(figures, rows)),
    growth: [growthTable(figures)],
    failures: figures.failures.length === 0 ? [] : [failureTable(figures)],
    runs: [runTable(figures)],
  };
  return Object.entries(parts).reduce((sofar, [name, tables]) => {
    const present = tables.filter((table) => table !== undefined);
    const written = present.map((table) => (present.length > 1 ? `${table.title}:\n\n` : '') + markdownOf(table));
    return withPart(sofar, name, written.length === 0 ? 'Nothing.' : written.join('\n\n'));
  }, text);
}
