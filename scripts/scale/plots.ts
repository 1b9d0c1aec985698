/** The plots of docs/scale.md. */
import { writeFile } from 'node:fs/promises';
import type { Polling } from '../../src/coordination/polling-pace.ts';
import type { Figures } from './figures.ts';
import { chartOf } from '../figures/line-chart.ts';
import type { Chart, Series } from '../figures/line-chart.ts';

const paceNames = new Map([
  [0, 'all at once'],
  [1000, 'each once a second'],
  [10_000, 'each every 10 s'],
  [60_000, 'each once a minute'],
]);

function cost({ months }: Figures, polling: Polling, commitsADay: number): Series {
  const rows = months.filter((month) => month.polling === polling && month.commitsADay === commitsADay);
  const name = `${polling}, ${commitsADay.toLocaleString('en-US')} a day`;
  return { name, points: rows.map(({ nodes, dollars }) => [nodes, dollars]) };
}

function writers({ contention }: Figures, valueOf: (row: Figures['contention'][number]) => number): Series[] {
  return [...paceNames].map(([everyMs, name]) => {
    const rows = contention.filter((row) => row.everyMs === everyMs);
    return { name, points: rows.map((row) => [row.nodes, valueOf(row)]) };
  });
}

function lateness({ used }: Figures): Series[] {
  const pollings = [...new Set(used.map(({ polling }) => polling))];
  return pollings.flatMap((polling) => {
    const rows = used.filter((row) => row.polling === polling);
    return [
      { name: `${polling}, shown`, points: rows.map(({ nodes, staleness }) => [nodes, staleness.p99] as const) },
      { name: `${polling}, merged`, points: rows.map(({ nodes, merging }) => [nodes, merging.p99] as const) },
    ];
  });
}

function conflicts({ counters }: Figures): Series[] {
  const nodes = [...new Set(counters.map((row) => row.nodes))];
  return nodes.map((n) => {
    const rows = counters.filter((row) => row.nodes === n);
    return { name: `${n} nodes`, points: rows.map((row) => [row.counters, row.conflictsPerCommit]) };
  });
}

/** By the name of their files in docs/. */
export function charts(figures: Figures): Record<string, Chart> {
  const nodes = 'nodes';
  return {
    'scale-cost': {
      title: 'Dollars a month',
      xLabel: nodes,
      yLabel: 'dollars a month',
      series: [
        cost(figures, 'interval', 100_000),
        cost(figures, 'interval', 1000),
        cost(figures, 'adaptive', 100_000),
        cost(figures, 'adaptive', 1000),
        cost(figures, 'onDemand', 100_000),
        cost(figures, 'onDemand', 1000),
      ],
    },
    'scale-lateness': {
      title: 'Delay until 99 % of commits are shown elsewhere, and merged: 10,000 a day',
      xLabel: nodes,
      yLabel: 'milliseconds',
      series: lateness(figures),
    },
    'scale-latency': {
      title: 'Flushes that succeed: 99th percentile',
      xLabel: 'nodes that write',
      yLabel: 'milliseconds',
      series: writers(figures, ({ latency }) => latency.p99),
    },
    'scale-lost-slots': {
      title: 'Lost slots for each won slot',
      xLabel: 'nodes that write',
      yLabel: 'lost slots per commit',
      series: writers(figures, ({ lostSlotsPerCommit }) => lostSlotsPerCommit),
    },
    'scale-conflicts': {
      title: 'Failed attempts for each transaction that increments a counter',
      xLabel: 'counters; each transaction changes one of them',
      yLabel: 'conflicts per transaction',
      series: conflicts(figures),
    },
  };
}

export async function writePlots(figures: Figures): Promise<void> {
  for (const [name, chart] of Object.entries(charts(figures))) {
    if (!chart.series.some(({ points }) => points.length > 0)) continue;
    await writeFile(new URL(`../../docs/${name}.svg`, import.meta.url), chartOf(chart));
  }
}
