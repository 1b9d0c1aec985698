/**
 * One step of a migration, which is stored as one generation: it brings rows of the new version that are out of line back in
 * line with the active version, and then makes some of the missing rows. It reads and writes only the state in Block 0, so any
 * node with the code of the new version can take the next step.
 */
import type { Pacer } from '../base/pacer.ts';
import { compareBytes, keyAfter } from '../base/bytes.ts';
import { invariant } from '../base/errors.ts';
import { growingRows, mergeBase, mergeVersion } from '../merge/merge-table.ts';
import type { TableMergeContext } from '../merge/growing-tree.ts';
import type { MergedTable } from '../merge/merge-table.ts';
import { decodeBound, encodeBound } from '../format/stored-table.ts';
import type { Bound, MigrationPhase, MigrationProblem, StoredMigration } from '../format/stored-table.ts';
import { describeKey } from '../base/messages.ts';
import type { TableState } from '../view/table-state.ts';
import type { View } from '../view/view.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { isSameTree } from '../tree/tree.ts';
import type { RowRef } from '../tree/tree.ts';
import { ChangeList } from './shadow-changes.ts';
import type { ChunkLimits } from './chunk-work.ts';
import { RowNotMigrated } from './row-translation.ts';
import type { RowTranslation } from './row-translation.ts';
import { diffTrees } from './tree-diff.ts';
import { hasUniqueIndex, uniqueProblems } from './index-daemon.ts';

/** Problems that Block 0 keeps at most. */
const maxProblems = 20;
/** Characters of the message of each problem. */
const maxMessageLength = 300;

/** The limits of a chunk of a migration. */
export interface MigrationLimits extends ChunkLimits {
  /**
   * Rows read to make missing ones. Rows that have changed since do not count: a migration that brought fewer rows in line than
   * others change would never end.
   */
  readonly built: number;
}

export interface Chunk {
  /** The table to store; undefined if the trees need no change. */
  readonly table: MergedTable | undefined;
  /** Rows that were made or changed. */
  readonly rows: number;
  /** The rows among them that were missing before. */
  readonly built: number;
  readonly problems: readonly MigrationProblem[];
  /** The phase of the migration after the chunk; undefined if the old version is retired. */
  readonly phase: MigrationPhase | undefined;
}

/** Whether the old version may be retired: not yet, once a commit says so, or now. */
export type Retirement = 'no' | 'soon' | 'now';

/** Computes the next chunk of a table, whose migration must be under way. */
export async function nextChunk(
  view: View,
  table: string,
  translation: RowTranslation,
  limits: MigrationLimits,
  context: TableMergeContext,
  retirement: Retirement,
): Promise<Chunk> {
  const builder = new ChunkBuilder(view, table, translation, limits, context.pacer);
  await builder.lineUp();
  if (builder.isInLine) await builder.build();
  await builder.checkUnique(retirement);
  return builder.finish(context, retirement === 'now');
}

class ChunkBuilder {
  readonly #translation: RowTranslation;
  readonly #limits: MigrationLimits;
  readonly #pacer: Pacer;
  readonly #migration: StoredMigration;
  readonly #active: TableState;
  readonly #rows: TableState;
  readonly #base: TableState;
  readonly #toRows: ChangeList;
  readonly #toBase: ChangeList;
  readonly #problems: MigrationProblem[] = [];
  #seen = 0;
  #builtRows = 0;
  /** The last key whose row is made; undefined before the first, null once all rows are made. */
  #built: Bound;
  isInLine = false;
  /** Whether a later chunk must check the unique indexes. */
  #isUnchecked = false;

  constructor(view: View, table: string, translation: RowTranslation, limits: MigrationLimits, pacer: Pacer) {
    const active = view.table(table);
    const nextVersion = view.nextVersion(table);
    invariant(
      active !== undefined && nextVersion?.migration !== undefined,
      `Table ${table} has no migration to go on with`,
    );
    this.#translation = translation;
    this.#limits = limits;
    this.#pacer = pacer;
    this.#migration = nextVersion.migration;
    this.#active = active;
    this.#rows = nextVersion.rows;
    this.#base = nextVersion.base;
    this.#toRows = new ChangeList(nextVersion.rows.shape);
    this.#toBase = new ChangeList(active.shape);
    const { built } = nextVersion.migration;
    this.#built = decodeBound(built);
  }

  /** Whether the chunk has reached one of its limits. */
  get #isFull(): boolean {
    const { rows, bytes, isOver } = this.#limits;
    return this.#seen >= rows || this.#toRows.sizeBytes + this.#toBase.sizeBytes >= bytes || isOver();
  }

  async #step(): Promise<void> {
    this.#seen++;
    if ((this.#seen & 0x1f) === 0 && this.#pacer.due()) await this.#pacer.pause();
  }

  /** Applies changes of the active version to the rows that are already made. */
  async lineUp(): Promise<void> {
    for await (const { key, before, after } of diffTrees(
      this.#base.tree,
      this.#active.tree,
      this.#active.shape.layout,
    )) {
      if (this.#isFull && this.#seen > 0) return;
      try {
        await this.#lineUpRow(key, before, after);
        this.#toBase.put(key, after);
      } catch (error) {
        this.#note(error);
        if (this.#problems.length >= maxProblems) return;
      }
      await this.#step();
    }
    this.isInLine = this.#problems.length === 0;
  }

  async #lineUpRow(key: Uint8Array, before: RowRef | undefined, after: RowRef | undefined): Promise<void> {
    const translation = this.#translation;
    if (after === undefined) {
      const gone = this.#keyOfGone(key);
      if (gone !== undefined && (await this.#rows.tree.lookup(gone)) !== undefined) this.#toRows.put(gone, undefined);
      return;
    }
    const isBuilt = this.#built === null || (this.#built !== undefined && compareBytes(key, this.#built) <= 0);
    let key2: Uint8Array;
    try {
      key2 = translation.keyForward(key);
    } catch (error) {
      // There is no row of the new version for this key yet, and none is made until the key fits.
      if (error instanceof RowNotMigrated && !isBuilt) return;
      throw error;
    }
    const stored = await this.#rows.tree.lookup(key2);
    const { rows } = this.#toRows;
    if (stored !== undefined) {
      this.#toRows.set(key2, rows.add(translation.to.layout, translation.inLine(stored, before, after)));
    } else if (isBuilt) this.#toRows.set(key2, translation.forwardInto(after, rows));
  }

  /** Returns the new version's key of a deleted row; undefined if the key does not fit there. */
  #keyOfGone(key: Uint8Array): Uint8Array | undefined {
    try {
      return this.#translation.keyForward(key);
    } catch (error) {
      if (error instanceof RowNotMigrated) return undefined;
      throw error;
    }
  }

  #note(error: unknown): void {
    if (!(error instanceof RowNotMigrated)) throw error;
    const message = error.message.slice(0, maxMessageLength);
    this.#problems.push({ key: describeKey(error.primaryKey), message });
  }

  /** Makes missing rows, in the order of the active version's keys, until the chunk is full. */
  async build(): Promise<void> {
    if (this.#built === null) return;
    const cursor = new TreeCursor(this.#active.tree, { from: this.#built && keyAfter(this.#built) });
    const most = this.#seen + this.#limits.built;
    cursor.expect(this.#limits.built);
    while (await cursor.next()) {
      const { node } = cursor;
      for (let i = cursor.from; i < cursor.to; i++) {
        if (this.#seen >= most || (this.#isFull && this.#seen > 0)) return;
        const key = node.key(i);
        try {
          await this.#make(key, { source: node, base: node.rowBase(i) });
          if (this.#problems.length === 0) this.#built = key;
        } catch (error) {
          this.#note(error);
          if (this.#problems.length >= maxProblems) return;
        }
        await this.#step();
      }
    }
    if (this.#problems.length === 0) this.#built = null;
  }

  /** Makes one row. After the first problem it only looks for further problems. */
  async #make(key: Uint8Array, row: RowRef): Promise<void> {
    const translation = this.#translation;
    const key2 = translation.keyForward(key);
    // If the keys differ, nobody has written the new version yet, and lookups would read blocks all over the tree.
    if (translation.keepsKeys && (await this.#rows.tree.lookup(key2)) !== undefined) return;
    if (this.#problems.length > 0) translation.forward(row);
    else {
      this.#toRows.set(key2, translation.forwardInto(row, this.#toRows.rows));
      this.#builtRows++;
    }
  }

  /**
   * Looks for rows that agree in a unique index of the new version. There may be none when the migration switches, nor when the
   * old version is retired, and instances that write the old version do not check. The check reads stored rows, so it comes
   * after the last chunk that stores rows.
   */
  async checkUnique(retirement: Retirement): Promise<void> {
    if (this.#built !== null || !this.isInLine || !hasUniqueIndex(this.#translation.to)) return;
    if (this.#migration.phase !== 'building' && retirement === 'no') return;
    this.#isUnchecked = this.#toRows.count > 0;
    if (this.#isUnchecked) return;
    for (const { key, message } of await uniqueProblems(this.#rows, this.#pacer, maxProblems)) {
      this.#problems.push({ key, message: message.slice(0, maxMessageLength) });
    }
  }

  get #phase(): MigrationPhase {
    const { phase } = this.#migration;
    if (phase !== 'building') return phase;
    if (this.#problems.length > 0) return 'blocked';
    return this.#built === null && this.isInLine && !this.#isUnchecked ? 'switched' : 'building';
  }

  async finish(context: TableMergeContext, retire: boolean): Promise<Chunk> {
    const problems = this.#problems;
    const phase = this.#phase;
    const rows = this.#toRows.count;
    const isComplete = phase === 'switched' && this.isInLine && !this.#isUnchecked && problems.length === 0;
    const built = this.#builtRows;
    const { table: name, from, built: boundBefore } = this.#migration;
    const bound = encodeBound(this.#built);
    const isSameBase = isSameTree(this.#active.tree, this.#base.tree);
    const isMoved = bound !== boundBefore || rows > 0 || (this.isInLine ? !isSameBase : this.#toBase.count > 0);
    const retires = retire && isComplete;
    if (!isMoved && !retires && phase === this.#migration.phase)
      return { table: undefined, rows, built, problems, phase };
    const versions = rows === 0 ? [] : [await mergeVersion(this.#rows, context, this.#toRows.sorted())];
    if (retires) {
      return {
        table: { name, versions, dropped: [from], migration: () => undefined },
        rows,
        built,
        problems,
        phase: undefined,
      };
    }
    const base = this.isInLine
      ? growingRows(this.#active, context)
      : await mergeBase(this.#base, context, this.#toBase.sorted());
    const migration = (present: StoredMigration | undefined): StoredMigration | undefined =>
      present && { ...present, built: bound, problems, phase: present.phase === 'building' ? phase : present.phase };
    return { table: { name, versions, base, migration }, rows, built, problems, phase };
  }
}
