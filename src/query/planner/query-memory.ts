/** The memory of earlier queries of an instance, with which the next ones are planned and run faster. */
import { ByteWriter } from '../../base/bytes.ts';
import type { BlockSource } from '../../tree/block-source.ts';
import type { TableState } from '../../view/table-state.ts';
import type { CompiledQuery, Plan } from './access-paths.ts';

/** A query with its plan, and when it was planned. */
export interface KnownPlan {
  readonly query: CompiledQuery;
  readonly plan: Plan;
  /** The turnover of the cache when the plan was made. */
  readonly turnover: number;
}

/** Plans that are remembered of a state. When there are more, all of them are forgotten. */
const maxPlans = 64;

export class QueryMemory {
  /** A writer for the key of one look-up. A look-up that must wait copies the key. */
  readonly key: ByteWriter = new ByteWriter(64);
  readonly #plans = new WeakMap<TableState, Map<string, KnownPlan>>();
  readonly #forgoneMicros = new WeakMap<BlockSource, Map<string, number>>();

  /** Returns the plan that was made for a query with these words on a state of its table. */
  planOf(state: TableState, words: string): KnownPlan | undefined {
    return this.#plans.get(state)?.get(words);
  }

  /** Remembers the plan of a query with these words on a state of its table. */
  remember(state: TableState, words: string, planned: KnownPlan): void {
    let plans = this.#plans.get(state);
    if (plans === undefined) {
      plans = new Map();
      this.#plans.set(state, plans);
    } else if (plans.size >= maxPlans && !plans.has(words)) plans.clear();
    plans.set(words, planned);
  }

  /** Returns the microseconds that plans have forgone on a tree, by the table and the index that they would have read. */
  forgoneMicros(source: BlockSource): Map<string, number> {
    let byIndex = this.#forgoneMicros.get(source);
    if (byIndex === undefined) {
      byIndex = new Map();
      this.#forgoneMicros.set(source, byIndex);
    }
    return byIndex;
  }
}
