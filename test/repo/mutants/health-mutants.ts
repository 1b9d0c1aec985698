/** Mistakes in the health of an instance, and in what the channels tell. */
import type { Mutant } from './mutant.ts';

const health = 'test/features/observability/health.test.ts';
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
];
