/** The figures of databases as OpenTelemetry reads them whenever it exports: health, backlog, staleness, cache, dollars. */
import type { Attributes, BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import type { Database } from '../api/database.ts';
import type { DatabaseHealth } from '../maintenance/health.ts';
import type { DatabaseStats } from '../maintenance/stats.ts';

/** The numbers of a figure, each with its attributes. */
type Readings = readonly (readonly [value: number | undefined, attributes?: Attributes])[];

interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Whether it only rises. */
  readonly isCount?: true;
  readonly read: (stats: DatabaseStats, health: DatabaseHealth) => Readings;
}

const levels = { ok: 0, degraded: 1, failing: 2 } as const;

const figures: readonly Figure[] = [
  {
    name: 'storedb.health',
    unit: '1',
    description: '0: ok, 1: degraded, 2: failing.',
    read: (_, { status }) => [[levels[status]]],
  },
  {
    name: 'storedb.health.value',
    unit: '1',
    description: 'The numbers of db.health(), in the unit of their thresholds.',
    read: (_, { values }) => Object.entries(values).map(([code, value]) => [value, { 'storedb.health.code': code }]),
  },
  {
    name: 'storedb.backlog.commits',
    unit: '{commit}',
    description: 'Commits that wait to be merged.',
    read: ({ log }) => [[log?.pendingCommits]],
  },
  {
    name: 'storedb.backlog.size',
    unit: 'By',
    description: 'Size of the commits that wait to be merged.',
    read: ({ log }) => [[log?.pendingBytes]],
  },
  {
    name: 'storedb.staleness',
    unit: 's',
    description: 'Time since the instance knew that it shows the newest state.',
    read: ({ log }) => [[log !== undefined && Number.isFinite(log.ageMs) ? log.ageMs / 1000 : undefined]],
  },
  {
    name: 'storedb.cache.size',
    unit: 'By',
    description: 'Size of the blocks in memory.',
    read: ({ cache }) => [[cache.sizeBytes]],
  },
  {
    name: 'storedb.cache.reads',
    unit: '{block}',
    description: 'Blocks that were asked for since start(), by where they were found.',
    isCount: true,
    read: ({ cache: { hits, driverHits, misses } }) => [
      [hits, { 'storedb.cache.from': 'memory' }],
      [driverHits, { 'storedb.cache.from': 'driver' }],
      [misses, { 'storedb.cache.from': 'store' }],
    ],
  },
  {
    name: 'storedb.requests',
    unit: '{request}',
    description: 'Requests to the store that succeeded, by kind, and those that failed.',
    isCount: true,
    read: ({ requests: { get, getUnchanged, getMissing, put, putLost, copy, list, errors, ...rest } }) => {
      const kinds = { get: get + getUnchanged + getMissing, put: put + putLost, delete: rest.delete, copy, list };
      const counts = Object.entries({ ...kinds, error: errors });
      return counts.map(([kind, count]) => [count, { 'storedb.request.kind': kind }] as const);
    },
  },
  {
    name: 'storedb.cost',
    unit: '{USD}',
    description: 'Cost of the requests to the store, by the price table of the options.',
    isCount: true,
    read: ({ dollars }) => [[dollars]],
  },
];

/**
 * Shows the figures of databases, which map to their names. `before` is called whenever figures are read, before anything of them is.
 * Returns a function that ends it.
 */
export function showFigures(meter: Meter, databases: ReadonlyMap<Database, string>, before: () => void): () => void {
  const shownFigures = figures.map((figure) => {
    const { name, unit, description } = figure;
    const options = { unit, description };
    const observable: Observable =
      figure.isCount === true
        ? meter.createObservableCounter(name, options)
        : meter.createObservableGauge(name, options);
    return { figure, observable };
  });
  const observe = (result: BatchObservableResult): void => {
    before();
    for (const [db, name] of databases) {
      const [stats, health] = [db.stats(), db.health()];
      const common = { 'db.system.name': 'store-db', 'db.namespace': name };
      for (const { figure, observable } of shownFigures) {
        for (const [value, attributes] of figure.read(stats, health)) {
          if (value !== undefined) result.observe(observable, value, { ...common, ...attributes });
        }
      }
    }
  };
  const observables = shownFigures.map(({ observable }) => observable);
  meter.addBatchObservableCallback(observe, observables);
  return () => meter.removeBatchObservableCallback(observe, observables);
}
