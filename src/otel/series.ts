/** The series of one kind of work: one for each database, table and error. */
import type { Attributes } from '@opentelemetry/api';
import type { TracedWork } from '../base/tracing.ts';
import { errorType, labelsOf } from './attributes.ts';
import type { Shown } from './attributes.ts';
import type { Told } from './measures.ts';

/** Most attribute sets of a histogram, as in the SDK. */
export const mostSeries = 2000;

export class SeriesTable<Series> {
  readonly #shown: Shown<TracedWork>;
  readonly #make: (attributes: Attributes) => Series;
  readonly #known = new Map<string, Map<string | undefined, Map<string | undefined, Series>>>();
  #size = 0;
  /** The last one of work that succeeded: most work is like the work before it. */
  #last: { readonly database: string; readonly topic: string | undefined; readonly series: Series } | undefined;

  /** `make` makes a series; for those beyond {@link mostSeries}, it is asked each time. */
  constructor(shown: Shown<TracedWork>, make: (attributes: Attributes) => Series) {
    this.#shown = shown;
    this.#make = make;
  }

  of(told: Told): Series {
    const { database } = told;
    const topic = this.#shown.topic(told);
    if ('error' in told) return this.#find(database, topic, errorType(told.error));
    const last = this.#last;
    if (last?.database === database && last.topic === topic) return last.series;
    const series = this.#find(database, topic, undefined);
    this.#last = { database, topic, series };
    return series;
  }

  /** Forgets all series. */
  clear(): void {
    this.#known.clear();
    this.#size = 0;
    this.#last = undefined;
  }

  #find(database: string, topic: string | undefined, error: string | undefined): Series {
    const known = this.#known.get(database)?.get(topic)?.get(error);
    if (known !== undefined) return known;
    const attributes = labelsOf(this.#shown, database, topic);
    if (error !== undefined) attributes['error.type'] = error;
    const series = this.#make(attributes);
    if (this.#size < mostSeries) {
      this.#size++;
      const topics = getOrAdd(this.#known, database);
      getOrAdd(topics, topic).set(error, series);
    }
    return series;
  }
}

function getOrAdd<K, Key, Value>(map: Map<K, Map<Key, Value>>, key: K): Map<Key, Value> {
  const known = map.get(key);
  if (known !== undefined) return known;
  const added = new Map<Key, Value>();
  map.set(key, added);
  return added;
}
