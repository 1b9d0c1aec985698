/**
 * Makes many missing rows of a migration at once, with the entries of their indexes. An index in another order than the keys is
 * rewritten almost whole for each chunk, so few large chunks cost much less than many small ones. But a large chunk takes
 * longer than others leave a generation alone. So its trees are written ahead (docs/protocol.md, "Written ahead"): from the state of
 * one generation, while others merge. Before they are stored, they take in the changes that others have merged since.
 *
 * The result is the same as if the chunk had been stored in the generation from which it was made, and the merges had come after it.
 */
import { isPromise } from '../base/brands.ts';
import { compareBytes, keyAfter } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';
import { decodeBound, encodeBound, isBehind } from '../format/stored-table.ts';
import type { Bound, StoredMigration } from '../format/stored-table.ts';
import { mergeVersion } from '../merge/merge-table.ts';
import type { TableMergeContext } from '../merge/growing-tree.ts';
import type { GrownVersion } from '../merge/merge-table.ts';
import { BlockGone } from '../tree/block-source.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { sharesOnly } from '../tree/shared-blocks.ts';
import { isSameTree } from '../tree/tree.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';
import { layeredState } from '../view/layered-state.ts';
import type { TableState } from '../view/table-state.ts';
import type { NextVersion, View } from '../view/view.ts';
import type { Chunk } from './chunk.ts';
import { PlainRows, RowNotMigrated } from './row-translation.ts';
import type { RowTranslation } from './row-translation.ts';
import { ChangeList } from './shadow-changes.ts';
import { diffTrees } from './tree-diff.ts';

/** The limits of rows that are made ahead. */
export interface AheadLimits {
  /** Rows to read at most. */
  readonly rows: number;
  /** Bytes of the buffer that rows are made in. A new buffer is begun when it is full, and a leaf in the making keeps the older ones. */
  readonly bytes: number;
  /** Whether the time for them is over. */
  readonly isOver: () => boolean;
}

/** Rows made from the state of one generation, and all rows and entries of the next version with them. */
export interface RowsAhead {
  /** The next version in the generation from which they were made. */
  readonly before: NextVersion;
  readonly after: TableState;
  /** The last key whose row is made; null if all are. */
  readonly built: Bound;
  readonly count: number;
}

/** Tables with fewer leaves are not worth it. */
const fewLeaves = 16;

/**
 * Whether rows can be made ahead from the state in a Block 0. The base must be the active version's own tree: merges then keep it
 * right for the new rows without knowing of them. Versions with different types of keys, or with indexes on functions, are left to chunks.
 */
export function canMakeAhead(view: View, table: string, { keepsKeys }: RowTranslation): boolean {
  const { rows, base, migration } = view.nextVersion(table) ?? {};
  const active = view.table(table);
  if (rows === undefined || base === undefined || active === undefined || migration?.phase !== 'building') return false;
  if (!keepsKeys || rows.shape.functionIndexes.length > 0 || rows.added.length > 0) return false;
  return decodeBound(migration.built) !== null && isSameTree(base.tree, active.tree) && hasManyLeaves(active.tree);
}

function hasManyLeaves(tree: Tree): boolean {
  const level = tree.ref?.level ?? 0;
  return level > 1 || (level === 1 && (tree.peekRoot()?.count ?? 0) >= fewLeaves);
}

/** Makes rows ahead, from a view of a Block 0 for which {@link canMakeAhead} is true. Undefined if the first row cannot be made. */
export async function makeAhead(
  view: View,
  table: string,
  translation: RowTranslation,
  limits: AheadLimits,
  context: TableMergeContext,
): Promise<RowsAhead | undefined> {
  const before = view.nextVersion(table) as NextVersion;
  const active = view.table(table) as TableState;
  const { built } = before.migration as StoredMigration;
  const made = new MissingRows(active.tree, before.rows.tree, decodeBound(built), translation, limits, context.pacer);
  await made.advance();
  const { tree, indexes, shape } = await mergeVersion(before.rows, context, made);
  if (made.seen === 0) return undefined;
  const stored = new Map<string, Tree>();
  for (const [name, index] of indexes) stored.set(name, await index.stored());
  const after = layeredState(shape, await tree.stored(), stored);
  return { before, after, built: made.built, count: made.count };
}

/**
 * Returns the chunk that stores rows made ahead behind a newer state. Undefined if it must not (docs/protocol.md, "Written ahead"):
 * another instance has made rows, too much has changed, in bytes, or the trees would refer to blocks that gc may delete.
 */
export async function storeAhead(
  view: View,
  table: string,
  made: RowsAhead,
  translation: RowTranslation,
  maxBytes: number,
  context: TableMergeContext,
): Promise<Chunk | undefined> {
  const now = view.nextVersion(table);
  if (now?.migration === undefined || !isSameWork(made.before, now)) return undefined;
  let version: GrownVersion;
  try {
    const changes = await changesSince(made.before, now, made.built, translation, maxBytes, context.pacer);
    if (changes === undefined) return undefined;
    version = await mergeVersion(made.after, context, changes.sorted());
    if (!(await sharesOnlyPresent(version, now.rows, context))) return undefined;
  } catch (error) {
    // A block of the state that the rows were made from. If it is a block of the present state, the next chunk needs it too.
    if (error instanceof BlockGone) return undefined;
    throw error;
  }
  const { built, count } = made;
  const bound = encodeBound(built);
  const migration = (present: StoredMigration | undefined): StoredMigration | undefined =>
    present && { ...present, built: bound };
  return {
    table: { name: table, versions: [version], migration },
    rows: count,
    built: count,
    problems: now.migration.problems,
    phase: now.migration.phase,
  };
}

/** Whether the trees of a version reach only blocks of the present state, and blocks that are born with the next one or later. */
async function sharesOnlyPresent(
  { tree, indexes }: GrownVersion,
  present: TableState,
  { birth, pacer }: TableMergeContext,
): Promise<boolean> {
  if (!(await sharesOnly(await tree.stored(), present.tree, birth, pacer))) return false;
  for (const [name, index] of indexes) {
    if (!(await sharesOnly(await index.stored(), present.indexes.get(name) as Tree, birth, pacer))) return false;
  }
  return true;
}

/** Whether nobody has made missing rows in between. */
function isSameWork({ rows, migration: before }: NextVersion, { rows: present, migration: now }: NextVersion): boolean {
  if (before === undefined || now?.phase !== 'building') return false;
  return before.birth === now.birth && before.built === now.built && rows.shape.canonical === present.shape.canonical;
}

/**
 * Returns the changes after which rows made ahead go with the present base, as if the merges had come after them. A row that the next
 * version has now is taken as it is. Any other row goes with the row of the base: without that there is none, and up to `built` it is
 * made of that. Undefined if there are too many, or if a row cannot be made.
 */
async function changesSince(
  before: NextVersion,
  now: NextVersion,
  built: Bound,
  translation: RowTranslation,
  maxBytes: number,
  pacer: Pacer,
): Promise<ChangeList | undefined> {
  const changes = new ChangeList(now.rows.shape);
  const follow = (key: Uint8Array, base: RowRef | undefined): void => {
    if (base === undefined || isBehind(key, built)) changes.put(key, undefined);
    else changes.set(key, translation.forwardInto(base, changes.rows));
  };
  try {
    for await (const { key, after } of diffTrees(before.rows.tree, now.rows.tree, now.rows.shape.layout)) {
      if (after === undefined) follow(key, await now.base.tree.lookup(key));
      else changes.put(key, after);
      if (changes.sizeBytes > maxBytes) return undefined;
      if (pacer.due()) await pacer.pause();
    }
    for await (const { key, after } of diffTrees(before.base.tree, now.base.tree, now.base.shape.layout)) {
      const isMissing =
        (await before.rows.tree.lookup(key)) === undefined && (await now.rows.tree.lookup(key)) === undefined;
      if (isMissing) follow(key, after);
      if (changes.sizeBytes > maxBytes) return undefined;
      if (pacer.due()) await pacer.pause();
    }
  } catch (error) {
    if (error instanceof RowNotMigrated) return undefined;
    throw error;
  }
  return changes;
}

/** The missing rows of the next version in the order of their keys, each made when its turn comes. */
class MissingRows implements ChangeStream {
  readonly #cursor: TreeCursor;
  /** The rows that the next version has already. */
  readonly #present: TreeCursor;
  #presentKey: Uint8Array | undefined;
  #presentAt = 0;
  readonly #translation: RowTranslation;
  readonly #limits: AheadLimits;
  readonly #pacer: Pacer;
  #rows = new PlainRows();
  #at = -1;
  #started = false;
  /** Rows made, and rows read. */
  count = 0;
  seen = 0;
  /** The last key whose row is there; null at the end of the table. */
  built: Bound;
  done = false;
  key: Uint8Array = new Uint8Array(0);
  readonly keyStart = 0;
  readonly remove = false;
  base = 0;

  constructor(
    active: Tree,
    present: Tree,
    built: Bound,
    translation: RowTranslation,
    limits: AheadLimits,
    pacer: Pacer,
  ) {
    const from = built === null || built === undefined ? undefined : keyAfter(built);
    this.#cursor = new TreeCursor(active, { from });
    this.#present = new TreeCursor(present, { from });
    this.#translation = translation;
    this.#limits = limits;
    this.#pacer = pacer;
    this.built = built;
  }

  get keyEnd(): number {
    return this.key.length;
  }

  get source(): PlainRows {
    return this.#rows;
  }

  advance(): void | Promise<void> {
    if (!this.#started) return this.#start();
    this.#at++;
    return this.#next();
  }

  async #start(): Promise<void> {
    this.#started = true;
    await this.#nextPresent();
    this.#cursor.expect(this.#limits.rows);
    this.#enter(await this.#cursor.next());
    await this.#next();
  }

  #enter(isMore: boolean): void {
    this.#at = this.#cursor.from;
    if (isMore) return;
    this.built = null;
    this.done = true;
  }

  #next(): void | Promise<void> {
    if (this.done) return undefined;
    const { node, to } = this.#cursor;
    if (this.#at >= to) {
      const moved = this.#cursor.next();
      if (isPromise(moved)) return moved.then((isMore) => this.#goOn(isMore));
      return this.#goOn(moved);
    }
    if (this.seen > 0 && (this.seen >= this.#limits.rows || this.#limits.isOver())) {
      this.done = true;
      return undefined;
    }
    const key = node.key(this.#at);
    if (this.#presentKey !== undefined && compareBytes(this.#presentKey, key) <= 0) return this.#passPresent(key);
    this.#make(key);
    return (this.seen & 0x1f) === 0 && this.#pacer.due() ? this.#pacer.pause() : undefined;
  }

  #goOn(isMore: boolean): void | Promise<void> {
    this.#enter(isMore);
    return this.#next();
  }

  /** Makes the row at the cursor. If it cannot be made, the rows end before it: a chunk finds out why. */
  #make(key: Uint8Array): void {
    const { node } = this.#cursor;
    if (this.#rows.sizeBytes > this.#limits.bytes) this.#rows = new PlainRows();
    try {
      this.base = this.#translation.forwardInto({ source: node, base: node.rowBase(this.#at) }, this.#rows);
    } catch (error) {
      if (!(error instanceof RowNotMigrated)) throw error;
      this.done = true;
      return;
    }
    this.key = key;
    this.built = key;
    this.seen++;
    this.count++;
  }

  /** Passes rows that the next version has already. Then the row at the cursor is a missing one, or there is none. */
  async #passPresent(first: Uint8Array): Promise<void> {
    let key = first;
    for (;;) {
      const order = this.#presentKey === undefined ? 1 : compareBytes(this.#presentKey, key);
      if (order > 0) break;
      await this.#nextPresent();
      if (order < 0) continue;
      this.built = key;
      this.seen++;
      if (this.#pacer.due()) await this.#pacer.pause();
      if (++this.#at >= this.#cursor.to) this.#enter(await this.#cursor.next());
      if (this.done) return;
      key = this.#cursor.node.key(this.#at);
    }
    await this.#next();
  }

  async #nextPresent(): Promise<void> {
    const cursor = this.#present;
    this.#presentAt++;
    if (this.#presentKey === undefined || this.#presentAt >= cursor.to) {
      if (!(await cursor.next())) {
        this.#presentKey = undefined;
        return;
      }
      this.#presentAt = cursor.from;
    }
    this.#presentKey = cursor.node.key(this.#presentAt);
  }
}
