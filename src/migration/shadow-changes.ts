/**
 * Makes the rows of the active version that a commit needs when rows are written in another version. Both rows have the same
 * key. Nodes without the code of the other version read, write and merge the rows of the active version.
 */
import { andThen } from '../base/brands.ts';
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

/** Bytes of the buffer that rows are made in. A new buffer is begun when it is full. */
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
  /** All rows, sorted, if the two versions order keys differently; undefined if rows are made one by one. */
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

  /** `written`: rows in the other version; `active`: the state that they change. Throws `EncodeError`. */
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
    return andThen(advanced, () => this.#make());
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

  /** Makes the active version's row for the current row of `written`. */
  #make(): void | Promise<void> {
    const { done, key, keyStart, keyEnd } = this.#written;
    if (done) {
      this.#shadow = undefined;
      return undefined;
    }
    const activeKey = this.#translation.keyBack(key.slice(keyStart, keyEnd));
    const before = this.#active.lookup(activeKey);
    return andThen(before, (found) => this.#take(activeKey, found));
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
          `${row} cannot be translated into version ${from.version}, which is still in force during the migration to version ${to.version}: ` +
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

interface Change {
  readonly key: Uint8Array;
  /** The offset at which the row begins. */
  readonly base: number;
}

/** Rows that a migration writes into a tree: collected in any order, applied in the order of their keys. */
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

  /** Adds a copy of a row, or the deletion of the row if there is none. */
  put(key: Uint8Array, rowRef: RowRef | undefined): void {
    const { layout } = this.#shape;
    this.set(key, rowRef === undefined ? this.rows.addDeleted(layout) : this.rows.addCopy(layout, rowRef));
  }

  /** Returns the collected changes in the order of their keys, for a tree. No change may be added afterwards. */
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

  /** Empty at the end, because callers read the key before they check `done`. */
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
