/** A `DurationProducer` exports what the SDK's histograms export for the same work. */
import {
  AggregationTemporality,
  AggregationType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import type { DataPoint, MetricData, ViewOptions } from '@opentelemetry/sdk-metrics';
import { afterEach, describe, expect, it } from 'vitest';
import type { TracedWork } from '../base/tracing.ts';
import { shown } from './attributes.ts';
import type { Shown, WorkName } from './attributes.ts';
import { DurationProducer } from './duration-producer.ts';
import type { DurationProducerOptions } from './duration-producer.ts';
import { HistogramDurations } from './durations.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** The least duration of which sums are exact, in seconds as in milliseconds. */
const unitMs = 1000 / 1024;

/** Reads metrics as an exporter gets them. */
function read(reader: PeriodicExportingMetricReader, exporter: InMemoryMetricExporter) {
  return async (): Promise<readonly MetricData[]> => {
    exporter.reset();
    await reader.forceFlush();
    const scopes = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    expect(scopes.map(({ scope }) => [scope.name, scope.version])).toEqual(scopes.map(() => ['store-db', '']));
    return scopes.flatMap(({ metrics }) => metrics);
  };
}

/** Both ways, and what records the same work in both. */
function both(options: DurationProducerOptions = {}, views: ViewOptions[] = []) {
  const temporality =
    options.temporality === 'delta' ? AggregationTemporality.DELTA : AggregationTemporality.CUMULATIVE;
  const reading = (producers: DurationProducer[]) => {
    const exporter = new InMemoryMetricExporter(temporality);
    const reader = new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: 3_600_000,
      metricProducers: producers,
    });
    const provider = new MeterProvider({ readers: [reader], views });
    closing.push(() => provider.shutdown());
    return { provider, read: read(reader, exporter) };
  };
  const producer = new DurationProducer(options);
  const [sdk, own] = [reading([]), reading([producer])];
  const histograms = new HistogramDurations(sdk.provider.getMeter('store-db'));
  const recorders = new Map(
    (Object.keys(shown) as WorkName[]).map((name) => {
      const one = shown[name] as Shown<TracedWork>;
      return [name, [histograms.recorderOf(one), producer.recorderOf(one)] as const];
    }),
  );
  const record = (name: WorkName, units: number, told: object): void => {
    for (const recorder of recorders.get(name) ?? []) {
      recorder?.({ database: 'app', startedMs: 0, ...told }, units * unitMs);
    }
  };
  return {
    record,
    collect: async () => {
      histograms.pass();
      const [expected, got] = [await sdk.read(), await own.read()];
      return { expected: expected.map(withoutTimes), got: got.map(withoutTimes), points: got.flatMap(pointsOf) };
    },
  };
}

function pointsOf({ dataPoints }: MetricData): DataPoint<unknown>[] {
  return dataPoints;
}

/** A metric without times, its points in an order of their own, and of the descriptor what exporters read. */
function withoutTimes(metric: MetricData): object {
  const { descriptor, aggregationTemporality, dataPointType } = metric;
  const { name, description, unit, valueType } = descriptor;
  const points = pointsOf(metric).map(({ attributes, value }) => ({
    attributes: Object.entries(attributes).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    value,
  }));
  const keyed = points.map((point) => [JSON.stringify(point.attributes), point] as const);
  const sorted = keyed.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, point]) => point);
  return { name, description, unit, valueType, aggregationTemporality, dataPointType, points: sorted };
}

const failed = { error: Object.assign(new Error('twice'), { code: 'DUPLICATE_KEY' }) };

/** Work of all kinds, in three portions. Some is on a boundary of the buckets, and some beside it. */
const portions: readonly (readonly (readonly [WorkName, number, object])[])[] = [
  [
    ['flush', 1, { tables: ['notes'] }],
    ['flush', 512, { tables: ['notes'] }],
    ['flush', 513, { tables: ['tags'] }],
    ['flush', 3, { tables: ['notes', 'tags'] }],
    ['flush', 4, { tables: ['notes'], ...failed }],
    ['query', 0, { table: 'notes' }],
    ['get', 20_480, { table: 'notes' }],
    ['merge', 1024, {}],
    ['request', 7, { kind: 'get', key: 'k' }],
  ],
  [
    ['flush', 2, { tables: ['notes'], database: 'other' }],
    ['flush', 1023, { tables: ['notes'] }],
    ['flush', 5, { tables: ['notes'], error: new TypeError('no') }],
    ['gc', 5120, {}],
  ],
  [
    ['flush', 10_240, { tables: ['tags'] }],
    ['flush', 11, { tables: ['notes'] }],
    ['migration', 1, {}],
  ],
];

describe.each(['cumulative', 'delta'] as const)('what is exported with temporality %s', (temporality) => {
  it('equals what the SDK exports', async () => {
    const { record, collect } = both({ temporality });
    for (const portion of [[], ...portions, [], ...portions]) {
      for (const [name, units, told] of portion) record(name, units, told);
      const { expected, got } = await collect();
      expect(got).toEqual(expected);
    }
  });

  it('equals what the SDK exports of too many sets of attributes', async () => {
    const { record, collect } = both({ temporality });
    for (let i = 0; i < 2010; i++) record('flush', i, { tables: [`table ${i}`] });
    record('flush', 7, { tables: ['table 3'] });
    record('query', 9, { table: 'notes' });
    const { expected, got, points } = await collect();
    expect(got).toEqual(expected);
    expect(points).toHaveLength(2000);
    if (temporality === 'cumulative') return;
    record('flush', 8, { tables: ['table 2009'] });
    const next = await collect();
    expect(next.got).toEqual(next.expected);
  });

  it('has the times of the readings', async () => {
    const { record, collect } = both({ temporality });
    const times = async (): Promise<number[]> => {
      const { points } = await collect();
      expect(points).toHaveLength(1);
      return points.flatMap(({ startTime, endTime }) => [startTime, endTime]).map(([s, ns]) => s * 1000 + ns / 1e6);
    };
    const beforeMs = Date.now();
    record('flush', 1, { tables: ['notes'] });
    const [firstStart = 0, firstEnd = 0] = await times();
    await expect.poll(() => Date.now()).toBeGreaterThan(firstEnd);
    record('flush', 1, { tables: ['notes'] });
    const [start = 0, end = 0] = await times();
    expect([beforeMs, firstStart, firstEnd, end]).toEqual(
      [beforeMs, firstStart, firstEnd, end].toSorted((a, b) => a - b),
    );
    expect(start).toBe(temporality === 'delta' ? firstEnd : firstStart);
  });
});

it('has the boundaries of the option, as with a view of the SDK', async () => {
  const boundaries = [0.25, 0.5, 2];
  const aggregation = { type: AggregationType.EXPLICIT_BUCKET_HISTOGRAM, options: { boundaries } } as const;
  const { record, collect } = both({ boundaries }, [{ instrumentName: '*', aggregation }]);
  for (const portion of portions) for (const [name, units, told] of portion) record(name, units, told);
  const { expected, got } = await collect();
  expect(JSON.stringify(got)).toContain('[0.25,0.5,2]');
  expect(got).toEqual(expected);
});

it('is not changed by the work after a reading', async () => {
  const producer = new DurationProducer();
  const record = producer.recorderOf(shown.flush as never);
  record?.({ database: 'app', startedMs: 0, tables: ['notes'] } as never, 1);
  const before = await producer.collect();
  const copy = structuredClone(before.resourceMetrics.scopeMetrics);
  record?.({ database: 'app', startedMs: 0, tables: ['notes'] } as never, 1);
  expect(before.resourceMetrics.scopeMetrics).toEqual(copy);
});

it.each([{ boundaries: [2, 1] }, { boundaries: [1, 1] }, { boundaries: [Number.NaN] }, { boundaries: ['1'] }])(
  'refuses %o',
  (options) => {
    expect(() => new DurationProducer(options as never)).toThrow('must be an array of rising numbers');
  },
);
