/**
 * Builds the tree of a bundle from its entries alone, without a tree of the database: equal entries make equal blocks. The keys decide
 * where a node ends: mostly after a key whose hash is low. So a change moves no boundary but those around it, and all other
 * blocks are the blocks of the bundle before.
 */
import { isPromise } from '../../base/brands.ts';
import { hashOf } from '../../base/bytes.ts';
import { invariant } from '../../base/errors.ts';
import { BlockKind } from '../../format/block.ts';
import type { BlockRef } from '../../format/block.ts';
import { sealBundleBlock } from '../../format/bundle.ts';
import { NodeEntries } from '../../format/node-entries.ts';
import type { EntryShape } from '../../format/node-entries.ts';
import type { TreePlace } from '../../format/object-names.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { StoredRoot } from '../../format/stored-table.ts';
import { shortestSeparator } from '../../tree/level-writer.ts';

/** The lengths of the nodes of a level, in bytes, before compression. */
interface NodeLengths {
  /** No node but the last is shorter. */
  readonly least: number;
  /** How much longer nodes are on average. */
  readonly more: number;
  /** No node is longer, unless its last entry is. */
  readonly most: number;
}

/** Leaves are as long as pays for a request, and inner nodes are read with the manifest. */
const leafLengths: NodeLengths = { least: 24 * 1024, more: 24 * 1024, most: 96 * 1024 };
const innerLengths: NodeLengths = { least: 8 * 1024, more: 8 * 1024, most: 32 * 1024 };
/** Fewest entries of an inner node that is not the last of its level: with fewer, long keys would make a tree without end. */
const leastChildren = 4;

/** A block of a new tree, and its level. */
export interface TreeBlock {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly level: number;
}

export interface ContentTreeOptions {
  readonly place: TreePlace;
  /** Shape of the leaves. */
  readonly leaf: EntryShape;
  /** The number of the bundle. */
  readonly number: number;
  /** Returns the name of an equal block of an earlier bundle that is kept, by the part of the name that the bytes determine. */
  readonly nameFor: (hashKey: string) => string | undefined;
  /** Takes a leaf that is not the root. A promise resolves once there is room for more. */
  readonly put: (block: TreeBlock) => void | Promise<void>;
}

/** A built tree: its root, and the blocks that were not passed to `put`: inner nodes, and the root. */
export interface BuiltTree {
  readonly root: StoredRoot;
  readonly upper: readonly TreeBlock[];
}

interface Finished {
  readonly separator: Uint8Array;
  readonly ref: BlockRef;
  readonly block: TreeBlock;
}

class Level {
  readonly entries: NodeEntries;
  readonly lengths: NodeLengths;
  /** Separator of the node that the entries will make. */
  separator: Uint8Array = new Uint8Array(0);
  /** The last finished node, until another one shows that it is not the root. */
  held: Finished | undefined;
  hasPushed = false;

  constructor(shape: EntryShape) {
    this.entries = new NodeEntries(shape);
    this.lengths = shape.level === 0 ? leafLengths : innerLengths;
  }
}

export class ContentTree {
  readonly #options: ContentTreeOptions;
  readonly #levels: Level[] = [];
  readonly #upper: TreeBlock[] = [];
  readonly #entryBytes: number;
  #last: Uint8Array | undefined;

  constructor(options: ContentTreeOptions) {
    this.#options = options;
    this.#entryBytes = options.leaf.layout?.stride ?? 0;
  }

  /** Adds an entry; keys must ascend. A promise must be awaited before the next entry. */
  add(key: Uint8Array, source?: RowSource, base = 0): void | Promise<void> {
    const level = this.#level(0);
    const { entries } = level;
    if (entries.count === 0 && this.#last !== undefined) level.separator = shortestSeparator(this.#last, key);
    if (source === undefined) entries.addKey(key);
    else entries.addRow(key, 0, key.length, source, base);
    if (!endsAfter(level, key, key.length + this.#entryBytes)) return undefined;
    this.#last = key;
    return this.#finish(0);
  }

  #level(at: number): Level {
    let level = this.#levels[at];
    if (level === undefined) {
      level = new Level(at === 0 ? this.#options.leaf : { kind: BlockKind.inner, level: at });
      this.#levels.push(level);
    }
    return level;
  }

  /** Makes a node of the entries of a level. */
  #finish(at: number): void | Promise<void> {
    const level = this.#level(at);
    const { entries, separator } = level;
    const { place, number, nameFor } = this.#options;
    const bytes = entries.encode('', 0, entries.count);
    const count = entries.rowCount(0, entries.count);
    const { name, ref } = sealBundleBlock(place, entries.shape.kind, bytes, number, nameFor);
    entries.truncate(0);
    const before = level.held;
    level.held = { separator, ref: { ...ref, count, sizeBytes: bytes.length }, block: { name, bytes, level: at } };
    return before === undefined ? undefined : this.#handUp(at, before);
  }

  #handUp(at: number, { separator, ref, block }: Finished): void | Promise<void> {
    (this.#levels[at] as Level).hasPushed = true;
    const room = at === 0 ? this.#options.put(block) : void this.#upper.push(block);
    const above = this.#level(at + 1);
    if (above.entries.count === 0) above.separator = separator;
    above.entries.addChild(separator, ref);
    const ends = endsAfter(above, separator, separator.length + inlineChildBytes);
    if (!ends) return room;
    return isPromise(room) ? room.then(() => this.#finish(at + 1)) : this.#finish(at + 1);
  }

  async finish(): Promise<BuiltTree> {
    for (let at = 0; at < this.#levels.length; at++) {
      const level = this.#levels[at] as Level;
      if (level.entries.count > 0) await this.#finish(at);
      const { held, hasPushed } = level;
      if (held === undefined) continue;
      level.held = undefined;
      if (!hasPushed) {
        this.#upper.push(held.block);
        return { root: { ...held.ref, level: at }, upper: this.#upper };
      }
      await this.#handUp(at, held);
    }
    invariant(this.#levels.length === 0, 'A tree ended without a root');
    return { root: null, upper: [] };
  }
}

/** Bytes of a reference to a child. */
const inlineChildBytes = 24;

/** Whether a node ends after its last entry, whose key is given. Depends on the entries of the node alone. */
function endsAfter({ entries, lengths }: Level, key: Uint8Array, entryBytes: number): boolean {
  const { least, more, most } = lengths;
  if (entries.shape.level > 0 && entries.count < leastChildren) return false;
  const bytes = entries.roughBytes;
  if (bytes < least) return false;
  return bytes >= most || hashOf(key, 0, key.length) < (entryBytes / more) * 0x1_0000_0000;
}
