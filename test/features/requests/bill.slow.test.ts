/**
 * What a year costs on S3: 500 commits a day, from four nodes, to a table of all cities with two indexes. One virtual day
 * is measured, with the requests of all nodes; docs/costs.md has more of these sums, which `npm run costs` makes anew.
 */
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { CityStore, lineOf, prompt, requestsOfBurst, waiting, yearOf } from './year.ts';
import type { Year, YearOptions } from './year.ts';

const timeoutMs = 180_000;

let store: CityStore;
let page: string;

beforeAll(async () => {
  store = await CityStore.load();
  page = await readFile(new URL('../../../docs/costs.md', import.meta.url), 'utf8');
});

/** What never happens, whatever the options: listings, failures, and races that are lost again and again. */
function expectNothingWasted({ day, merges }: Year): void {
  expect(day.list).toBe(0);
  expect(day.delete).toBe(0);
  expect(day.errors).toBe(0);
  expect(merges).toBeGreaterThan(5);
  expect(day.putLost).toBeLessThan(20);
}

/** The dollars in the table's line for these options. What is measured may differ by little, until it is made anew. */
function documentedDollars(options: YearOptions, year: Year): number {
  const [nodes, polling, wait] = lineOf(options, year).split('|').slice(1);
  const start = `|${[nodes, polling, wait].join('|')}|`;
  const line = page.split('\n').find((candidate) => candidate.startsWith(start));
  expect(line, `docs/costs.md has no line that begins with ${start}: npm run costs`).toBeDefined();
  return Number(line?.split('|').at(-2));
}

describe('a hundred updates one after the other', () => {
  it('take at most 2.3 requests each, with their merges and with looks at the store', async () => {
    expect(await requestsOfBurst(store)).toBeLessThanOrEqual(230);
  });
});

describe('a year of 500 commits a day on four nodes', () => {
  it.each([
    ['at the defaults', 5, { nodes: 4, polling: 'adaptive' }],
    ['with polling at the interval and prompt merges', 25, { nodes: 4, polling: 'interval', mergePolicy: prompt }],
    ['with commits that wait for an hour', 3.5, { nodes: 4, polling: 'adaptive', mergePolicy: waiting }],
    ['on demand, with commits that wait for an hour', 3.5, { nodes: 4, polling: 'onDemand', mergePolicy: waiting }],
  ] as const)(
    '%s costs less than %d dollars',
    async (_, most, options) => {
      expect(store.rows).toBeGreaterThan(100_000);
      const year = await yearOf(store, options);
      expectNothingWasted(year);
      expect(year.dollars).toBeLessThan(most);
      const documented = documentedDollars(options, year);
      expect(Math.abs(year.dollars - documented), 'docs/costs.md is out of date: npm run costs').toBeLessThan(
        documented * 0.02,
      );
    },
    timeoutMs,
  );
});
