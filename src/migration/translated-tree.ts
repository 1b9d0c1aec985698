/**
 * A tree with the rows of one version, read as rows of another. Inner nodes are shared; leaves are translated when they are
 * read, and cached like others. Keys are the same in both versions.
 */
import { compareBytes } from '../base/bytes.ts';
import { MigrationError } from '../base/errors.ts';
import { describeKey } from '../base/messages.ts';
import type { BlockCache, CacheCounters } from '../cache/block-cache.ts';
import { CachedNode } from '../cache/cached-node.ts';
import type { CacheEntry } from '../cache/cached-node.ts';
import type { ReadMemory } from '../cache/memory-budget.ts';
import type { BlockRef } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { rowMarks } from '../format/row-layout.ts';
import type { BlockSource } from '../tree/block-source.ts';
import { Tree, PartialNode } from '../tree/tree.ts';
import type { RowRef } from '../tree/tree.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import { PlainRows, RowNotMigrated } from './row-translation.ts';
import type { RowTranslation } from './row-translation.ts';

/** The parts that a translated tree is made with. */
export interface TranslationOptions {
  readonly translation: RowTranslation;
  readonly cache: BlockCache;
  /** Shape of the translated leaves. */
  readonly leaf: EntryShape;
  /** Returns the name of a block of the tree; undefined if only the loaded node knows its name. */
  readonly nameOf: ((ref: BlockRef) => string) | undefined;
}

class TranslatedSource implements BlockSource {
  readonly counters: CacheCounters;
  readonly memory: ReadMemory;
  readonly #source: BlockSource;
  readonly #options: TranslationOptions;
  readonly #suffix: string;
  /** The cache entries of the translated children of inner nodes. */
  readonly #entries = new WeakMap<Node, (CacheEntry | undefined)[]>();

  constructor(source: BlockSource, options: TranslationOptions) {
    this.#source = source;
    this.#options = options;
    this.counters = source.counters;
    this.memory = source.memory;
    this.#suffix = `#${options.translation.to.version}`;
  }

  #findLeaf(ref: BlockRef, passing = false): CacheEntry | undefined {
    const { nameOf, cache } = this.#options;
    const entry = nameOf && cache.find(nameOf(ref) + this.#suffix, passing);
    return entry?.node === undefined ? undefined : entry;
  }

  find(ref: BlockRef): CacheEntry | undefined {
    const leaf = this.#findLeaf(ref);
    if (leaf !== undefined) {
      this.counters.hits++;
      return leaf;
    }
    const entry = this.#source.find(ref);
    return entry?.node?.level === 0 ? undefined : entry;
  }

  async load(ref: BlockRef, passing = false): Promise<Node> {
    const found = this.#findLeaf(ref, passing)?.node;
    if (found !== undefined) {
      this.counters.hits++;
      return found;
    }
    const node = await this.#source.load(ref, passing);
    return node.level > 0 ? node : this.#held(node, passing);
  }

  getCachedChild(node: Node, i: number, passing = false): Node | undefined {
    if (node.level > 1) return this.#source.getCachedChild(node, i, passing);
    let entries = this.#entries.get(node);
    if (entries === undefined) {
      entries = [];
      this.#entries.set(node, entries);
    }
    const entry = entries[i];
    if (entry?.node !== undefined) {
      if (!passing) entry.used = true;
      this.counters.hits++;
      return entry.node;
    }
    const found = this.#findLeaf(node.child(i), passing);
    if (found !== undefined) {
      entries[i] = found;
      return found.node;
    }
    const child = this.#source.getCachedChild(node, i, passing);
    return child && this.#held(child, passing);
  }

  peek(ref: BlockRef): Node | undefined {
    const node = this.#source.peek(ref);
    return node?.level === 0 ? this.#findLeaf(ref)?.node : node;
  }

  peekChild(node: Node, i: number): Node | undefined {
    return node.level > 1 ? this.#source.peekChild(node, i) : this.#findLeaf(node.child(i))?.node;
  }

  #held(leaf: Node, passing: boolean): CachedNode {
    const { cache } = this.#options;
    const held = cache.find(leaf.name + this.#suffix, passing)?.node;
    if (held !== undefined) return held;
    const translated = this.translate(leaf);
    cache.add(translated, passing);
    return translated;
  }

  translate(leaf: Node): CachedNode {
    const { translation, leaf: shape } = this.#options;
    const made = new MadeEntries(translation, shape);
    for (let i = 0; i < leaf.count; i++) {
      // Leaves of a staged commit also hold deletions.
      if (isDeleted(leaf, i)) made.addDeleted(leaf.key(i));
      else made.addTranslated(leaf.key(i), { source: leaf, base: leaf.rowBase(i) });
    }
    return made.node(leaf.name + this.#suffix);
  }
}

export class TranslatedTree extends Tree {
  readonly #tree: Tree;
  readonly #source: TranslatedSource;
  #root: Node | undefined;

  constructor(tree: Tree, options: TranslationOptions) {
    const source = new TranslatedSource(tree.source, options);
    super(source, tree.ref, undefined, true);
    this.#tree = tree;
    this.#source = source;
  }

  /** Returns the root if Block 0 or a commit holds it. */
  #heldRoot(): Node | undefined {
    const { node } = this.#tree;
    if (node === undefined || node.level > 0) return node;
    this.#root ??= this.#source.translate(node);
    return this.#root;
  }

  override getCachedRoot(): Node | undefined {
    return this.#heldRoot() ?? super.getCachedRoot();
  }

  override peekRoot(): Node | undefined {
    return this.#heldRoot() ?? super.peekRoot();
  }

  override async loadRoot(): Promise<Node> {
    return this.#heldRoot() ?? super.loadRoot();
  }
}

/** Turns an error of translation into the error that applications get; other errors stay as they are. */
function asMigrationError(error: unknown, { from, to }: RowTranslation): unknown {
  if (!(error instanceof RowNotMigrated)) return error;
  const { primaryKey } = error;
  const message =
    `The row of table '${to.name}' with primary key ${describeKey(primaryKey)} cannot be migrated from version ` +
    `${from.version} to version ${to.version}. ${error.message}`;
  return new MigrationError(to.name, primaryKey, message, { cause: error.cause ?? error });
}

interface MadeEntry {
  readonly key: Uint8Array;
  readonly base: number;
  readonly error: Error | undefined;
}

/**
 * Rows of the next version that are made in memory, for a node. A row that cannot be made has an entry as well: it hides the
 * rows of lower layers, and a reader that would show it gets the error.
 */
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

  /** Adds the deletion of a row. Keys are keys of the next version. */
  addDeleted(key: Uint8Array): void {
    this.#made.push({ key, base: this.#rows.addDeleted(this.translation.to.layout), error: undefined });
  }

  /** Adds the translation of a row of the active version, with its marks. */
  addTranslated(key: Uint8Array, row: RowRef): void {
    this.#add(key, () => {
      const marks = (row.source.rows[row.base] as number) & rowMarks;
      const base = this.translation.forwardInto(row, this.#rows);
      this.#rows.rows[base] = (this.#rows.rows[base] as number) | marks;
      return base;
    });
  }

  /** Adds a stored row, brought in line with the row of the active version, which has changed from `before` to `after`. */
  addInLine(key: Uint8Array, stored: RowRef, before: RowRef | undefined, after: RowRef): void {
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
