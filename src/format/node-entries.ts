/** Entries of new nodes: collected in key order, measured, and encoded as one or several nodes. */
import { ByteWriter, compareRanges, copyRange } from '../base/bytes.ts';
import { invariant } from '../base/errors.ts';
import { BlockKind, blockHeaderBytes, sealBlock, childRefBytes, writeChildRef } from './block.ts';
import type { BlockRef } from './block.ts';
import { DenseWriter } from './dense-writer.ts';
import type { WrittenKeys } from './dense-writer.ts';
import type { KeyList } from './key-list.ts';
import { flagVariable, flagWide, Node, nodeHeaderBytes, padTo4 } from './node.ts';
import type { EntryPlace } from './node.ts';
import { moveHeapValues } from './row-encode.ts';
import { inlineBytes, nonAsciiFlag, rowMarks } from './row-layout.ts';
import type { RowLayout, RowSource } from './row-layout.ts';
import type { TypeId } from './types.ts';

/** The kind of a node's entries, and the layout of their values. */
export interface EntryShape {
  readonly kind: BlockKind;
  readonly level: number;
  /** Layout of the rows; only for leaves of a table, like `schemaVersion`. */
  readonly layout?: RowLayout;
  readonly schemaVersion?: number;
  /** Whether rows keep the marks of deletions and updates (row-layout.ts): in commits they do, in tables they do not. */
  readonly keepsMarks?: boolean;
  /** For the leaves of an index on texts, which are dense: the types of the fields of the primary key. */
  readonly dense?: readonly TypeId[];
}

/** Returns the bytes that a row takes in the heap. */
export function rowHeapBytes(layout: RowLayout, source: RowSource, base: number): number {
  let total = 0;
  const { variableFields } = layout;
  for (let i = 0; i < variableFields.length; i++) {
    const length =
      source.rowsView.getUint32(base + (variableFields[i] as { offset: number }).offset, true) & ~nonAsciiFlag;
    if (length > inlineBytes) total += length;
  }
  return total;
}

/** Changes of keys without values, in key order. */
export interface KeyChanges {
  /** The keys that are known so far. At their end, {@link advance} may replace them by the next ones. */
  readonly keys: KeyList;
  /** Position of the next change; the number of keys at the end. */
  readonly position: number;
  /** Whether the next change removes its key; otherwise it adds the key. */
  readonly remove: boolean;
  advance(): void;
  /** Adds up to `most` changes to entries, and moves past them, if that takes fewer steps. Returns false if it does not. */
  addTo?(entries: NodeEntries, most: number): boolean;
}

const noHeap = new Uint8Array(0);

export class NodeEntries {
  readonly shape: EntryShape;
  readonly #keys = new ByteWriter();
  /** The offset at which the key of each entry ends. */
  readonly #keyEnds: NumberList;
  /** Bytes that the rows of entries 0 to i take in the heap; empty if the layout has no variable fields. */
  readonly #heapEnds: NumberList;
  readonly #sources: RowSource[] = [];
  readonly #bases: NumberList;
  readonly #children: BlockRef[] = [];
  readonly #hasHeap: boolean;
  /** The entries as a dense leaf has them. */
  readonly #dense: DenseWriter | undefined;
  #uniform = true;

  /** `expected`: the number of entries, if known. */
  constructor(shape: EntryShape, expected?: number) {
    this.shape = shape;
    this.#hasHeap = (shape.layout?.variableFields.length ?? 0) > 0;
    this.#dense = shape.dense && new DenseWriter(shape.dense);
    this.#keyEnds = new NumberList(expected);
    this.#heapEnds = new NumberList(this.#hasHeap ? expected : undefined);
    this.#bases = new NumberList(expected);
  }

  get count(): number {
    return this.#keyEnds.length;
  }

  #keyAdded(length: number): void {
    const previous = this.#keyEnds.length;
    this.#keyEnds.push(this.#keys.length);
    if (this.#uniform && previous > 0 && length !== this.#keyLength(previous - 1)) this.#uniform = false;
  }

  #rowAdded(source: RowSource, base: number): void {
    if (this.#hasHeap) {
      const bytes = rowHeapBytes(this.shape.layout as RowLayout, source, base);
      this.#heapEnds.push(this.#heapBefore(this.#heapEnds.length) + bytes);
    }
    this.#sources.push(source);
    this.#bases.push(base);
  }

  /** Returns the bytes that the rows before entry `i` take in the heap. */
  #heapBefore(i: number): number {
    return i === 0 || !this.#hasHeap ? 0 : (this.#heapEnds.values[i - 1] as number);
  }

  /** The writer for the parts of a key; {@link end} completes the key. */
  get writer(): ByteWriter {
    return this.#keys;
  }

  /** Completes the key whose bytes were appended to {@link writer}, and returns its position. */
  end(): number {
    const { count } = this;
    this.#keyAdded(this.#keys.length - (count === 0 ? 0 : this.#keyEnd(count - 1)));
    return count;
  }

  /** Adds a key. An entry without a value is complete with it. */
  addKey(key: Uint8Array, start = 0, end: number = key.length): void {
    this.#keys.appendRange(key, start, end);
    this.#keyAdded(end - start);
  }

  /** Adds a key and the row at `base` of `source`. The row must not change until the node is encoded. */
  addRow(key: Uint8Array, start: number, end: number, source: RowSource, base: number): void {
    this.addKey(key, start, end);
    this.#rowAdded(source, base);
  }

  /** Adds the entries `from` to `to` of a node unchanged, with their rows or children. */
  addNodeEntries(node: Node, from: number, to: number): void {
    if (from >= to) return;
    if (node.kind === BlockKind.inner) {
      for (let i = from; i < to; i++) this.addChild(node.key(i), node.child(i));
      return;
    }
    if (node.dense !== undefined) {
      this.#addDense(node.dense, node.rows, from, to);
      return;
    }
    const keys = this.#keys;
    const hasRows = node.kind === BlockKind.table;
    this.#keyEnds.ensure(to - from);
    if (hasRows) {
      this.#bases.ensure(to - from);
      if (this.#hasHeap) this.#heapEnds.ensure(to - from);
    }
    for (let i = from; i < to; i++) {
      const length = node.keyLength(i);
      keys.ensure(length);
      node.copyKey(i, keys.bytes, keys.length);
      keys.length += length;
      this.#keyAdded(length);
    }
    if (hasRows) for (let i = from; i < to; i++) this.#rowAdded(node, node.rowBase(i));
  }

  /** Adds entries of a dense leaf: most have the same bytes in another one. */
  #addDense(entry: EntryPlace, stored: Uint8Array, from: number, to: number): void {
    const keys = this.#keys;
    const dense = this.#dense;
    this.#keyEnds.ensure(to - from);
    dense?.write(this.#writtenKeys, this.count);
    for (let i = from; i < to; i++) {
      // Where the entry begins, if this is not the first one.
      const start = entry.end;
      entry.moveTo(i);
      const { length } = entry;
      keys.ensure(length);
      entry.copyTo(keys.bytes, keys.length);
      keys.length += length;
      this.#keyAdded(length);
      if (dense === undefined || (i > from && dense.takeNext(stored, start, entry.end, i))) continue;
      dense.write(this.#writtenKeys, this.count);
    }
  }

  /**
   * Merges up to `most` changes below `upper` into the keys of a leaf without rows, from entry `from` on. Adds the resulting
   * keys up to the last change, and returns the next entry of the leaf.
   */
  addChangedKeys(node: Node, from: number, changes: KeyChanges, upper: Uint8Array | undefined, most: number): number {
    const { keys } = changes;
    let next = from;
    for (let taken = 0; taken < most && changes.position < keys.count; taken++) {
      const { position } = changes;
      const { bytes } = keys;
      const start = keys.start(position);
      const end = keys.endOf(position);
      const at = node.boundFrom(next, bytes, start, end);
      // A change that is not after the node's last key is below `upper`.
      if (at === node.count && upper !== undefined && compareRanges(bytes, start, end, upper, 0, upper.length) >= 0) {
        break;
      }
      if (at > next) this.addNodeEntries(node, next, at);
      next = at < node.count && node.hasKey(at, bytes, start, end) ? at + 1 : at;
      if (!changes.remove) this.addKey(bytes, start, end);
      changes.advance();
    }
    return next;
  }

  /** Applies up to `most` changes, and adds the keys that are not removed. */
  addNewKeys(changes: KeyChanges, most: number): void {
    if (changes.addTo?.(this, most) === true) return;
    const { keys } = changes;
    for (let taken = 0; taken < most && changes.position < keys.count; taken++) {
      const { position } = changes;
      if (!changes.remove) this.addKey(keys.bytes, keys.start(position), keys.endOf(position));
      changes.advance();
    }
  }

  addChild(separator: Uint8Array, child: BlockRef): void {
    this.addKey(separator);
    this.#children.push(child);
  }

  #keyStart(i: number): number {
    return i === 0 ? 0 : (this.#keyEnds.values[i - 1] as number);
  }

  #keyEnd(i: number): number {
    return this.#keyEnds.values[i] as number;
  }

  #keyLength(i: number): number {
    return this.#keyEnd(i) - this.#keyStart(i);
  }

  key(i: number): Uint8Array {
    return this.#keys.bytes.slice(this.#keyStart(i), this.#keyEnd(i));
  }

  child(i: number): BlockRef {
    return this.#children[i] as BlockRef;
  }

  /** Appends entries `from` to `to` of another list. */
  addFrom(other: NodeEntries, from: number, to: number): void {
    if (from >= to) return;
    const keysFrom = other.#keyStart(from);
    if (!other.#uniform || (this.count > 0 && other.#keyLength(from) !== this.#keyLength(0))) this.#uniform = false;
    const at = this.count;
    const keyShift = this.#keys.length - keysFrom;
    this.#keys.appendRange(other.#keys.bytes, keysFrom, other.#keyEnd(to - 1));
    const heapShift = this.#heapBefore(this.count) - other.#heapBefore(from);
    this.#keyEnds.addFrom(other.#keyEnds, from, to, keyShift);
    if (other.#dense !== undefined) this.#dense?.takeFrom(other.#dense, from, to, this.#writtenKeys, at);
    if (this.#hasHeap) this.#heapEnds.addFrom(other.#heapEnds, from, to, heapShift);
    if (other.#children.length > 0) for (let i = from; i < to; i++) this.#children.push(other.child(i));
    if (other.#sources.length === 0) return;
    for (let i = from; i < to; i++) this.#sources.push(other.#sources[i] as RowSource);
    this.#bases.addFrom(other.#bases, from, to, 0);
  }

  /** Drops all entries from `count` on. Their memory is kept for later entries. */
  truncate(count: number): void {
    if (count >= this.count) return;
    if (count === 0) this.#uniform = true;
    this.#keys.length = this.#keyStart(count);
    this.#keyEnds.length = count;
    this.#dense?.truncate(count);
    if (this.#hasHeap) this.#heapEnds.length = count;
    if (this.#children.length > 0) this.#children.length = count;
    if (this.#sources.length === 0) return;
    this.#sources.length = count;
    this.#bases.length = count;
  }

  #sharedPrefix(from: number, to: number): number {
    if (to - from < 2) return 0;
    const { bytes } = this.#keys;
    const a = this.#keyStart(from);
    const b = this.#keyStart(to - 1);
    const limit = Math.min(this.#keyLength(from), this.#keyLength(to - 1), 0xffff);
    let shared = 0;
    while (shared < limit && bytes[a + shared] === bytes[b + shared]) shared++;
    return shared;
  }

  get #valueBytes(): number {
    if (this.shape.kind === BlockKind.inner) return childRefBytes;
    return this.shape.layout?.stride ?? 0;
  }

  /** Returns an upper bound for the length of a block with the entries `from` to `to`, in bytes. */
  sizeOf(from: number, to: number): number {
    const n = to - from;
    if (n <= 0) return 0;
    if (this.#dense !== undefined && from === 0) return this.#dense.sizeOf(this.#writtenKeys, to);
    const prefixLength = this.#sharedPrefix(from, to);
    const suffixBytes = this.#keyEnd(to - 1) - this.#keyStart(from) - n * prefixLength;
    const offsets = this.#uniform ? 0 : padTo4((n + 1) * (suffixBytes > 0xffff ? 4 : 2));
    const heap = this.#heapBefore(to) - this.#heapBefore(from);
    const keys = padTo4(prefixLength) + offsets + padTo4(suffixBytes);
    return blockHeaderBytes + nodeHeaderBytes + keys + padTo4(n * this.#valueBytes) + heap;
  }

  /** Returns the number of entries from `from` on that fit in a node of `sizeBytes`; at least one. */
  fitting(from: number, sizeBytes: number): number {
    let low = from + 1;
    let high = this.count;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.sizeOf(from, middle) <= sizeBytes) low = middle;
      else high = middle - 1;
    }
    return low - from;
  }

  /** Bytes of all entries without prefix compression: a cheap upper bound of {@link sizeOf}. */
  get roughBytes(): number {
    const n = this.count;
    return n === 0 ? 0 : this.#keys.length + n * (this.#valueBytes + 2) + this.#heapBefore(n);
  }

  /** Returns the number of rows in the entries `from` to `to` and below them. */
  rowCount(from: number, to: number): number {
    if (this.#children.length === 0) return to - from;
    let total = 0;
    for (let i = from; i < to; i++) total += this.child(i).count;
    return total;
  }

  get #writtenKeys(): WrittenKeys {
    return { bytes: this.#keys.bytes, ends: this.#keyEnds.values };
  }

  /** Encodes entries `from` to `to` as the sealed block `name`. */
  encode(name: string, from: number, to: number): Uint8Array {
    const isDense = this.#dense !== undefined && from === 0 && to > 0;
    const block = isDense ? this.#dense.block(this.#writtenKeys, to) : this.#assemble(from, to);
    sealBlock(name, this.shape.kind, block);
    return block;
  }

  /** Returns all entries as a node that exists in memory only. It gets no checksum. */
  toNode(name: string): Node {
    return new Node(name, this.shape.kind, this.unsealed());
  }

  /** Returns all entries as a block without a block header, for a node that exists in memory only. */
  unsealed(): Uint8Array {
    return this.#assemble(0, this.count);
  }

  /** Returns a block whose header is not filled in. */
  #assemble(from: number, to: number): Uint8Array {
    const n = to - from;
    const prefixLength = this.#sharedPrefix(from, to);
    const keyStart = this.#keyStart(from);
    const suffixBytes = n === 0 ? 0 : this.#keyEnd(to - 1) - keyStart - n * prefixLength;
    let variable = false;
    if (!this.#uniform) {
      for (let i = from + 1; i < to && !variable; i++) variable = this.#keyLength(i) !== this.#keyLength(from);
    }
    const wide = variable && suffixBytes > 0xffff;
    const values = n * this.#valueBytes;
    const offsetsStart = blockHeaderBytes + nodeHeaderBytes + padTo4(prefixLength);
    const suffixStart = offsetsStart + (variable ? padTo4((n + 1) * (wide ? 4 : 2)) : 0);
    const heapBytes = n === 0 ? 0 : this.#heapBefore(to) - this.#heapBefore(from);
    const out = new ByteWriter(suffixStart + padTo4(suffixBytes) + padTo4(values) + heapBytes);
    out.bytes.fill(0, 0, suffixStart);
    copyRange(this.#keys.bytes, keyStart, keyStart + prefixLength, out.bytes, blockHeaderBytes + nodeHeaderBytes);
    out.length = suffixStart + suffixBytes;
    this.#copySuffixes(from, to, prefixLength, out.bytes, suffixStart);
    if (variable) this.#writeOffsets(from, to, prefixLength, out.view, offsetsStart, wide);
    out.zeros(padTo4(suffixBytes) - suffixBytes);
    const heap = this.#appendValues(out, from, to);
    out.zeros(padTo4(values) - values);
    out.append(heap);
    const { view } = out;
    view.setUint8(blockHeaderBytes, this.shape.level);
    view.setUint8(blockHeaderBytes + 1, (variable ? flagVariable : 0) | (wide ? flagWide : 0));
    view.setUint16(blockHeaderBytes + 2, prefixLength, true);
    view.setUint32(blockHeaderBytes + 4, n, true);
    view.setUint32(blockHeaderBytes + 8, suffixBytes, true);
    view.setUint32(blockHeaderBytes + 12, this.#valueBytes, true);
    view.setUint32(blockHeaderBytes + 16, heap.length, true);
    view.setUint32(blockHeaderBytes + 20, this.shape.schemaVersion ?? 0, true);
    return out.take();
  }

  /** Copies the keys of entries `from` to `to` to `out`, without the shared prefix. */
  #copySuffixes(from: number, to: number, prefixLength: number, out: Uint8Array, start: number): void {
    const { bytes } = this.#keys;
    if (prefixLength === 0) {
      if (from < to) out.set(bytes.subarray(this.#keyStart(from), this.#keyEnd(to - 1)), start);
      return;
    }
    const ends = this.#keyEnds.values;
    let at = start;
    let key = this.#keyStart(from);
    for (let i = from; i < to; i++) {
      const end = ends[i] as number;
      copyRange(bytes, key + prefixLength, end, out, at);
      at += end - key - prefixLength;
      key = end;
    }
  }

  #writeOffsets(from: number, to: number, prefixLength: number, out: DataView, start: number, wide: boolean): void {
    const ends = this.#keyEnds.values;
    const keyStart = this.#keyStart(from);
    for (let i = from; i < to; i++) {
      const at = i - from + 1;
      const offset = (ends[i] as number) - keyStart - at * prefixLength;
      if (wide) out.setUint32(start + at * 4, offset, true);
      else out.setUint16(start + at * 2, offset, true);
    }
  }

  #appendValues(out: ByteWriter, from: number, to: number): Uint8Array {
    const { layout } = this.shape;
    if (layout !== undefined) return this.#appendRows(out, from, to, layout);
    if (this.shape.kind === BlockKind.inner) {
      for (let i = from; i < to; i++) {
        const at = out.length;
        out.zeros(childRefBytes);
        writeChildRef(out.bytes, out.view, at, this.child(i));
      }
    }
    return noHeap;
  }

  /** Copies rows, adjacent ones at once, and returns the heap for all of them. */
  #appendRows(out: ByteWriter, from: number, to: number, layout: RowLayout): Uint8Array {
    const { stride } = layout;
    const heapBytes = this.#heapBefore(to) - this.#heapBefore(from);
    const heap = heapBytes === 0 ? undefined : new ByteWriter(heapBytes);
    const bases = this.#bases.values;
    for (let i = from; i < to; ) {
      const source = this.#sources[i] as RowSource;
      const first = bases[i] as number;
      let end = i + 1;
      while (end < to && this.#sources[end] === source && bases[end] === first + (end - i) * stride) end++;
      const at = out.length;
      out.appendRange(source.rows, first, first + (end - i) * stride);
      if (heap !== undefined) {
        for (let row = 0; row < end - i; row++) {
          moveHeapValues(layout, source, first + row * stride, out, at + row * stride, heap);
        }
      }
      if (this.shape.keepsMarks !== true) clearMarks(out.bytes, at, out.length, stride);
      i = end;
    }
    return heap === undefined ? noHeap : heap.bytes.subarray(0, heap.length);
  }
}

/** Clears the marks of deletions and updates of the rows in a range of bytes. */
function clearMarks(bytes: Uint8Array, start: number, end: number, stride: number): void {
  for (let at = start; at < end; at += stride) bytes[at] = (bytes[at] as number) & ~rowMarks;
}

/** Small typed arrays are allocated on the heap of the runtime, which costs next to nothing. */
const firstCapacity = 8;
const maxNumber = 0xffff_ffff;

/**
 * A growing list of offsets and other 32-bit integers, in one typed array, so that no number is an object and ranges are copied
 * at once. The runtime must also see only integers: code that has once handled a float computes with floats from then on, which
 * makes reading a row a third slower.
 */
class NumberList {
  /** The numbers up to {@link length}; replaced as the list grows. */
  values: Uint32Array;
  #length = 0;

  /** `capacity`: how many numbers fit before the list grows. */
  constructor(capacity: number = firstCapacity) {
    this.values = new Uint32Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** Shortens the list. */
  set length(length: number) {
    this.#length = length;
  }

  push(value: number): void {
    if (this.#length === this.values.length) this.ensure(1);
    if (value > maxNumber) fail(value);
    this.values[this.#length++] = value;
  }

  /** Appends the numbers `from` to `to` of another list, each increased by `shift`. */
  addFrom(other: NumberList, from: number, to: number, shift: number): void {
    this.ensure(to - from);
    const { values } = this;
    const source = other.values;
    let at = this.#length;
    let most = 0;
    for (let i = from; i < to; i++) {
      const value = (source[i] as number) + shift;
      if (value > most) most = value;
      values[at++] = value;
    }
    if (most > maxNumber) fail(most);
    this.#length = at;
  }

  /** Makes room for `extra` more numbers. */
  ensure(extra: number): void {
    const needed = this.#length + extra;
    if (needed <= this.values.length) return;
    const grown = new Uint32Array(Math.max(needed, this.values.length * 2));
    grown.set(this.values.subarray(0, this.#length));
    this.values = grown;
  }
}

function fail(value: number): never {
  invariant(false, `${value} is not an offset of 32 bits`);
}
