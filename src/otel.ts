/** The exports of `store-db/otel`: spans and metrics for OpenTelemetry. */
import { metrics, trace } from '@opentelemetry/api';
import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import { realEnvironment } from './base/env.ts';
import { InvalidOptionError } from './base/errors.ts';
import { kinds, OptionTable } from './base/options.ts';
import type { Database } from './api/database.ts';
import type { DurationProducer } from './otel/duration-producer.ts';
import { HistogramDurations } from './otel/durations.ts';
import { showFigures } from './otel/figures.ts';
import { listen } from './otel/instrumentation.ts';

export { DurationProducer } from './otel/duration-producer.ts';
export type { CollectedDurations, DurationMetric, DurationProducerOptions } from './otel/duration-producer.ts';
export type { DurationPoint } from './otel/distribution.ts';

/** Options of `instrument()`. */
export interface InstrumentOptions {
  /** Where spans go. Default: the provider that the application has registered. */
  readonly tracerProvider?: TracerProvider;
  /** Where metrics go. Default: the provider that the application has registered. */
  readonly meterProvider?: MeterProvider;
  /** Counts durations, for applications with many short flushes. Default: histograms of the provider do. */
  readonly durations?: DurationProducer;
  /** Whether to make spans. Default true. */
  readonly spans?: boolean;
  /** Whether to measure. Default true. */
  readonly metrics?: boolean;
}

/** An instrumentation that goes on, as `instrument()` returns it. */
export interface Instrumentation {
  /**
   * Shows the figures of a database as well: health, backlog, staleness, cache, dollars. `name`: its attribute `db.namespace`, such as its
   * prefix. Throws `InvalidOptionError`.
   */
  add(db: Database, name: string): void;
  /** Ends it. */
  stop(): void;
}

const instrumentOptions = new OptionTable<InstrumentOptions>({
  tracerProvider: kinds.methods('a TracerProvider', 'getTracer'),
  meterProvider: kinds.methods('a MeterProvider', 'getMeter'),
  durations: kinds.methods('a DurationProducer', 'collect', 'recorderOf'),
  spans: kinds.flag,
  metrics: kinds.flag,
});

const scope = 'store-db';

/**
 * Makes spans and metrics of what all databases of the process do, by OpenTelemetry's conventions for databases. Call it once, after the
 * SDK has started. Needs the package `@opentelemetry/api`. On runtimes without `node:diagnostics_channel` there are only the figures of
 * databases that are added. Throws `InvalidOptionError`.
 */
export function instrument(options: InstrumentOptions = {}): Instrumentation {
  const given = instrumentOptions.check('instrument()', options);
  if (given.durations !== undefined && given.metrics === false) {
    throw new InvalidOptionError('durations', 'A DurationProducer measures: leave it out, or metrics: false.');
  }
  const tracer = given.spans === false ? undefined : (given.tracerProvider ?? trace).getTracer(scope);
  const meter = given.metrics === false ? undefined : (given.meterProvider ?? metrics).getMeter(scope);
  const databases = new Map<Database, string>();
  const histograms = meter === undefined || given.durations !== undefined ? undefined : new HistogramDurations(meter);
  const durations = meter && (given.durations ?? histograms);
  const ends = [listen({ environment: realEnvironment, tracer, durations })];
  const pass = (): void => histograms?.pass();
  if (meter !== undefined) ends.push(showFigures(meter, databases, pass), pass);
  return {
    add: (db, name) => {
      // Programs without types may pass anything.
      if (typeof (Object(db) as Partial<Database>).health !== 'function') {
        throw new InvalidOptionError('db', 'What is added must be a database, as StoreDb() returns it.');
      }
      if (typeof name !== 'string') {
        throw new InvalidOptionError('name', 'The name of a database in metrics must be a string, such as its prefix.');
      }
      databases.set(db, name);
    },
    stop: () => ends.splice(0).forEach((end) => end()),
  };
}
