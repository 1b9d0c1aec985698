/** The histograms of durations by OpenTelemetry's conventions, and who counts in them. */
import type { TracedWork } from '../base/tracing.ts';
import type { Shown } from './attributes.ts';

/** A histogram. */
export interface Measure {
  readonly name: string;
  readonly description: string;
}

export type MeasureName = NonNullable<Shown<unknown>['in']>;

export const measures: Readonly<Record<MeasureName, Measure>> = {
  operations: { name: 'db.client.operation.duration', description: 'Duration of database client operations.' },
  background: {
    name: 'storedb.background.duration',
    description: 'Duration of merges, garbage collections and portions of migrations.',
  },
};

/** The unit of all durations. */
export const unit = 's';

/** The boundaries that the conventions advise, in seconds. */
export const advisedBoundaries: readonly number[] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** A payload at the end of the work, as the runtime has added to it. */
export type Told = TracedWork & { readonly error?: unknown; readonly waited?: boolean };

/** Takes the durations of one kind of work. */
export type Recorder = (told: Told, nowMs: number) => void;

/** Where durations go. */
export interface Durations {
  /** Returns what takes the durations of a kind of work; undefined if no histogram counts it. */
  recorderOf(one: Shown<TracedWork>): Recorder | undefined;
}
