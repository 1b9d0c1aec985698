/** Mistakes in the health of an instance, and in what the channels tell. */
import type { Mutant } from './mutant.ts';

const health = 'test/features/observability/health.test.ts';
const producer = 'src/otel/duration-producer.test.ts';
const otel = 'test/features/observability/otel.test.ts';
const channels = 'test/features/observability/channels.test.ts';

function mutant(name: string, file: string, find: string, replace: string, tests: readonly string[]): Mutant {
  return { name: `health: ${name}`, edits: [{ file, find, replace }], tests };
}

export const healthMutants: readonly Mutant[] = [
  mutant(
    'requests that were given up count as failed',
    'src/maintenance/recent-requests.ts',
    'if (isFailed && isGivenUp(error)) return;',
    'if (isFailed && isGivenUp(undefined)) return;',
    [health],
  ),
  mutant(
    'failed requests are never forgotten',
    'src/maintenance/recent-requests.ts',
    'at !== undefined && at >= first',
    'at !== undefined && at >= first - 10_000',
    [health],
  ),
  mutant(
    'merges of others do not end the failures of this node',
    'src/merge/merger.ts',
    'return block0.appliedSeq > (this.#failing?.appliedSeq ?? 0) ? undefined : this.#failing;',
    'return block0.appliedSeq < 0 ? undefined : this.#failing;',
    [health],
  ),
  mutant(
    'an instance that rests is stale',
    'src/coordination/write-forward-loop.ts',
    'return this.#hasFailed || (isWaiting && environment.monotonicMs() - this.#timerMs > intervalMs);',
    'return this.#hasFailed || isWaiting || this.#timerMs > intervalMs;',
    [health],
  ),
  mutant(
    'timers run within the call that has set them',
    'src/platform/node.ts',
    'setTimeout(outside, delayMs, callback)',
    'setTimeout(callback, delayMs)',
    [channels],
  ),
  mutant(
    'queries that memory answers have no end',
    'src/instance/query-trace.ts',
    'this.#told = this.#payload(table, false);',
    'this.#told = this.#payload(table, true);',
    [channels],
  ),
  mutant(
    'metrics: a duration on a boundary counts in the next bucket',
    'src/otel/distribution.ts',
    'seconds > (this.#boundaries[bucket] as number)',
    'seconds >= (this.#boundaries[bucket] as number)',
    [producer],
  ),
  mutant(
    'metrics: differences begin with the next work',
    'src/otel/distribution.ts',
    'this.#startMs = this.#count === 0 ? undefined : nowMs;',
    'this.#startMs = undefined;',
    [producer],
  ),
  mutant(
    'metrics: a reading shares its counts with later work',
    'src/otel/distribution.ts',
    'counts: [...this.#counts]',
    'counts: this.#counts',
    [producer],
  ),
  mutant(
    'metrics: too many sets of attributes are all kept',
    'src/otel/duration-producer.ts',
    'if (last !== undefined && series.length === mostSeries) return last;',
    'if (last !== undefined && series.length === mostSeries * 2) return last;',
    [producer],
  ),
  mutant(
    'metrics: sets of attributes that were too many stay together with differences',
    'src/otel/duration-producer.ts',
    'if (all.every(({ length }) => length < mostSeries)) return;',
    'if (all.length > 0) return;',
    [producer],
  ),
  mutant(
    'metrics: work of another table counts for the table before it',
    'src/otel/series.ts',
    'last?.database === database && last.topic === topic',
    'last?.database === database',
    [producer],
  ),
  mutant(
    'metrics: a producer is handed in and nothing counts',
    'src/otel.ts',
    'meter && (given.durations ?? histograms)',
    'meter && histograms',
    [otel],
  ),
  mutant(
    'metrics: the failure of a flush is not told to who listens to its end alone',
    'src/batch/flush.ts',
    'if (told !== undefined) flushes.fail(told, error);',
    'if (told === undefined) flushes.fail(this.#payload(), error);',
    [otel],
  ),
];
