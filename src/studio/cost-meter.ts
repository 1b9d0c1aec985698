/** Measures what an instance asks of its store while a call runs. */
import type { Environment } from '../base/env.ts';
import type { Database, DatabaseStats } from '../index.ts';
import type { Cost } from './messages.ts';

/** Counts that are part of others, or are no requests. */
const noRequests: ReadonlySet<string> = new Set(['deletedKeys', 'presign', 'errors', 'bytesRead', 'bytesWritten']);

function requestsIn({ requests }: DatabaseStats): number {
  let sum = 0;
  for (const [name, count] of Object.entries(requests)) if (!noRequests.has(name)) sum += count;
  return sum;
}

/** The requests, bytes and time since it was made. */
export class CostMeter {
  readonly #db: Database;
  readonly #environment: Environment;
  readonly #before: DatabaseStats;
  readonly #startedMs: number;

  constructor(db: Database, environment: Environment) {
    this.#db = db;
    this.#environment = environment;
    this.#before = db.stats();
    this.#startedMs = environment.monotonicMs();
  }

  get cost(): Cost {
    const before = this.#before;
    const after = this.#db.stats();
    const bytesIn = ({ requests }: DatabaseStats): number => requests.bytesRead + requests.bytesWritten;
    return {
      ms: this.#environment.monotonicMs() - this.#startedMs,
      requests: requestsIn(after) - requestsIn(before),
      bytes: bytesIn(after) - bytesIn(before),
      dollars: after.dollars - before.dollars,
    };
  }
}
