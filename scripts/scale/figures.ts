/** The simulations for docs/scale.md, and the file with their figures. */
import { readFile, writeFile } from 'node:fs/promises';
import type { Polling } from '../../src/coordination/polling-pace.ts';
import { burst, contend, count } from '../../test/simulation/scale/contention.ts';
import type { Contention, Counting } from '../../test/simulation/scale/contention.ts';
import { arrive, die, restart } from '../../test/simulation/scale/membership.ts';
import type { Arrival, Disturbance } from '../../test/simulation/scale/membership.ts';
import { composedMonth, dayMs, monthOf, steady } from '../../test/simulation/scale/steady.ts';
import type { Month, Steady } from '../../test/simulation/scale/steady.ts';

export interface Figures {
  steady: Steady[];
  months: Month[];
  used: Steady[];
  replicas: (Steady & { readonly writers: number })[];
  clocks: (Steady & { readonly skewMs: number })[];
  contention: Contention[];
  bursts: (Contention & { readonly polling: Polling })[];
  counters: Counting[];
  arrivals: Arrival[];
  disturbances: Disturbance[];
  /** Simulated completely, to check the figures that are multiplied from windows. */
  checks: Steady[];
}

export type Section = keyof Figures;

/** A part of the work. It adds its results to the figures. */
export interface Job {
  readonly section: Section;
  readonly name: string;
  run(figures: Figures): Promise<void>;
}

export const figuresFile = new URL('../../docs/scale.json', import.meta.url);

export function noFigures(): Figures {
  return {
    steady: [],
    months: [],
    used: [],
    replicas: [],
    clocks: [],
    contention: [],
    bursts: [],
    counters: [],
    arrivals: [],
    disturbances: [],
    checks: [],
  };
}

export async function readFigures(): Promise<Figures> {
  return JSON.parse(await readFile(figuresFile, 'utf8')) as Figures;
}

/** Fractions beyond the fourth digit say nothing, and make every run differ everywhere. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}

export async function writeFigures(figures: Figures): Promise<void> {
  // A line for each row, so that changes can be read.
  const sections = Object.entries(figures).map(([name, rows]) => {
    const lines = (rows as unknown[]).map((row) => `    ${JSON.stringify(row, rounded)}`);
    return `  ${JSON.stringify(name)}: [\n${lines.join(',\n')}\n  ]`;
  });
  await writeFile(figuresFile, `{\n${sections.join(',\n')}\n}\n`);
}

const all = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const fewer = [1, 4, 16, 64, 256];
const few = [1, 4, 16];
const rates = [100, 1000, 10_000, 100_000];
const pollings: readonly Polling[] = ['interval', 'adaptive', 'onDemand'];
/** Commits that a window must have to stand for a rate. */
const leastCommits = 20;
/** One commit in so many milliseconds is alone: it is merged before the next one comes. */
const loneMs = 15_000;

/** About how many requests a second nodes make that nobody uses. */
const idleRate: Readonly<Record<Polling, number>> = { interval: 0.4, adaptive: 0.02, onDemand: 0 };

function windowFor(nodes: number, polling: Polling, commitsADay: number, requests: number): number {
  const perSecond =
    nodes * idleRate[polling] + (commitsADay / 86_400) * (12 + (polling === 'interval' ? 2 * nodes : 4));
  const windowMs = Math.min(dayMs, Math.max(60_000, (requests / Math.max(perSecond, 0.001)) * 1000));
  // Adaptive nodes look once a minute, and on demand each merges only in its own turn.
  return polling === 'interval' ? windowMs : Math.min(dayMs, Math.max(windowMs, 600_000, nodes * 10_000));
}

function steadyJobs(nodes: number, polling: Polling, budget: number): Job {
  const warmUpMs = (windowMs: number): number => Math.max(polling === 'interval' ? 30_000 : 300_000, windowMs / 5);
  const window = async (commitsADay: number, windowMs: number): Promise<Steady> =>
    steady({ nodes, polling, commitsADay, windowMs, warmUpMs: warmUpMs(windowMs) });
  return {
    section: 'steady',
    name: `${nodes} nodes, ${polling}`,
    async run({ steady: windows, months }) {
      const idle = await window(0, windowFor(nodes, polling, 0, budget / 3));
      windows.push(idle);
      months.push(monthOf(idle));
      let lone: Steady | undefined;
      for (const rate of rates) {
        const windowMs = windowFor(nodes, polling, rate, budget);
        if ((rate * windowMs) / dayMs >= leastCommits) {
          const measured = await window(rate, windowMs);
          windows.push(measured);
          months.push(monthOf(measured));
        } else {
          lone ??= await window(dayMs / loneMs, leastCommits * loneMs);
          months.push(composedMonth(idle, lone, rate));
        }
      }
      if (lone !== undefined) windows.push(lone);
    },
  };
}

function checkJob(nodes: number, polling: Polling, commitsADay: number, days: number): Job {
  return {
    section: 'checks',
    name: `${nodes} nodes, ${polling}, ${commitsADay} a day for ${days} days, complete`,
    async run({ checks }) {
      const warmUpMs = Math.min(dayMs, (days * dayMs) / 10);
      const options = { nodes, polling, commitsADay, windowMs: days * dayMs, warmUpMs, collects: days > 1 };
      checks.push(await steady(options));
    },
  };
}

/** Everything; a quick run has fewer nodes and shorter windows. */
export function jobs(quick: boolean): Job[] {
  const nodes = quick ? few : all;
  const budget = quick ? 2000 : 8000;
  const used = quick ? [16] : [4, 16, 64, 256];
  const writers = quick ? [2, 8, 32] : [2, 4, 8, 16, 32, 64, 128, 256];
  const paces = quick ? [0, 1000] : [0, 1000, 10_000, 60_000];
  const groups = quick ? [16] : [16, 64, 256];
  const list: Job[] = [];
  for (const polling of pollings) {
    const some = polling === 'interval' || quick ? nodes : fewer;
    for (const n of some) list.push(steadyJobs(n, polling, budget));
  }
  for (const polling of pollings) {
    for (const n of used) {
      const windowMs = quick ? 300_000 : Math.min(3_600_000, 100_000_000 / (n * n));
      const options = { nodes: n, polling, commitsADay: 10_000, windowMs: Math.max(300_000, windowMs) };
      list.push({
        section: 'used',
        name: `${n} nodes that are asked, ${polling}`,
        run: async (figures) =>
          void figures.used.push(await steady({ ...options, warmUpMs: 60_000, queryEveryMs: 30_000 })),
      });
    }
  }
  for (const n of used) {
    for (const some of new Set([4, n])) {
      const windowMs = Math.max(120_000, Math.min(600_000, 30_000_000 / n));
      const options = { nodes: n, writers: some, polling: 'interval', commitsADay: 50_000, windowMs } as const;
      list.push({
        section: 'replicas',
        name: `${some} writers of ${n} nodes`,
        run: async ({ replicas }) =>
          void replicas.push({ ...(await steady({ ...options, warmUpMs: 30_000 })), writers: some }),
      });
    }
  }
  for (const skewMs of [0, 500, 2500, 60_000]) {
    const options = {
      nodes: 16,
      polling: 'interval',
      commitsADay: 10_000,
      windowMs: quick ? 300_000 : 1_200_000,
    } as const;
    list.push({
      section: 'clocks',
      name: `clocks wrong by up to ${skewMs} ms`,
      run: async (figures) =>
        void figures.clocks.push({ ...(await steady({ ...options, warmUpMs: 60_000, skewMs })), skewMs }),
    });
  }
  for (const n of writers) {
    for (const everyMs of paces) {
      list.push({
        section: 'contention',
        name: `${n} writers, every ${everyMs} ms`,
        run: async (figures) =>
          void figures.contention.push(await contend(n, everyMs, everyMs === 60_000 ? 60_000 : 30_000)),
      });
    }
  }
  for (const n of groups)
    list.push({
      section: 'arrivals',
      name: `${n} nodes arrive`,
      run: async ({ arrivals }) => void arrivals.push(await arrive(n)),
    });
  for (const polling of ['interval', 'onDemand'] as const) {
    for (const n of quick ? [1, 16] : [1, 4, 16, 64]) {
      list.push({
        section: 'bursts',
        name: `a burst on ${n} nodes, ${polling}`,
        run: async ({ bursts }) => void bursts.push({ ...(await burst(n, 1000, polling)), polling }),
      });
    }
  }
  for (const n of quick ? [2, 8] : [2, 4, 8, 16, 32]) {
    for (const k of quick ? [1, 16] : [1, 4, 16, 64, 256]) {
      list.push({
        section: 'counters',
        name: `${n} nodes, ${k} counters`,
        run: async ({ counters }) => void counters.push(await count(n, k)),
      });
    }
  }
  for (const n of groups) {
    list.push(
      disturbance(`one of ${n} dies`, () => die(n, 1, 'neighbours')),
      disturbance(`half of ${n} die`, () => die(n, n / 2, 'random')),
      disturbance(`neighbours of ${n} die`, () => die(n, n / 2, 'neighbours')),
      disturbance(`all but one of ${n} die`, () => die(n, n - 1, 'neighbours')),
      disturbance(`${n} are restarted`, () => restart(n)),
    );
  }
  if (quick) list.push(checkJob(4, 'onDemand', 1000, 1));
  else {
    list.push(
      checkJob(4, 'interval', 1000, 3),
      checkJob(4, 'adaptive', 100, 30),
      checkJob(256, 'adaptive', 10_000, 0.05),
      checkJob(256, 'onDemand', 1000, 1),
      checkJob(4, 'onDemand', 100, 30),
    );
  }
  return list;
}

function disturbance(name: string, run: () => Promise<Disturbance>): Job {
  return { section: 'disturbances', name, run: async ({ disturbances }) => void disturbances.push(await run()) };
}
