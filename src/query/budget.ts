/** What a query may use at most, and the meter that counts what it does use. */
import type { Environment } from '../base/env.ts';
import { kinds, OptionTable } from '../base/option-checks.ts';
import { BudgetExceededError } from '../base/query-errors.ts';
import { newAbortController } from '../base/signals.ts';
import { untilAborted } from '../base/until-aborted.ts';
import type { TableState } from '../view/table-state.ts';
import { namesIn } from './conditions/condition.ts';
import { meteredState } from './metered-tree.ts';
import type { BlockMeter } from './metered-tree.ts';
import type { Plan } from './planner/access-paths.ts';

/** What one run of a query may use at most, as `query.budget()` takes it. What is left out is not limited. */
export interface BudgetLimits {
  /**
   * Blocks that the query needs and that are not in memory: each takes a request, unless a `cacheDriver` has it. One that
   * another query is reading at the same time counts for both. What it takes to catch up first does not count.
   */
  readonly requests?: number;
  /** Bytes of these blocks. */
  readonly bytes?: number;
  /** Time in milliseconds. In a `for await` loop, what the loop itself takes does not count. */
  readonly ms?: number;
}

const amount = kinds.number(0, Infinity);

export const budgetLimits: OptionTable<BudgetLimits> = new OptionTable({ requests: amount, bytes: amount, ms: amount });

/** How to read less than a plan does. */
function adviceOn({ access, residual, ordered, order }: Plan): string {
  const tested = namesIn(residual)
    .map((name) => `'${name}'`)
    .join(', ');
  if (access.kind === 'table' && tested !== '') {
    return `It reads rows by primary key and tests each for ${tested}: an index on what few rows match would spare most of them.`;
  }
  if (!ordered && order[0] !== undefined) {
    return `It reads all rows that match and sorts them: with an index on '${order[0].field.name}' a limit would spare most of them.`;
  }
  return 'Narrower conditions or a lower limit make it read less.';
}

/** Counts what one run of a query uses: the blocks that it is about to load, and the time. */
export class BudgetMeter implements BlockMeter {
  readonly #environment: Environment;
  readonly #table: string;
  readonly #budget: BudgetLimits;
  readonly #controller = newAbortController();
  #requests = 0;
  #bytes = 0;
  #usedMs = 0;
  #sinceMs: number | undefined;
  /** How the query is run, for the message. */
  plan: Plan | undefined;

  constructor(environment: Environment, table: string, budget: BudgetLimits) {
    this.#environment = environment;
    this.#table = table;
    this.#budget = budget;
  }

  /** Aborted once the time is used up. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Does work on the query's time. Rejects when that is used up, also if the store does not answer. */
  async timed<T>(work: () => Promise<T>): Promise<T> {
    const { ms } = this.#budget;
    this.#sinceMs = this.#environment.monotonicMs();
    const end = (): void => this.#controller.abort(this.#exceeded('ms'));
    const timer =
      ms === undefined
        ? undefined
        : this.#environment.setTimer(end, Math.max(0, ms - this.#usedMs), { background: true });
    try {
      return await untilAborted(work(), this.signal);
    } finally {
      timer?.cancel();
      this.#usedMs = this.#elapsedMs();
      this.#sinceMs = undefined;
    }
  }

  #elapsedMs(): number {
    return this.#usedMs + (this.#sinceMs === undefined ? 0 : this.#environment.monotonicMs() - this.#sinceMs);
  }

  /** A block is about to be loaded. Throws if the budget has no room for it. */
  charge(sizeBytes: number): void {
    this.signal.throwIfAborted();
    if (this.#requests + 1 > (this.#budget.requests ?? Number.POSITIVE_INFINITY)) throw this.#exceeded('requests');
    if (this.#bytes + sizeBytes > (this.#budget.bytes ?? Number.POSITIVE_INFINITY)) throw this.#exceeded('bytes');
    this.#requests++;
    this.#bytes += sizeBytes;
  }

  #exceeded(limit: keyof BudgetLimits): BudgetExceededError {
    const used = { requests: this.#requests, bytes: this.#bytes, ms: Math.round(this.#elapsedMs()) };
    const allowed = `${this.#budget[limit]} ${limit}`;
    const message =
      `The query on table '${this.#table}' was given up: it needs more than the ${allowed} of its budget. By then it had used ` +
      `${used.requests} requests, ${used.bytes} bytes and ${used.ms} ms. ` +
      (this.plan === undefined
        ? 'It had not come to rows of its own: it was catching up, or reading what updates of the overlay are laid over.'
        : adviceOn(this.plan));
    return new BudgetExceededError(limit, used, message);
  }

  /** A state whose blocks are counted when they are loaded. */
  metered(state: TableState): TableState {
    return meteredState(state, () => this);
  }
}
