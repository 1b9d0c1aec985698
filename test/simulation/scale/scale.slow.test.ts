/** The main claims of docs/scale.md, on a small scale; and that its tables and plots match its figures. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { readFigures } from '../../../scripts/scale/figures.ts';
import { pageWith } from '../../../scripts/scale/page.ts';
import { charts } from '../../../scripts/scale/plots.ts';
import { chartOf } from '../../../scripts/figures/line-chart.ts';
import { intervalMs } from './cluster.ts';
import { contend, count } from './contention.ts';
import { arrive, die } from './membership.ts';
import { monthOf, steady } from './steady.ts';

function docs(name: string): Promise<string> {
  return readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
}

describe('nodes that nobody uses', () => {
  it.each([
    ['interval', 0.4, 0.45],
    ['adaptive', 0.002, 0.01],
    ['onDemand', 0, 0.0001],
  ] as const)('cost with polling %s from %d to %d dollars a month each', async (polling, least, most) => {
    const options = { nodes: 8, polling, commitsADay: 0, windowMs: 900_000, warmUpMs: 300_000 };
    const { dollars } = monthOf(await steady(options));
    expect(dollars / 8).toBeGreaterThanOrEqual(least);
    expect(dollars / 8).toBeLessThan(most);
  });
});

describe('32 nodes with 10,000 commits a day', () => {
  it('lose hardly a merge, and show and merge commits within two intervals', async () => {
    const options = {
      nodes: 32,
      polling: 'interval',
      commitsADay: 10_000,
      windowMs: 400_000,
      warmUpMs: 30_000,
    } as const;
    const { merges, lostMerges, staleness, merging, failures } = await steady(options);
    expect(merges).toBeGreaterThan(20);
    expect(lostMerges).toBeLessThanOrEqual(1);
    expect(staleness.count).toBeGreaterThan(1000);
    expect(staleness.p99).toBeLessThanOrEqual(2 * intervalMs);
    expect(merging.p99).toBeLessThanOrEqual(2 * intervalMs);
    expect(failures).toBe(0);
  });
});

describe('16 nodes that write', () => {
  it('every ten seconds lose less than one slot for each that they win', async () => {
    const { commits, contention, lostSlotsPerCommit, latency } = await contend(16, 10_000, 30_000);
    expect(commits).toBe(48);
    expect(contention).toBe(0);
    expect(lostSlotsPerCommit).toBeLessThan(1);
    expect(latency.p99).toBeLessThan(2000);
  });

  it('all in the same moment are done within seconds', async () => {
    const { commits, contention, latency } = await contend(16, 0, 1000);
    expect(commits).toBe(16);
    expect(contention).toBe(0);
    expect(latency.max).toBeLessThan(6000);
  });

  it('conflict over one counter, and hardly over many', async () => {
    const [one, many] = [await count(4, 1), await count(4, 256)];
    expect(one.conflictsPerCommit).toBeGreaterThan(0.3);
    expect(many.conflictsPerCommit).toBeLessThan(0.1);
    expect(many.givenUp).toBe(0);
  });
});

describe('nodes that come and go', () => {
  it('are registered within a minute, at a few writes each', async () => {
    const { registeredMs, roots, rootsLost } = await arrive(32);
    expect(registeredMs).toBeLessThan(60_000);
    expect(roots + rootsLost).toBeLessThan(4 * 32);
  });

  it('leave no commit waiting for more than some slots, also where all but one die', async () => {
    const { merging } = await die(16, 15, 'neighbours');
    expect(merging.count).toBeGreaterThan(20);
    expect(merging.max).toBeLessThan(6 * intervalMs);
  });
});

describe('docs/scale.md', () => {
  it('has the tables of docs/scale.json: npm run scale -- --plots-only', async () => {
    const page = await docs('scale.md');
    expect(pageWith(await readFigures(), page)).toBe(page);
  });

  it('has the plots of docs/scale.json: npm run scale -- --plots-only', async () => {
    const figures = await readFigures();
    for (const [name, chart] of Object.entries(charts(figures))) {
      expect(await docs(`${name}.svg`)).toBe(chartOf(chart));
      expect(await docs('scale.md')).toContain(`](${name}.svg)`);
    }
  });
});
