/** How often work took how long, for one set of attributes. */
import type { Attributes, HrTime } from '@opentelemetry/api';
import { realEnvironment } from '../base/env.ts';

/** A histogram for one set of attributes, as the SDK's readers and exporters have it. */
export interface DurationPoint {
  /** When its counting began, in seconds since 1970 and nanoseconds. */
  startTime: HrTime;
  /** When it was read. */
  endTime: HrTime;
  /** The attributes of the work. */
  attributes: Attributes;
  /** How often work took how long, in seconds. `counts[i]`: at most `boundaries[i]`, and more than the boundary before it. */
  value: { buckets: { boundaries: number[]; counts: number[] }; sum: number; count: number; min: number; max: number };
}

export class Distribution {
  readonly #attributes: Attributes;
  readonly #boundaries: readonly number[];
  readonly #counts: number[];
  /** When counting began; undefined until there is something to count. */
  #startMs: number | undefined;
  #count = 0;
  #sum = 0;
  #min = Infinity;
  #max = 0;

  constructor(attributes: Attributes, boundaries: readonly number[]) {
    this.#attributes = attributes;
    this.#boundaries = boundaries;
    this.#counts = Array.from({ length: boundaries.length + 1 }, () => 0);
  }

  record(seconds: number): void {
    this.#startMs ??= realEnvironment.now();
    this.#count++;
    this.#sum += seconds;
    if (seconds < this.#min) this.#min = seconds;
    if (seconds > this.#max) this.#max = seconds;
    let bucket = 0;
    while (bucket < this.#boundaries.length && seconds > (this.#boundaries[bucket] as number)) bucket++;
    (this.#counts[bucket] as number)++;
  }

  /** Returns what was counted; undefined if nothing was. */
  point(nowMs: number): DurationPoint | undefined {
    if (this.#count === 0) return undefined;
    const buckets = { boundaries: [...this.#boundaries], counts: [...this.#counts] };
    return {
      startTime: timeOf(this.#startMs ?? nowMs),
      endTime: timeOf(nowMs),
      attributes: this.#attributes,
      value: { buckets, sum: this.#sum, count: this.#count, min: this.#min, max: this.#max },
    };
  }

  /** Counts anew. Who has counted something goes on at once, and others begin with the next work, as in the SDK. */
  reset(nowMs: number): void {
    this.#startMs = this.#count === 0 ? undefined : nowMs;
    this.#counts.fill(0);
    this.#count = 0;
    this.#sum = 0;
    this.#min = Infinity;
    this.#max = 0;
  }
}

function timeOf(ms: number): HrTime {
  return [Math.trunc(ms / 1000), Math.round((ms % 1000) * 1e6)];
}
