/**
 * A tree of one version's rows, read as rows of another: inner nodes as they are, leaves made anew when they are read and
 * held in the cache beside the others. Keys are the same in both versions.
 */
import { MigrationError } from '../base/errors.ts';
import type { BlockRef } from '../format/child-ref.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import { rowMarks } from '../format/row-layout.ts';
import { describeValue } from '../format/values.ts';
import type { BlockCache, CacheCounters, CacheSlot } from '../memory/block-cache.ts';
import type { BlockSource } from '../tree/block-source.ts';
import { Tree } from '../tree/tree.ts';
import type { RowHit } from '../tree/tree.ts';
import { PlainRows } from './plain-rows.ts';
import { RowNotMigrated } from './row-translation.ts';
import type { RowTranslation } from './row-translation.ts';

/** For an error of translation the one that applications get; others as they are. */
export function asMigrationError(error: unknown, { from, to }: RowTranslation): unknown {
  if (!(error instanceof RowNotMigrated)) return error;
  const { primaryKey } = error;
  const message =
    `The row of table '${to.name}' with primary key ${describeValue(primaryKey)} cannot be brought from version ` +
    `${from.version} to version ${to.version}. ${error.message}`;
  return new MigrationError(to.name, primaryKey, message, { cause: error.cause ?? error });
}

/** A row in another version, marks included. Throws {@link MigrationError}. */
export function translateRow(translation: RowTranslation, hit: RowHit, rows: PlainRows): number {
  try {
    const marks = (hit.source.rows[hit.base] as number) & rowMarks;
    const base = translation.forwardInto(hit, rows);
    rows.rows[base] = (rows.rows[base] as number) | marks;
    return base;
  } catch (error) {
    throw asMigrationError(error, translation);
  }
}

/** What a translated tree is made with. */
export interface TranslationOptions {
  readonly translation: RowTranslation;
  readonly cache: BlockCache;
  /** Shape of the leaves that come out. */
  readonly leaf: EntryShape;
  /** Names of the tree's blocks; undefined where only they themselves know. */
  readonly nameOf: ((ref: BlockRef) => string) | undefined;
}

class TranslatedSource implements BlockSource {
  readonly counters: CacheCounters;
  readonly #source: BlockSource;
  readonly #options: TranslationOptions;
  readonly #suffix: string;
  /** Where the translated children of inner nodes were found. */
  readonly #slots = new WeakMap<Node, (CacheSlot | undefined)[]>();

  constructor(source: BlockSource, options: TranslationOptions) {
    this.#source = source;
    this.#options = options;
    this.counters = source.counters;
    this.#suffix = `#${options.translation.to.version}`;
  }

  #findLeaf(ref: BlockRef): CacheSlot | undefined {
    const { nameOf, cache } = this.#options;
    const slot = nameOf && cache.find(nameOf(ref) + this.#suffix);
    return slot?.node === undefined ? undefined : slot;
  }

  find(ref: BlockRef): CacheSlot | undefined {
    const leaf = this.#findLeaf(ref);
    if (leaf !== undefined) {
      this.counters.hits++;
      return leaf;
    }
    const slot = this.#source.find(ref);
    return slot?.node?.level === 0 ? undefined : slot;
  }

  async load(ref: BlockRef): Promise<Node> {
    const found = this.#findLeaf(ref)?.node;
    if (found !== undefined) {
      this.counters.hits++;
      return found;
    }
    const node = await this.#source.load(ref);
    return node.level > 0 ? node : this.#held(node);
  }

  peekChild(node: Node, i: number): Node | undefined {
    if (node.level > 1) return this.#source.peekChild(node, i);
    let slots = this.#slots.get(node);
    if (slots === undefined) {
      slots = [];
      this.#slots.set(node, slots);
    }
    const slot = slots[i];
    if (slot?.node !== undefined) {
      slot.used = true;
      this.counters.hits++;
      return slot.node;
    }
    const found = this.#findLeaf(node.child(i));
    if (found !== undefined) {
      slots[i] = found;
      return found.node;
    }
    const child = this.#source.peekChild(node, i);
    if (child === undefined) return undefined;
    try {
      return this.#held(child);
    } catch (error) {
      // Whoever loads it is told.
      if (error instanceof MigrationError) return undefined;
      throw error;
    }
  }

  #held(leaf: Node): Node {
    const { cache } = this.#options;
    const held = cache.find(leaf.name + this.#suffix)?.node;
    if (held !== undefined) return held;
    const translated = this.translate(leaf);
    cache.add(translated);
    return translated;
  }

  /** Throws {@link MigrationError} for a leaf with a row that cannot be translated. */
  translate(leaf: Node): Node {
    const { translation, leaf: shape } = this.#options;
    const rows = new PlainRows();
    const entries = new NodeEntries(shape);
    for (let i = 0; i < leaf.count; i++) {
      const key = leaf.key(i);
      entries.addRow(
        key,
        0,
        key.length,
        rows,
        translateRow(translation, { source: leaf, base: leaf.rowBase(i) }, rows),
      );
    }
    const name = leaf.name + this.#suffix;
    return openNode(name, entries.encode(name, 0, entries.count));
  }
}

export class TranslatedTree extends Tree {
  readonly #tree: Tree;
  readonly #source: TranslatedSource;
  readonly #translation: RowTranslation;
  #root: Node | undefined;

  constructor(tree: Tree, options: TranslationOptions) {
    const source = new TranslatedSource(tree.source, options);
    super(source, tree.ref);
    this.#tree = tree;
    this.#source = source;
    this.#translation = options.translation;
  }

  /** A root that Block 0 or a commit holds. */
  #heldRoot(): Node | undefined {
    const { node } = this.#tree;
    if (node === undefined || node.level > 0) return node;
    this.#root ??= this.#source.translate(node);
    return this.#root;
  }

  override peekRoot(): Node | undefined {
    try {
      return this.#heldRoot() ?? super.peekRoot();
    } catch (error) {
      if (error instanceof MigrationError) return undefined;
      throw error;
    }
  }

  override async loadRoot(): Promise<Node> {
    return this.#heldRoot() ?? super.loadRoot();
  }

  override lookup(key: Uint8Array, length: number = key.length): RowHit | undefined | Promise<RowHit | undefined> {
    const found = super.lookup(key, length);
    return found instanceof Promise ? this.#lookupSlowly(found, key.slice(0, length)) : found;
  }

  async #lookupSlowly(looked: Promise<RowHit | undefined>, key: Uint8Array): Promise<RowHit | undefined> {
    try {
      return await looked;
    } catch (error) {
      if (!(error instanceof MigrationError)) throw error;
      // Another row of its leaf may be to blame.
      const hit = await this.#tree.lookup(key);
      if (hit === undefined) return undefined;
      const rows = new PlainRows();
      return { source: rows, base: translateRow(this.#translation, hit, rows) };
    }
  }
}

/** A layer of rows that could not be made: whoever would see one of them is told why not. */
export class FailingTree extends Tree {
  readonly #errors: ReadonlyMap<string, MigrationError>;

  /** `errors`: by key, as {@link keyText} has it; at least one. */
  constructor(errors: ReadonlyMap<string, MigrationError>, source: BlockSource) {
    super(source, { birth: 0, id: '0'.repeat(16), count: errors.size, sizeBytes: 0, level: 0 });
    this.#errors = errors;
  }

  override peekRoot(): undefined {
    return undefined;
  }

  override async loadRoot(): Promise<never> {
    const [first] = this.#errors.values();
    throw first as MigrationError;
  }

  override lookup(key: Uint8Array, length: number = key.length): undefined | Promise<never> {
    const error = this.#errors.get(keyText(key.subarray(0, length)));
    return error === undefined ? undefined : Promise.reject(error);
  }
}

/** A key as something that maps can hold. */
export function keyText(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
}
