/**
 * Which indexes the table has that gets and loses them while it is used, as Block 0 says it: a part of the oracle. Whether an index
 * is in force follows from what stands in Block 0 at a moment; what trees hold is looked at by {@link StoredRows}.
 */
import type { Block0 } from '../../../src/format/block0.ts';
import { pages } from './tables.ts';

/** The indexes of the table after one write of Block 0. */
export interface IndexesThen {
  /** Those that queries use. */
  readonly ready: ReadonlySet<string>;
  /** Those that are being added, and whether they cannot be. */
  readonly added: ReadonlyMap<string, 'building' | 'failed'>;
}

export class IndexLedger {
  /** Undefined: there was no table yet. */
  readonly #history: (IndexesThen | undefined)[] = [undefined];

  /** Block 0 was replaced. */
  replaced({ tables }: Block0): void {
    const [version] = tables.find(({ name }) => name === pages.name)?.versions ?? [];
    if (version === undefined) return void this.#history.push(undefined);
    const { schema, added = [] } = version;
    const ready = new Set(schema.indexes.map(({ name }) => name));
    const states = added.map(
      ({ index, problem }) => [index.name, problem === undefined ? 'building' : 'failed'] as const,
    );
    this.#history.push({ ready, added: new Map(states) });
  }

  /** Where the history is now. */
  get now(): number {
    return this.#history.length - 1;
  }

  /** What there has been since a place in the history, that place included. */
  since(place: number): readonly (IndexesThen | undefined)[] {
    return this.#history.slice(place);
  }

  get present(): IndexesThen | undefined {
    return this.#history.at(-1);
  }

  /** Whether every commit is checked for an index. */
  isInForce(index: string): boolean {
    return this.present?.ready.has(index) === true;
  }
}
