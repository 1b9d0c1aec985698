/**
 * Durations that are counted here, and not by the SDK, which makes a text of the attributes for each record. A reader of the SDK asks for
 * them by the SDK's interface `MetricProducer`.
 */
import { ValueType } from '@opentelemetry/api';
import type { Attributes } from '@opentelemetry/api';
import { realEnvironment } from '../base/env.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { TracedWork } from '../base/tracing.ts';
import type { Shown } from './attributes.ts';
import { Distribution } from './distribution.ts';
import type { DurationPoint } from './distribution.ts';
import { advisedBoundaries, measures, unit } from './measures.ts';
import type { MeasureName, Recorder } from './measures.ts';
import { mostSeries, SeriesTable } from './series.ts';

/** Options of `new DurationProducer()`. */
export interface DurationProducerOptions {
  /** Whether each reading tells of all work so far, or of that since the reading before it, as the exporter wants it. Default `'cumulative'`. */
  readonly temporality?: 'cumulative' | 'delta';
  /** The upper ends of the buckets in seconds, rising. Default: those that the conventions advise. */
  readonly boundaries?: readonly number[];
}

/** The histograms of one name, as the SDK's readers and exporters have them. */
export interface DurationMetric {
  /** The name, the meaning and the unit. */
  descriptor: { name: string; description: string; unit: string; valueType: ValueType };
  /** 0: since the reading before, 1: since the beginning. */
  aggregationTemporality: 0 | 1;
  /** That these are histograms. */
  dataPointType: 0;
  /** One for each set of attributes. */
  dataPoints: DurationPoint[];
}

/** The answer of a `DurationProducer` to a reader: the SDK's type `CollectionResult`. */
export interface CollectedDurations {
  /** The metrics. Readers put the resource of their own provider in the place of the empty one. */
  resourceMetrics: {
    resource: { attributes: Attributes; merge<R>(other: R | null): R; getRawAttributes(): never[] };
    scopeMetrics: { scope: { name: string; version?: string }; metrics: DurationMetric[] }[];
  };
  /** None. */
  errors: unknown[];
}

const isRising = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every((end: unknown, i) => Number.isFinite(end) && (i === 0 || (end as number) > (value[i - 1] as number)));

const producerOptions = new OptionTable<DurationProducerOptions>({
  temporality: kinds.choice('cumulative', 'delta'),
  boundaries: { allowed: 'an array of rising numbers, in seconds', accepts: isRising },
});

/** The SDK's name of a scope's only set of attributes once there are too many. */
const overflow: Attributes = { 'otel.metric.overflow': true };

/**
 * Counts durations for readers of OpenTelemetry's SDK, for a fraction of what the SDK's histograms cost. Hand it to the option
 * `metricProducers` of a reader, and to the option `durations` of `instrument()`.
 */
export class DurationProducer {
  readonly #boundaries: readonly number[];
  readonly #isDelta: boolean;
  readonly #series: Readonly<Record<MeasureName, Distribution[]>> = { operations: [], background: [] };

  readonly #tables: SeriesTable<Distribution>[] = [];

  /** Throws `InvalidOptionError`. */
  constructor(options: DurationProducerOptions = {}) {
    const { temporality, boundaries } = producerOptions.check('new DurationProducer()', options);
    this.#boundaries = boundaries === undefined ? advisedBoundaries : [...boundaries];
    this.#isDelta = temporality === 'delta';
  }

  /** Returns what was counted: readers call it. With `'delta'`, it counts anew from here on, so that it is for one reader. */
  collect(): Promise<CollectedDurations> {
    const nowMs = realEnvironment.now();
    const metrics = (['operations', 'background'] as const)
      .map((name) => this.#metric(name, nowMs))
      .filter(({ dataPoints }) => dataPoints.length > 0);
    if (this.#isDelta) this.#reset(nowMs);
    const resource = { attributes: {}, merge: <R>(other: R | null) => other as R, getRawAttributes: () => [] };
    const scopeMetrics = metrics.length === 0 ? [] : [{ scope: { name: 'store-db', version: '' }, metrics }];
    return Promise.resolve({ resourceMetrics: { resource, scopeMetrics }, errors: [] });
  }

  /** @internal Returns what takes the durations of a kind of work; undefined if no histogram counts it. */
  recorderOf(one: Shown<TracedWork>): Recorder | undefined {
    if (one.in === undefined) return undefined;
    const series = this.#series[one.in];
    const table = new SeriesTable(one, (attributes) => this.#add(series, attributes));
    this.#tables.push(table);
    return (told, nowMs) => table.of(told).record((nowMs - told.startedMs) / 1000);
  }

  #add(series: Distribution[], attributes: Attributes): Distribution {
    const last = series.at(-1);
    if (last !== undefined && series.length === mostSeries) return last;
    const isLast = series.length === mostSeries - 1;
    const added = new Distribution(isLast ? overflow : attributes, this.#boundaries);
    series.push(added);
    return added;
  }

  #reset(nowMs: number): void {
    const all = Object.values(this.#series);
    for (const one of all.flat()) one.reset(nowMs);
    if (all.every(({ length }) => length < mostSeries)) return;
    // Those that come from now on may be others.
    for (const series of all) series.length = 0;
    for (const table of this.#tables) table.clear();
  }

  #metric(of: MeasureName, nowMs: number): DurationMetric {
    const { name, description } = measures[of];
    // Readers before the SDK's second version look at the type.
    const descriptor = { name, description, unit, valueType: ValueType.DOUBLE, type: 'HISTOGRAM' };
    const dataPoints: DurationPoint[] = [];
    for (const series of this.#series[of]) {
      const point = series.point(nowMs);
      if (point !== undefined) dataPoints.push(point);
    }
    return { descriptor, aggregationTemporality: this.#isDelta ? 0 : 1, dataPointType: 0, dataPoints };
  }
}
