/** Rows of the version beside the truth that were made in memory, on their way into a layer over a state. */
import { MigrationError } from '../base/errors.ts';
import { compareBytes } from '../base/bytes.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import { treeOfNode } from '../tree/tree.ts';
import type { RowHit, Tree } from '../tree/tree.ts';
import { PlainRows } from './plain-rows.ts';
import type { RowTranslation } from './row-translation.ts';
import { asMigrationError, keyText, translateRow } from './translated-tree.ts';

/** Name of nodes that only memory holds. */
const memoryName = 'memory/migrated';

/** Errors by the keys of the rows that could not be made. */
export type RowErrors = ReadonlyMap<string, MigrationError>;

interface MadeRow {
  readonly key: Uint8Array;
  readonly base: number;
}

export class MadeRows {
  readonly translation: RowTranslation;
  readonly #rows = new PlainRows();
  readonly #made: MadeRow[] = [];
  readonly errors: Map<string, MigrationError> = new Map();

  constructor(translation: RowTranslation) {
    this.translation = translation;
  }

  /** The key in the version beside the truth; undefined if it cannot be one, which is then known. */
  keyOf(key: Uint8Array): Uint8Array | undefined {
    try {
      return this.translation.keyForward(key);
    } catch (cause) {
      const error = asMigrationError(cause, this.translation);
      if (!(error instanceof MigrationError)) throw error;
      this.errors.set(keyText(key), error);
      return undefined;
    }
  }

  /** Says that there is no row with a key. All keys here are those of the version beside the truth. */
  addDeleted(key: Uint8Array): void {
    this.#add(key, () => this.#rows.addDeleted(this.translation.to.layout));
  }

  /** Adds what a row of the truth becomes. */
  addTranslated(key: Uint8Array, row: RowHit): void {
    this.#add(key, () => translateRow(this.translation, row, this.#rows));
  }

  /** Adds a stored row as it is now that the row of the truth that it goes with has changed. */
  addInLine(key: Uint8Array, stored: RowHit, before: RowHit | undefined, after: RowHit): void {
    const translation = this.translation;
    this.#add(key, () => this.#rows.add(translation.to.layout, translation.inLine(stored, before, after)));
  }

  #add(key: Uint8Array, make: () => number): void {
    try {
      this.#made.push({ key, base: make() });
    } catch (cause) {
      const error = asMigrationError(cause, this.translation);
      if (!(error instanceof MigrationError)) throw error;
      this.errors.set(keyText(key), error);
    }
  }

  /** The rows as a layer; undefined if there are none. */
  layer(): Tree | undefined {
    if (this.#made.length === 0) return undefined;
    const entries = new NodeEntries(this.translation.to.changeShape);
    const sorted = this.translation.keepsKeys ? this.#made : this.#made.toSorted((a, b) => compareBytes(a.key, b.key));
    for (const { key, base } of sorted) entries.addRow(key, 0, key.length, this.#rows, base);
    return treeOfNode(openNode(memoryName, entries.encode(memoryName, 0, entries.count)));
  }
}
