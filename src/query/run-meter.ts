/** Counts what a run of a query takes, step by step, for `explain({ run: true })`. */
import type { Node } from '../format/node.ts';
import type { TableState } from '../view/table-state.ts';
import { meteredState } from './metered-tree.ts';
import type { BlockMeter } from './metered-tree.ts';

/** What a step took. */
export interface StepUse {
  readonly rows: number;
  /** Different blocks. */
  readonly blocks: number;
  /** Those that were read, and their size in bytes. */
  readonly requests: number;
  readonly bytes: number;
}

class StepMeter implements BlockMeter {
  readonly #used = new Set<string>();
  #requests = 0;
  #bytes = 0;

  charge(sizeBytes: number): void {
    this.#requests++;
    this.#bytes += sizeBytes;
  }

  use({ name }: Node): void {
    this.#used.add(name);
  }

  useOf(rows: number): StepUse {
    return { rows, blocks: this.#used.size, requests: this.#requests, bytes: this.#bytes };
  }
}

export class RunMeter {
  readonly #table = new StepMeter();
  readonly #index = new StepMeter();

  metered(state: TableState): TableState {
    return meteredState(state, (index) => (index === undefined ? this.#table : this.#index));
  }

  /** Of the table, where so many rows were looked at. */
  table(rows: number): StepUse {
    return this.#table.useOf(rows);
  }

  /** Of indexes, where so many entries were read. */
  index(entries: number): StepUse {
    return this.#index.useOf(entries);
  }
}
