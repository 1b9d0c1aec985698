/**
 * Reads ahead the rows that triggers will be shown. Triggers run one after the other, since each may change the row that the next
 * one is shown; the stored rows are read while earlier triggers run.
 */
import { BatchStateError } from '../base/errors.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';

/** The most rows that are read before their turn: by then the cache should still have them. */
const maxAhead = 64;

/** Mutations that have had their turn are forgotten once there are so many of them. */
const maxPassed = 1024;

interface Mutation {
  readonly host: StateHost;
  readonly shape: TableShape;
  readonly key: Uint8Array;
}

interface StateHost {
  tableState(table: string): TableState | Promise<TableState>;
}

export class TriggerReads {
  /** Mutations whose rows nobody has begun to read, in the order of their turns. */
  readonly #waiting: Mutation[] = [];
  #next = 0;
  /** The number of mutations whose rows were read and that have not had their turn. */
  #begun = 0;

  /** A mutation that will have its turn behind all that were added before. */
  add(host: StateHost, shape: TableShape, key: Uint8Array): void {
    this.#waiting.push({ host, shape, key });
    // The first one's turn comes at once.
    if (this.#waiting.length - this.#next > 1 || this.#begun > 0) this.#fill();
  }

  /** The turn of the first of them has come: it reads what it needs, unless that is there already. */
  turn(): void {
    if (this.#begun > 0) this.#begun--;
    else this.#next++;
    this.#fill();
  }

  #fill(): void {
    while (this.#begun < maxAhead && this.#next < this.#waiting.length) {
      const mutation = this.#waiting[this.#next++] as Mutation;
      this.#begun++;
      // A failure is reported at the mutation's own turn.
      this.#read(mutation).catch(() => undefined);
    }
    if (this.#next === this.#waiting.length || this.#next >= maxPassed) {
      this.#waiting.splice(0, this.#next);
      this.#next = 0;
    }
  }

  async #read({ host, shape, key }: Mutation): Promise<void> {
    const state = await host.tableState(shape.name);
    const { memory } = state.tree.source;
    const { blockBytes } = memory;
    if (!memory.beginAhead(blockBytes)) return;
    try {
      await state.lookup(key);
    } finally {
      memory.endAhead(blockBytes);
    }
  }
}

/** The error of a call through the handles of a trigger after it has ended. */
export function triggerEnded(table: string): BatchStateError {
  return new BatchStateError(
    `A trigger on table '${table}' has ended, and this call through its batch or dbApi came after that. Nothing was ` +
      'added: await in the trigger all that it begins (the function that forEach() is given is awaited by nobody).',
  );
}
