/** What the answers must be: the same work on an array. */
import type { City, Contender } from './contender.ts';
import { byPopulation, bySouth, FirstRows } from './first-rows.ts';

export function openPlain(cities: readonly City[]): Contender {
  const first = (limit: number, compare: (a: City, b: City) => number, rows = cities): City[] => {
    const kept = new FirstRows(limit, compare);
    for (const row of rows) kept.show(row);
    return kept.sorted();
  };
  return {
    loader: () => ({ add: () => undefined, finish: () => undefined }),
    get: (id) => cities[id],
    byCountry: (country, limit) => cities.filter((city) => city.country === country).slice(0, limit),
    fromPopulation: (least, limit) =>
      first(
        limit,
        byPopulation,
        cities.filter(({ population }) => population >= least),
      ),
    mostPopulous: (limit) => first(limit, (a, b) => byPopulation(b, a)),
    countNorthOf: (lat) => cities.filter((city) => city.lat > lat).length,
    countNamed: (name) => cities.filter((city) => city.name === name).length,
    southernmost: (limit) => first(limit, bySouth),
    update: () => undefined,
    close: () => undefined,
  };
}
