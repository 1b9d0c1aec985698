/** Entries on their way into nodes: collected in key order, measured, and encoded as one or several nodes. */
import { ByteWriter, copyRange } from '../base/bytes.ts';
import { BlockKind, envelopeBytes, sealBlock } from './block.ts';
import { childRefBytes, writeChildRef } from './child-ref.ts';
import type { BlockRef } from './child-ref.ts';
import { flagVariable, flagWide, nodeHeaderBytes, padTo4 } from './node.ts';
import type { Node } from './node.ts';
import { moveHeapValues } from './row-encode.ts';
import { inlineBytes, nonAsciiFlag, rowMarks } from './row-layout.ts';
import type { RowLayout, RowSource } from './row-layout.ts';

/** What the entries of a node carry beside their keys. */
export interface EntryShape {
  readonly kind: BlockKind;
  readonly level: number;
  /** Layout and schema version of the rows, for leaves of a table. */
  readonly layout?: RowLayout;
  readonly schemaVersion?: number;
  /** Whether rows keep the marks of deletions and updates (row-layout.ts): in commits, not in tables. */
  readonly keepsMarks?: boolean;
}

/** Bytes that a row holds outside its fixed part. */
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

const noHeap = new Uint8Array(0);

export class NodeEntries {
  readonly shape: EntryShape;
  readonly #keys = new ByteWriter(4096);
  /** `#keyEnds[i]`: where the key of entry i ends; likewise the heap bytes of entries 0 to i. */
  readonly #keyEnds: number[] = [];
  readonly #heapEnds: number[] = [];
  readonly #sources: RowSource[] = [];
  readonly #bases: number[] = [];
  readonly #children: BlockRef[] = [];
  #uniform = true;

  constructor(shape: EntryShape) {
    this.shape = shape;
  }

  get count(): number {
    return this.#keyEnds.length;
  }

  #addKey(from: Uint8Array, start: number, end: number): void {
    this.#keys.appendRange(from, start, end);
    this.#keyAdded(end - start);
  }

  #keyAdded(length: number): void {
    const previous = this.#keyEnds.length;
    this.#keyEnds.push(this.#keys.length);
    if (previous > 0 && length !== this.#keyLength(previous - 1)) this.#uniform = false;
  }

  #rowAdded(source: RowSource, base: number): void {
    const before = this.#heapEnds.length === 0 ? 0 : (this.#heapEnds[this.#heapEnds.length - 1] as number);
    this.#heapEnds.push(before + rowHeapBytes(this.shape.layout as RowLayout, source, base));
    this.#sources.push(source);
    this.#bases.push(base);
  }

  /** Adds an entry without a value. */
  addKey(key: Uint8Array, start = 0, end: number = key.length): void {
    this.#addKey(key, start, end);
    this.#heapEnds.push(0);
  }

  /** Adds a key and the row at `base` of `source`, which must stay as it is until the node is encoded. */
  addRow(key: Uint8Array, start: number, end: number, source: RowSource, base: number): void {
    this.#addKey(key, start, end);
    this.#rowAdded(source, base);
  }

  /** Adds entry `i` of a node as it is, row or child included. */
  addNodeEntry(node: Node, i: number): void {
    if (node.kind === BlockKind.inner) {
      this.addChild(node.key(i), node.child(i));
      return;
    }
    const keys = this.#keys;
    const length = node.keyLength(i);
    keys.ensure(length);
    node.copyKey(i, keys.bytes, keys.length);
    keys.length += length;
    this.#keyAdded(length);
    if (node.kind === BlockKind.table) this.#rowAdded(node, node.rowBase(i));
    else this.#heapEnds.push(0);
  }

  addChild(separator: Uint8Array, child: BlockRef): void {
    this.#addKey(separator, 0, separator.length);
    this.#heapEnds.push(0);
    this.#children.push(child);
  }

  #keyStart(i: number): number {
    return i === 0 ? 0 : (this.#keyEnds[i - 1] as number);
  }

  #keyLength(i: number): number {
    return (this.#keyEnds[i] as number) - this.#keyStart(i);
  }

  key(i: number): Uint8Array {
    return this.#keys.bytes.slice(this.#keyStart(i), this.#keyEnds[i]);
  }

  child(i: number): BlockRef {
    return this.#children[i] as BlockRef;
  }

  /** Appends entries `from` to `to` of another list. */
  addFrom(other: NodeEntries, from: number, to: number): void {
    if (from >= to) return;
    const keysFrom = other.#keyStart(from);
    const keyShift = this.#keys.length - keysFrom;
    this.#keys.appendRange(other.#keys.bytes, keysFrom, other.#keyEnds[to - 1] as number);
    if (!other.#uniform || (this.count > 0 && other.#keyLength(from) !== this.#keyLength(0))) this.#uniform = false;
    const heapFrom = from === 0 ? 0 : (other.#heapEnds[from - 1] as number);
    const heapShift = (this.#heapEnds[this.count - 1] ?? 0) - heapFrom;
    for (let i = from; i < to; i++) {
      this.#keyEnds.push((other.#keyEnds[i] as number) + keyShift);
      this.#heapEnds.push((other.#heapEnds[i] as number) + heapShift);
    }
    if (other.#children.length > 0) for (let i = from; i < to; i++) this.#children.push(other.child(i));
    if (other.#sources.length === 0) return;
    for (let i = from; i < to; i++) {
      this.#sources.push(other.#sources[i] as RowSource);
      this.#bases.push(other.#bases[i] as number);
    }
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

  /** How long the block of entries `from` to `to` would be, in bytes; it is never longer than that. */
  sizeOf(from: number, to: number): number {
    const n = to - from;
    if (n <= 0) return 0;
    const prefixLength = this.#sharedPrefix(from, to);
    const suffixBytes = (this.#keyEnds[to - 1] as number) - this.#keyStart(from) - n * prefixLength;
    const offsets = this.#uniform ? 0 : padTo4((n + 1) * (suffixBytes > 0xffff ? 4 : 2));
    const heap = (this.#heapEnds[to - 1] as number) - (from === 0 ? 0 : (this.#heapEnds[from - 1] as number));
    const keys = padTo4(prefixLength) + offsets + padTo4(suffixBytes);
    return envelopeBytes + nodeHeaderBytes + keys + padTo4(n * this.#valueBytes) + heap;
  }

  /** How many entries from `from` on make a node of at most `sizeBytes`; at least one. */
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

  /** Bytes of the entries before sharing a prefix: a cheap upper bound of {@link sizeOf}. */
  get roughBytes(): number {
    const n = this.count;
    return n === 0 ? 0 : this.#keys.length + n * (this.#valueBytes + 2) + (this.#heapEnds[n - 1] as number);
  }

  /** Rows in the entries `from` to `to` and below them. */
  rowCount(from: number, to: number): number {
    if (this.#children.length === 0) return to - from;
    let total = 0;
    for (let i = from; i < to; i++) total += this.child(i).count;
    return total;
  }

  /** Encodes entries `from` to `to` as the sealed block `name`. */
  encode(name: string, from: number, to: number): Uint8Array {
    const n = to - from;
    const prefixLength = this.#sharedPrefix(from, to);
    const keyStart = this.#keyStart(from);
    const suffixBytes = n === 0 ? 0 : (this.#keyEnds[to - 1] as number) - keyStart - n * prefixLength;
    let variable = false;
    for (let i = from + 1; i < to && !variable; i++) variable = this.#keyLength(i) !== this.#keyLength(from);
    const wide = variable && suffixBytes > 0xffff;
    const values = n * this.#valueBytes;
    const offsetsStart = envelopeBytes + nodeHeaderBytes + padTo4(prefixLength);
    const suffixStart = offsetsStart + (variable ? padTo4((n + 1) * (wide ? 4 : 2)) : 0);
    const heapBytes =
      n === 0 ? 0 : (this.#heapEnds[to - 1] as number) - (from === 0 ? 0 : (this.#heapEnds[from - 1] as number));
    const out = new ByteWriter(suffixStart + padTo4(suffixBytes) + padTo4(values) + heapBytes);
    out.length = suffixStart;
    out.bytes.fill(0, 0, suffixStart);
    copyRange(this.#keys.bytes, keyStart, keyStart + prefixLength, out.bytes, envelopeBytes + nodeHeaderBytes);
    for (let i = from; i < to; i++) {
      out.appendRange(this.#keys.bytes, this.#keyStart(i) + prefixLength, this.#keyEnds[i] as number);
      if (!variable) continue;
      const at = i - from + 1;
      if (wide) out.view.setUint32(offsetsStart + at * 4, out.length - suffixStart, true);
      else out.view.setUint16(offsetsStart + at * 2, out.length - suffixStart, true);
    }
    out.zeros(padTo4(suffixBytes) - suffixBytes);
    const heap = this.#appendValues(out, from, to);
    out.zeros(padTo4(values) - values);
    out.append(heap);
    const { view } = out;
    view.setUint8(envelopeBytes, this.shape.level);
    view.setUint8(envelopeBytes + 1, (variable ? flagVariable : 0) | (wide ? flagWide : 0));
    view.setUint16(envelopeBytes + 2, prefixLength, true);
    view.setUint32(envelopeBytes + 4, n, true);
    view.setUint32(envelopeBytes + 8, suffixBytes, true);
    view.setUint32(envelopeBytes + 12, this.#valueBytes, true);
    view.setUint32(envelopeBytes + 16, heap.length, true);
    view.setUint32(envelopeBytes + 20, this.shape.schemaVersion ?? 0, true);
    const block = out.take();
    sealBlock(name, this.shape.kind, block);
    return block;
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

  /** Copies rows, those that lie next to each other at once, and returns the heap that they share from now on. */
  #appendRows(out: ByteWriter, from: number, to: number, layout: RowLayout): Uint8Array {
    const { stride } = layout;
    const heapFrom = from === 0 ? 0 : (this.#heapEnds[from - 1] as number);
    const heap = new ByteWriter((this.#heapEnds[to - 1] as number) - heapFrom);
    for (let i = from; i < to; ) {
      const source = this.#sources[i] as RowSource;
      const first = this.#bases[i] as number;
      let end = i + 1;
      while (end < to && this.#sources[end] === source && this.#bases[end] === first + (end - i) * stride) end++;
      const at = out.length;
      out.appendRange(source.rows, first, first + (end - i) * stride);
      for (let row = 0; row < end - i; row++) {
        moveHeapValues(layout, source, first + row * stride, out, at + row * stride, heap);
        if (this.shape.keepsMarks === true) continue;
        const marks = at + row * stride;
        out.bytes[marks] = (out.bytes[marks] as number) & ~rowMarks;
      }
      i = end;
    }
    return heap.bytes.subarray(0, heap.length);
  }
}
