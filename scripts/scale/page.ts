/** The tables of docs/scale.md: generates them from the figures, and writes them into the page. */
import { readFile, writeFile } from 'node:fs/promises';
import type { Polling } from '../../src/coordination/polling-pace.ts';
import { noTraffic } from '../../test/simulation/scale/network.ts';
import { dollarsOf, monthOf, readsOf, scaled, writesOf } from '../../test/simulation/scale/steady.ts';
import type { Month } from '../../test/simulation/scale/steady.ts';
import { withPart } from '../figures/page-parts.ts';
import { markdownOf } from '../figures/tables.ts';
import type { FigureTable } from '../figures/tables.ts';
import type { Figures } from './figures.ts';

const page = new URL('../../docs/scale.md', import.meta.url);
const pollings: readonly Polling[] = ['interval', 'adaptive', 'onDemand'];
const monthsAYear = 365 / 30;

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function dollars(value: number): string {
  return value >= 100 ? count(value) : value.toFixed(2);
}

function ms(value: number): string {
  return count(value);
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(1);
}

function seconds(valueMs: number): string {
  return (valueMs / 1000).toFixed(1);
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

function costTable({ months }: Figures, polling: Polling): FigureTable {
  const rows = months.filter((month) => month.polling === polling);
  const rates = distinct(rows.map(({ commitsADay }) => commitsADay));
  return {
    name: `cost-${polling}`,
    title: `Dollars a month, ${polling}`,
    head: ['Nodes', ...rates.map((rate) => (rate === 0 ? 'Idle' : `${count(rate)} a day`))],
    rows: distinct(rows.map(({ nodes }) => nodes)).map((nodes) =>
      [String(nodes)].concat(
        rates.map((rate) => {
          const month = rows.find((row) => row.nodes === nodes && row.commitsADay === rate);
          return month === undefined ? '' : `${dollars(month.dollars)}${month.composed ? ' *' : ''}`;
        }),
      ),
    ),
  };
}

function yearTable({ months }: Figures): FigureTable {
  const rows = months.filter(({ commitsADay }) => commitsADay === 1000);
  return {
    name: 'years',
    title: 'Dollars a year at 1,000 commits a day',
    head: ['Nodes', ...pollings.map((polling) => `\`'${polling}'\``)],
    rows: distinct(rows.map(({ nodes }) => nodes)).map((nodes) => {
      const of = (polling: Polling): string => {
        const month = rows.find((row) => row.nodes === nodes && row.polling === polling);
        return month === undefined ? '' : dollars(month.dollars * monthsAYear);
      };
      return [String(nodes)].concat(pollings.map(of));
    }),
  };
}

function requestTable({ months }: Figures): FigureTable {
  const rows = months.filter((month) => month.polling === 'interval' && month.commitsADay === 10_000);
  return {
    name: 'requests',
    title: 'Requests a day, interval, 10,000 commits a day',
    head: [
      'Nodes',
      'Reads: found',
      'unchanged',
      'missing',
      'Slots won',
      'lost',
      'Block 0 written',
      'lost',
      'Blocks',
      'GB read',
      'GB written',
    ],
    rows: rows.map(({ nodes, traffic }) => {
      const day = scaled(traffic, 1 / 30);
      const { found, unchanged, missing, slotsWon, slotsLost, roots, rootsLost, blocks } = day;
      const counts = [found, unchanged, missing, slotsWon, slotsLost, roots, rootsLost, blocks].map(count);
      return [String(nodes)].concat(counts, gigabytes(day.bytesRead), gigabytes(day.bytesWritten));
    }),
  };
}

function usedTable({ used }: Figures): FigureTable {
  return {
    name: 'lateness',
    title: 'Lateness in ms, 10,000 commits a day, every node asked twice a minute',
    head: [
      '`polling`',
      'Nodes',
      'Shown: p50',
      'p99',
      'max',
      'Merged: p50',
      'p99',
      'max',
      'Flush: p50',
      'p99',
      'Most pending',
    ],
    rows: used.map(({ polling, nodes, staleness, merging, latency, mostPending }) => [
      `\`'${polling}'\``,
      String(nodes),
      ms(staleness.p50),
      ms(staleness.p99),
      ms(staleness.max),
      ms(merging.p50),
      ms(merging.p99),
      ms(merging.max),
      ms(latency.p50),
      ms(latency.p99),
      count(mostPending),
    ]),
  };
}

const paces: Readonly<Record<number, string>> = {
  0: 'once, all at once',
  1000: 'every second',
  10_000: 'every 10 s',
  60_000: 'every minute',
};

function contentionTable({ contention }: Figures): FigureTable {
  const rows = contention.toSorted((a, b) => a.everyMs - b.everyMs || a.nodes - b.nodes);
  return {
    name: 'writers',
    title: 'Nodes that write at the same time',
    head: [
      'Each flushes',
      'Nodes',
      'Commits per second',
      'p50 ms',
      'p99 ms',
      'max ms',
      'Lost slots per commit',
      'Reads per commit',
      '`ContentionError`',
      'Busiest second',
    ],
    rows: rows.map((row) => [
      paces[row.everyMs] ?? `every ${row.everyMs} ms`,
      String(row.nodes),
      row.commitsASecond.toFixed(1),
      ms(row.latency.p50),
      ms(row.latency.p99),
      ms(row.latency.max),
      row.lostSlotsPerCommit.toFixed(2),
      count(row.readsPerCommit),
      share(row.contention, row.commits + row.contention + row.backpressure),
      count(row.busiestSecond),
    ]),
  };
}

function share(part: number, whole: number): string {
  return part === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`;
}

function burstTable({ bursts }: Figures): FigureTable {
  return {
    name: 'bursts',
    title: '1,000 commits within a minute',
    head: [
      '`polling`',
      'Nodes',
      'p50 ms',
      'p99 ms',
      'max ms',
      'Lost slots per commit',
      '`ContentionError`',
      'Merged: p99 ms',
      'Most pending',
      'KiB pending',
    ],
    rows: bursts.map((row) => [
      `\`'${row.polling}'\``,
      String(row.nodes),
      ms(row.latency.p50),
      ms(row.latency.p99),
      ms(row.latency.max),
      row.lostSlotsPerCommit.toFixed(2),
      share(row.contention, row.commits + row.contention + row.backpressure),
      ms(row.merging.p99),
      count(row.mostPending),
      count(row.mostPendingBytes / 1024),
    ]),
  };
}

function counterTable({ counters }: Figures): FigureTable {
  const keys = distinct(counters.map((row) => row.counters));
  return {
    name: 'counters',
    title: 'Conflicts for each committed transaction, and the percentage that gave up',
    head: ['Nodes', ...keys.map((k) => (k === 1 ? '1 counter' : `${k} counters`))],
    rows: distinct(counters.map(({ nodes }) => nodes)).map((nodes) =>
      [String(nodes)].concat(
        keys.map((k) => {
          const row = counters.find((candidate) => candidate.nodes === nodes && candidate.counters === k);
          if (row === undefined) return '';
          const given = row.givenUp === 0 ? '' : ` (${share(row.givenUp, row.givenUp + row.committed)})`;
          return `${row.conflictsPerCommit.toFixed(2)}${given}`;
        }),
      ),
    ),
  };
}

function arrivalTable({ arrivals }: Figures): FigureTable {
  return {
    name: 'arrivals',
    title: 'All nodes start in the same moment',
    head: ['Nodes', 'All started, s', 'All registered, s', 'Writes of Block 0', 'lost', 'Busiest second'],
    rows: arrivals.map((row) => [
      String(row.nodes),
      seconds(row.startedMs),
      seconds(row.registeredMs),
      count(row.roots + row.rootsLost),
      count(row.rootsLost),
      count(row.busiestSecond),
    ]),
  };
}

function disturbanceTable({ disturbances }: Figures): FigureTable {
  return {
    name: 'deaths',
    title: 'How long commits wait to be merged while nodes die or are restarted',
    head: ['Nodes', 'Event', 'Merged: p50 s', 'p99 s', 'max s', 'Lost merges', 'Writes for the list', 'Minutes'],
    rows: disturbances.map((row) => [
      String(row.nodes),
      row.what,
      seconds(row.merging.p50),
      seconds(row.merging.p99),
      seconds(row.merging.max),
      count(row.lostMerges),
      count(Math.max(0, row.roots - row.lostMerges)),
      (row.tookMs / 60_000).toFixed(1),
    ]),
  };
}

function replicaTable({ replicas }: Figures): FigureTable {
  return {
    name: 'replicas',
    title: '50,000 commits a day by some of the nodes; the others are replicas',
    head: [
      'Nodes',
      'Writers',
      'Flush: p50 ms',
      'p99 ms',
      'Lost slots per commit',
      'Shown: p99 ms',
      'Merged: p99 ms',
      'Lost merges',
      'Dollars a month',
    ],
    rows: replicas.map((row) => [
      String(row.nodes),
      String(row.writers),
      ms(row.latency.p50),
      ms(row.latency.p99),
      (row.traffic.slotsLost / Math.max(1, row.traffic.slotsWon)).toFixed(2),
      ms(row.staleness.p99),
      ms(row.merging.p99),
      count(row.lostMerges),
      dollars(monthOf(row).dollars),
    ]),
  };
}

function clockTable({ clocks }: Figures): FigureTable {
  return {
    name: 'clocks',
    title: '16 nodes, 10,000 commits a day, clocks that are wrong',
    head: ['Wrong by up to', 'Merges', 'Lost merges', 'Merged: p99 ms', 'max ms', 'Shown: p99 ms', 'Busiest second'],
    rows: clocks.map((row) => [
      `${row.skewMs.toLocaleString('en-US')} ms`,
      count(row.merges),
      count(row.lostMerges),
      ms(row.merging.p99),
      ms(row.merging.max),
      ms(row.staleness.p99),
      count(row.busiestSecond),
    ]),
  };
}

function checkTable({ checks, months }: Figures): FigureTable {
  return {
    name: 'checks',
    title: 'Simulated completely, and multiplied from windows',
    head: [
      'Nodes',
      '`polling`',
      'Commits a day',
      'Days',
      'Reads: simulated',
      'multiplied',
      'Writes: simulated',
      'multiplied',
      'Dollars: simulated',
      'multiplied',
      'Off by',
    ],
    rows: checks.map((whole) => {
      const { nodes, polling, commitsADay, windowMs, traffic } = whole;
      const isSame = (month: Month): boolean =>
        month.nodes === nodes && month.polling === polling && month.commitsADay === commitsADay;
      const multiplied = months.find(isSame)?.traffic ?? noTraffic();
      const part = scaled(multiplied, windowMs / (30 * 86_400_000));
      const [paid, expected] = [dollarsOf(traffic), dollarsOf(part)];
      const off = (100 * (expected - paid)) / paid;
      return [
        String(nodes),
        `\`'${polling}'\``,
        count(commitsADay),
        String(windowMs / 86_400_000),
        count(readsOf(traffic)),
        count(readsOf(part)),
        count(writesOf(traffic)),
        count(writesOf(part)),
        paid.toFixed(3),
        expected.toFixed(3),
        `${off > 0 ? '+' : ''}${off.toFixed(1)} %`,
      ];
    }),
  };
}

export function tables(figures: Figures): FigureTable[] {
  const list = [
    yearTable(figures),
    ...pollings.map((polling) => costTable(figures, polling)),
    requestTable(figures),
    usedTable(figures),
    replicaTable(figures),
    contentionTable(figures),
    burstTable(figures),
    counterTable(figures),
    arrivalTable(figures),
    disturbanceTable(figures),
    clockTable(figures),
    checkTable(figures),
  ];
  return list.filter(({ rows }) => rows.length > 0);
}

/** Returns the page with its tables generated from the figures. */
export function pageWith(figures: Figures, text: string): string {
  return tables(figures).reduce((sofar, table) => withPart(sofar, table.name, markdownOf(table)), text);
}

export async function writePage(figures: Figures): Promise<void> {
  await writeFile(page, pageWith(figures, await readFile(page, 'utf8')));
}
