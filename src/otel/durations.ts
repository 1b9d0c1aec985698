/**
 * Durations on their way to the histograms. The SDK takes most of its time for the attributes of a record, and several times as much
 * between other work as in a loop. So durations wait here until figures are read, or until a thousand wait.
 */
import { context } from '@opentelemetry/api';
import type { Attributes, Context, Histogram, Meter } from '@opentelemetry/api';
import type { TracedWork } from '../base/tracing.ts';
import { errorType, labelsOf } from './attributes.ts';
import type { Shown } from './attributes.ts';

/** The boundaries that the conventions advise, in seconds. */
const boundaries = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** Most durations that wait. */
const mostWaiting = 1000;

/** A payload at the end of the work, as the runtime has added to it. */
export type Told = TracedWork & { readonly error?: unknown; readonly waited?: boolean };

/** Where the durations of the same work in the same database go. */
interface Series {
  readonly histogram: Histogram;
  readonly attributes: Attributes;
}

export class Durations {
  readonly #histograms: Readonly<Record<NonNullable<Shown<unknown>['in']>, Histogram>>;
  readonly #series: Series[] = [];
  readonly #seconds: number[] = [];
  readonly #contexts: Context[] = [];

  constructor(meter: Meter) {
    const of = (name: string, description: string): Histogram =>
      meter.createHistogram(name, { unit: 's', description, advice: { explicitBucketBoundaries: boundaries } });
    this.#histograms = {
      operations: of('db.client.operation.duration', 'Duration of database client operations.'),
      background: of(
        'storedb.background.duration',
        'Duration of merges, garbage collections and portions of migrations.',
      ),
    };
  }

  /** Returns what takes the durations of a kind of work; undefined if no histogram counts it. */
  recorderOf(one: Shown<TracedWork>): ((told: Told, nowMs: number) => void) | undefined {
    if (one.in === undefined) return undefined;
    const series = new SeriesMaker(one, this.#histograms[one.in]);
    return (told, nowMs) => {
      this.#series.push(series.of(told));
      this.#seconds.push((nowMs - told.startedMs) / 1000);
      this.#contexts.push(context.active());
      if (this.#seconds.length >= mostWaiting) this.pass();
    };
  }

  /** Passes on the durations that wait. */
  pass(): void {
    this.#series.forEach(({ histogram, attributes }, i) => {
      histogram.record(this.#seconds[i] as number, attributes, this.#contexts[i]);
    });
    for (const list of [this.#series, this.#seconds, this.#contexts]) list.length = 0;
  }
}

/** Makes the series of a kind of work, and keeps the last: most work is like the work before it. */
class SeriesMaker {
  readonly #shown: Shown<TracedWork>;
  readonly #histogram: Histogram;
  #database: string | undefined;
  #topic: string | undefined;
  #last: Series | undefined;

  constructor(one: Shown<TracedWork>, histogram: Histogram) {
    this.#shown = one;
    this.#histogram = histogram;
  }

  of(told: Told): Series {
    const { database } = told;
    const topic = this.#shown.topic(told);
    if ('error' in told) {
      const attributes = labelsOf(this.#shown, database, topic);
      attributes['error.type'] = errorType(told.error);
      return { histogram: this.#histogram, attributes };
    }
    if (this.#last === undefined || database !== this.#database || topic !== this.#topic) {
      this.#last = { histogram: this.#histogram, attributes: labelsOf(this.#shown, database, topic) };
      this.#database = database;
      this.#topic = topic;
    }
    return this.#last;
  }
}
