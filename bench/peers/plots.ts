/** The plots of docs/benchmarks.md. */
import { chartOf } from '../../scripts/figures/line-chart.ts';
import type { Figures } from './figures.ts';
import { figuresOf, medianOf } from './figures.ts';
import { comparedRows, nodeMajorsAt, reachedGoals, workloadTitles } from './page.ts';
import { ratioChartOf } from './ratio-chart.ts';

const growthNames = [
  ['get', 'any key'],
  ['ycsb-c', 'popular keys'],
] as const;

/** By the name of their files in docs/: those that there are figures for. */
export function plots(figures: Figures): Record<string, string> {
  const drawn: Record<string, string> = {};
  const rows = comparedRows(figures)[0] ?? 0;
  const nodeMajor = nodeMajorsAt(figures, rows)[0] ?? 20;
  const bars = reachedGoals(figuresOf(figures, nodeMajor), rows).map(({ workload, contender, goal, ratio }) => ({
    name: (workloadTitles.get(workload) ?? workload).replace(/, (ops|rows)\/s$/, ''),
    beside: `${ratio.toFixed(2)} × ${contender}, goal ${goal.toFixed(2)}`,
    ratio: ratio / goal,
  }));
  if (bars.length > 0) {
    const title = `What StoreDb reaches of its goals, ${rows.toLocaleString('en-US')} rows, Node.js ${nodeMajor}`;
    drawn['benchmarks-goals'] = ratioChartOf(title, bars);
  }
  const grown = figures.measurements.filter(({ part }) => part === 'growth').toSorted((a, b) => a.rows - b.rows);
  if (grown.length > 0) {
    drawn['benchmarks-growth'] = chartOf({
      title: 'A get against the number of rows',
      xLabel: 'rows',
      yLabel: 'microseconds of CPU time',
      series: growthNames.map(([workload, name]) => ({
        name,
        points: grown
          .filter((one) => one.workload === workload)
          .map((one) => [one.rows, 1e6 / medianOf(one.perCpuSecond ?? one.values)] as const),
      })),
    });
  }
  return drawn;
}
