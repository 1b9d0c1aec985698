/** Dense leaves of indexes on texts as nodes: they are read in place, and answer as other leaves do. */
import { BlockKind, blockHeaderBytes, sealedKind } from '../format/block.ts';
import { DenseEntry, DenseLeaf, flagDense } from '../format/dense-leaf.ts';
import { nodeHeaderBytes, nodeKind } from '../format/node.ts';
import { CachedNode } from './cached-node.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export class DenseNode extends CachedNode {
  readonly #leaf: DenseLeaf;
  /** The place of the last access: those that follow are mostly near. */
  readonly #entry: DenseEntry;

  /** `isChecked`: the entries are known to be right. Throws `CorruptionError`. */
  constructor(name: string, bytes: Uint8Array, isChecked: boolean) {
    const leaf = new DenseLeaf(name, bytes);
    if (!isChecked) leaf.check();
    // As a plain node it is one without entries.
    super(name, BlockKind.index, new Uint8Array(blockHeaderBytes + nodeHeaderBytes));
    this.#leaf = leaf;
    this.#entry = new DenseEntry(leaf);
    const own = this as Writable<Pick<CachedNode, 'count' | 'rows'>>;
    own.count = leaf.count;
    own.rows = bytes;
  }

  /** Returns a place of its own before the first entry, to read many of them. */
  entries(): DenseEntry {
    return new DenseEntry(this.#leaf);
  }

  override get dense(): DenseEntry {
    return this.#entry;
  }

  #at(i: number): DenseEntry {
    this.#entry.moveTo(i);
    return this.#entry;
  }

  override keyLength(i: number): number {
    return this.#at(i).length;
  }

  override key(i: number): Uint8Array {
    const entry = this.#at(i);
    const key = new Uint8Array(entry.length);
    entry.copyTo(key, 0);
    return key;
  }

  override copyKey(i: number, to: Uint8Array, at: number): void {
    this.#at(i).copyTo(to, at);
  }

  override beginsAlike(i: number, j: number, length: number): boolean {
    const key = this.key(j);
    const other = this.key(i);
    if (length > key.length || length > other.length) return false;
    for (let at = 0; at < length; at++) if (key[at] !== other[at]) return false;
    return true;
  }

  override compareKey(i: number, key: Uint8Array, length: number): number {
    return this.#at(i).compare(key, 0, length);
  }

  override hasKey(i: number, key: Uint8Array, start: number, end: number): boolean {
    return this.#at(i).compare(key, start, end) === 0;
  }

  override lowerBound(key: Uint8Array, length: number = key.length): number {
    return this.#entry.seek(0, key, 0, length, false);
  }

  override boundFrom(least: number, key: Uint8Array, start: number, end: number): number {
    return this.#entry.seek(least, key, start, end, true);
  }

  override childFor(key: Uint8Array, length: number = key.length): number {
    const at = this.lowerBound(key, length);
    return at < this.count && this.compareKey(at, key, length) === 0 ? at : Math.max(0, at - 1);
  }

  override find(key: Uint8Array, length: number = key.length): number {
    const at = this.lowerBound(key, length);
    return at < this.count && this.compareKey(at, key, length) === 0 ? at : -1;
  }
}

/** Checks a stored block, and opens it as a node of a tree. Throws `CorruptionError`. */
export function openStored(name: string, bytes: Uint8Array): CachedNode {
  const kind = nodeKind(name, bytes);
  return isDense(kind, bytes) ? new DenseNode(name, bytes, false) : new CachedNode(name, kind, bytes);
}

/** Opens a block that this process has just sealed, without checking it. */
export function openStoredSealed(name: string, bytes: Uint8Array): CachedNode {
  const kind = sealedKind(bytes);
  return isDense(kind, bytes) ? new DenseNode(name, bytes, true) : new CachedNode(name, kind, bytes);
}

function isDense(kind: BlockKind, bytes: Uint8Array): boolean {
  return kind === BlockKind.index && ((bytes[blockHeaderBytes + 1] ?? 0) & flagDense) !== 0;
}
