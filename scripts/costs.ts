/**
 * Prints the yearly sums of docs/costs.md: `npm run costs`. Every line is a simulated day of several nodes, whose requests
 * are counted and billed; all of them take a few minutes. `--nodes 4` prints the lines of four nodes only.
 */
import { parseArgs } from 'node:util';
import { CityStore, lineOf, listedYears, yearOf } from '../test/features/requests/year.ts';

const { values } = parseArgs({ options: { nodes: { type: 'string' } } });

const store = await CityStore.load();
for (const options of listedYears) {
  if (values.nodes !== undefined && Number(values.nodes) !== options.nodes) continue;
  const year = await yearOf(store, options);
  console.log(lineOf(options, year));
}
for (const mix of ['mixed', 'inserts'] as const) {
  const { dollars, day } = await yearOf(store, { nodes: 4, polling: 'adaptive', mix });
  const megabytes = Math.round(day.bytesWritten / 1e6);
  console.log(`4 nodes at the defaults, ${mix}: ${dollars.toFixed(2)} dollars a year, ${megabytes} MB written a day`);
}
