/**
 * Durations on their way to the SDK's histograms. The SDK takes most of its time for the attributes of a record, and several times as
 * much between other work as in a loop. So durations wait here until figures are read, or until a thousand wait.
 */
import { context } from '@opentelemetry/api';
import type { Attributes, Context, Histogram, Meter } from '@opentelemetry/api';
import type { TracedWork } from '../base/tracing.ts';
import type { Shown } from './attributes.ts';
import { advisedBoundaries, measures, unit } from './measures.ts';
import type { Durations, Measure, MeasureName, Recorder } from './measures.ts';
import { SeriesTable } from './series.ts';

/** Most durations that wait. */
const mostWaiting = 1000;

/** Where the durations of the same work in the same database go. */
interface Series {
  readonly histogram: Histogram;
  readonly attributes: Attributes;
}

export class HistogramDurations implements Durations {
  readonly #histograms: Readonly<Record<MeasureName, Histogram>>;
  readonly #series: Series[] = [];
  readonly #seconds: number[] = [];
  readonly #contexts: Context[] = [];

  constructor(meter: Meter) {
    const advice = { explicitBucketBoundaries: [...advisedBoundaries] };
    const of = ({ name, description }: Measure): Histogram =>
      meter.createHistogram(name, { unit, description, advice });
    this.#histograms = { operations: of(measures.operations), background: of(measures.background) };
  }

  recorderOf(one: Shown<TracedWork>): Recorder | undefined {
    if (one.in === undefined) return undefined;
    const histogram = this.#histograms[one.in];
    const table = new SeriesTable<Series>(one, (attributes) => ({ histogram, attributes }));
    return (told, nowMs) => {
      this.#series.push(table.of(told));
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
