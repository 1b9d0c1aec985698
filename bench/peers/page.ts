/** The tables of docs/benchmarks.md that compare with others. */
import { medianIn } from './figures.ts';
import type { Figures } from './figures.ts';
import { goals } from './goals.ts';
import { workloads } from './workloads.ts';

export interface FigureTable {
  readonly name: string;
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const titles = new Map([
  ['load-batches', 'load in batches of 10,000, rows/s'],
  ['load-bulk', 'load in bulk, sorted, rows/s'],
  ...workloads.map(({ name, title, unit }) => [name, `${title}, ${unit}/s`] as const),
]);

function count(value: number | undefined): string {
  if (value === undefined) return '';
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3);
}

/** One line for each workload. With `perCpuSecond`, units a second of CPU time. */
export function localTable(figures: Figures, rows: number, of: 'values' | 'perCpuSecond' = 'values'): FigureTable[] {
  const measured = figures.measurements.filter((one) => one.rows === rows && titles.has(one.workload));
  const contenders = [...new Set(measured.map(({ contender }) => contender))];
  const lines = [...titles].flatMap(([workload, title]) => {
    if (!measured.some((one) => one.workload === workload)) return [];
    const medianOf = (contender: string): number | undefined => medianIn(figures, rows, workload, contender, of);
    const goal = goals.find((one) => one.workload === workload);
    const other = goal && medianOf(goal.contender);
    const own = medianOf('StoreDb');
    const ratio = own === undefined || other === undefined ? undefined : own / other;
    const reached = goal === undefined || ratio === undefined ? '' : ratio >= goal.ratio ? 'yes' : 'no';
    const wanted = goal === undefined ? '' : `${goal.ratio.toFixed(2)} x ${goal.contender}`;
    return [[title, ...contenders.map((name) => count(medianOf(name))), wanted, ratio?.toFixed(2) ?? '', reached]];
  });
  if (lines.length === 0) return [];
  return [
    {
      name: `peers-${rows}`,
      title: `${rows.toLocaleString('en-US')} rows${of === 'values' ? '' : ', by CPU time'}`,
      head: ['', ...contenders, 'goal', 'reached', ''],
      rows: lines,
    },
  ];
}
