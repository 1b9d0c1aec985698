/**
 * For rows that are written in another version than the active version: the rows of the active version that go with them, with the same keys.
 * Nodes without the code of the version read, write and merge those.
 */
import { isPromise } from '../base/brands.ts';
import { compareBytes } from '../base/bytes.ts';
import { EncodeError, MigrationError } from '../base/errors.ts';
import { describeKey } from '../base/messages.ts';
import { decodeRow } from '../format/row-decode.ts';
import { FieldProblem } from '../format/row-encode.ts';
import { rowDeletedFlag, rowUpdatedFlag } from '../format/row-layout.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { RowRef } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';
import type { TableState } from '../view/table-state.ts';
import { PlainRows, RowNotMigrated } from './row-translation.ts';
import type { RowTranslation } from './row-translation.ts';

/** Rows are made into memory of so many bytes, which goes once they are written. */
const chunkBytes = 1024 * 1024;

interface ShadowRow {
  readonly key: Uint8Array;
  readonly source: RowSource;
  readonly base: number;
}

export class ShadowChanges implements ChangeStream {
  readonly #written: ChangeStream;
  readonly #active: TableState;
  readonly #translation: RowTranslation;
  #rows = new PlainRows();
  /** All of them, where keys come in another order; undefined where they come one by one. */
  #sorted: ShadowRow[] | undefined;
  #next = 0;
  #shadow: ShadowRow | undefined;
  readonly keyStart = 0;
  readonly remove = false;

  private constructor(written: ChangeStream, active: TableState, translation: RowTranslation) {
    this.#written = written;
    this.#active = active;
    this.#translation = translation;
  }

  /** `written`: rows in the other version; `active`: the rows that they are written over. Throws `EncodeError`. */
  static async of(written: ChangeStream, active: TableState, translation: RowTranslation): Promise<ShadowChanges> {
    const changes = new ShadowChanges(written, active, translation);
    if (translation.keepsKeys) await changes.#make();
    else await changes.#makeAll();
    return changes;
  }

  get done(): boolean {
    return this.#shadow === undefined;
  }

  get key(): Uint8Array {
    return (this.#shadow as ShadowRow).key;
  }

  get keyEnd(): number {
    return this.key.length;
  }

  get source(): RowSource | undefined {
    return this.#shadow?.source;
  }

  get base(): number {
    return this.#shadow?.base ?? 0;
  }

  advance(): void | Promise<void> {
    if (this.#sorted !== undefined) {
      this.#shadow = this.#sorted[this.#next++];
      return undefined;
    }
    const advanced = this.#written.advance();
    return isPromise(advanced) ? advanced.then(() => this.#make()) : this.#make();
  }

  async #makeAll(): Promise<void> {
    const all: ShadowRow[] = [];
    while (!this.#written.done) {
      await this.#make();
      if (this.#shadow !== undefined) all.push(this.#shadow);
      await this.#written.advance();
    }
    this.#sorted = all.toSorted((a, b) => compareBytes(a.key, b.key));
    this.#shadow = this.#sorted[this.#next++];
  }

  /** Makes the shadow row of the present row. */
  #make(): void | Promise<void> {
    const { done, key, keyStart, keyEnd } = this.#written;
    if (done) {
      this.#shadow = undefined;
      return undefined;
    }
    const activeKey = this.#translation.keyBack(key.slice(keyStart, keyEnd));
    const before = this.#active.lookup(activeKey);
    if (isPromise(before)) return before.then((found) => this.#take(activeKey, found));
    return this.#take(activeKey, before);
  }

  #take(key: Uint8Array, before: RowRef | undefined): void {
    if (this.#rows.sizeBytes > chunkBytes) this.#rows = new PlainRows();
    this.#shadow = { key, source: this.#rows, base: this.#encode(before) };
  }

  #encode(before: RowRef | undefined): number {
    const rows = this.#rows;
    const { from, to } = this.#translation;
    const { source, base } = this.#written;
    const marks = source === undefined ? rowDeletedFlag : (source.rows[base] as number);
    if (source === undefined || (marks & rowDeletedFlag) !== 0) return rows.addDeleted(from.layout);
    const old = before && decodeRow(from.layout, before.source, before.base);
    const written = decodeRow(to.layout, source, base);
    try {
      const row = this.#translation.back(written, old);
      const at = rows.add(from.layout, row);
      rows.rows[at] = (rows.rows[at] as number) | (marks & rowUpdatedFlag);
      return at;
    } catch (error) {
      if (error instanceof RowNotMigrated) {
        const { table, primaryKey, message } = error;
        const row = `The row of table '${table}' with primary key ${describeKey(primaryKey)}`;
        throw new MigrationError(
          table,
          primaryKey,
          `${row} cannot be made into one of version ${from.version}, which is in force beside version ${to.version}: ` +
            `${message} Nothing was written.`,
          { cause: error.cause ?? error },
        );
      }
      if (!(error instanceof FieldProblem)) throw error;
      throw new EncodeError(
        from.name,
        error.field,
        error.value,
        `As a row of version ${from.version}: ${error.message}`,
      );
    }
  }
}

// Rows that a migration writes into a tree: collected in any order, applied in the order of their keys.

interface Change {
  readonly key: Uint8Array;
  /** Where the row begins. */
  readonly base: number;
}

export class ChangeList {
  readonly #shape: TableShape;
  readonly #changes: Change[] = [];
  readonly rows: PlainRows = new PlainRows();
  #keyBytes = 0;

  constructor(shape: TableShape) {
    this.#shape = shape;
  }

  get count(): number {
    return this.#changes.length;
  }

  get sizeBytes(): number {
    return this.rows.sizeBytes + this.#keyBytes;
  }

  /** Adds a row that was written into {@link rows}. No key may be added twice. */
  set(key: Uint8Array, base: number): void {
    this.#keyBytes += key.length;
    this.#changes.push({ key, base });
  }

  /** Adds a copy of a row, or says that there is none. */
  put(key: Uint8Array, rowRef: RowRef | undefined): void {
    const { layout } = this.#shape;
    this.set(key, rowRef === undefined ? this.rows.addDeleted(layout) : this.rows.addCopy(layout, rowRef));
  }

  /** What was collected, to be applied to a tree. Nothing may be added any more. */
  sorted(): ChangeStream {
    return new SortedChanges(
      this.#changes.toSorted((a, b) => compareBytes(a.key, b.key)),
      this.rows,
    );
  }
}

const noKey = new Uint8Array(0);

class SortedChanges implements ChangeStream {
  readonly #changes: readonly Change[];
  readonly source: RowSource;
  readonly keyStart = 0;
  #at = 0;

  constructor(changes: readonly Change[], source: RowSource) {
    this.#changes = changes;
    this.source = source;
  }

  get done(): boolean {
    return this.#at >= this.#changes.length;
  }

  get #change(): Change {
    return this.#changes[this.#at] as Change;
  }

  /** A caller that asks whether there is more looks at the key as well. */
  get key(): Uint8Array {
    return this.done ? noKey : this.#change.key;
  }

  get keyEnd(): number {
    return this.key.length;
  }

  get base(): number {
    return this.#change.base;
  }

  get remove(): boolean {
    return ((this.source.rows[this.base] as number) & rowDeletedFlag) !== 0;
  }

  advance(): void {
    this.#at++;
  }
}
