/**
 * Rows of the next version that are made in memory, on their way into a node. A row that cannot be made has its
 * place in the node all the same: it hides what is below it, and whoever would show it is told why there is none.
 */
import { compareBytes } from '../base/bytes.ts';
import { MigrationError } from '../base/errors.ts';
import { CachedNode } from '../cache/cached-node.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { rowMarks } from '../format/row-layout.ts';
import { describeKey } from '../base/describe-value.ts';
import { PartialNode } from '../tree/partial-node.ts';
import type { RowHit } from '../tree/tree.ts';
import { PlainRows } from './plain-rows.ts';
import { RowNotMigrated } from './row-translation.ts';
import type { RowTranslation } from './row-translation.ts';

/** For an error of translation the one that applications get; others as they are. */
function asMigrationError(error: unknown, { from, to }: RowTranslation): unknown {
  if (!(error instanceof RowNotMigrated)) return error;
  const { primaryKey } = error;
  const message =
    `The row of table '${to.name}' with primary key ${describeKey(primaryKey)} cannot be brought from version ` +
    `${from.version} to version ${to.version}. ${error.message}`;
  return new MigrationError(to.name, primaryKey, message, { cause: error.cause ?? error });
}

interface MadeEntry {
  readonly key: Uint8Array;
  readonly base: number;
  readonly error: Error | undefined;
}

export class MadeEntries {
  readonly translation: RowTranslation;
  readonly #shape: EntryShape;
  readonly #rows = new PlainRows();
  readonly #made: MadeEntry[] = [];

  constructor(translation: RowTranslation, shape: EntryShape) {
    this.translation = translation;
    this.#shape = shape;
  }

  get count(): number {
    return this.#made.length;
  }

  /** Says that there is no row with a key. Keys are those of the next version. */
  addDeleted(key: Uint8Array): void {
    this.#made.push({ key, base: this.#rows.addDeleted(this.translation.to.layout), error: undefined });
  }

  /** Adds what a row of the active version becomes, marks included. */
  addTranslated(key: Uint8Array, row: RowHit): void {
    this.#add(key, () => {
      const marks = (row.source.rows[row.base] as number) & rowMarks;
      const base = this.translation.forwardInto(row, this.#rows);
      this.#rows.rows[base] = (this.#rows.rows[base] as number) | marks;
      return base;
    });
  }

  /** Adds a stored row as it is now that the row of the active version that it goes with has changed. */
  addInLine(key: Uint8Array, stored: RowHit, before: RowHit | undefined, after: RowHit): void {
    const { translation } = this;
    this.#add(key, () => this.#rows.add(translation.to.layout, translation.inLine(stored, before, after)));
  }

  #add(key: Uint8Array, make: () => number): void {
    try {
      this.#made.push({ key, base: make(), error: undefined });
    } catch (cause) {
      const error = asMigrationError(cause, this.translation);
      if (!(error instanceof MigrationError)) throw error;
      this.#made.push({ key, base: this.#rows.begin(this.translation.to.layout), error });
    }
  }

  node(name: string): CachedNode {
    const entries = new NodeEntries(this.#shape);
    const broken = new Map<number, Error>();
    const sorted = this.translation.keepsKeys ? this.#made : this.#made.toSorted((a, b) => compareBytes(a.key, b.key));
    for (const { key, base, error } of sorted) {
      if (error !== undefined) broken.set(entries.count, error);
      entries.addRow(key, 0, key.length, this.#rows, base);
    }
    const { kind } = entries.shape;
    const bytes = entries.unsealed();
    return broken.size > 0 ? new PartialNode(name, kind, bytes, broken) : new CachedNode(name, kind, bytes);
  }
}
