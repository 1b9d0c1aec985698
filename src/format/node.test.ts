import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareBytes } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { BlockKind, blockHeaderBytes, sealBlock } from './block.ts';
import type { BlockRef } from './block.ts';
import { NodeEntries } from './node-entries.ts';
import type { EntryShape } from './node-entries.ts';
import { openNode, padTo4, firstNotBelow, headOf } from './node.ts';
import type { Node } from './node.ts';

const name = 'indexes/t/i/1';
const indexShape: EntryShape = { kind: BlockKind.index, level: 0 };
const innerShape: EntryShape = { kind: BlockKind.inner, level: 3 };

function sorted(keys: readonly Uint8Array[]): Uint8Array[] {
  const ascending = keys.toSorted(compareBytes);
  return ascending.filter((key, i) => i === 0 || compareBytes(key, ascending[i - 1] as Uint8Array) !== 0);
}

function indexNode(keys: readonly Uint8Array[]): Node {
  const entries = new NodeEntries(indexShape);
  for (const key of keys) entries.addKey(key);
  const block = entries.encode(name, 0, entries.count);
  if (keys.length > 0 && block.length > entries.sizeOf(0, keys.length)) throw new Error('longer than was said');
  return openNode(name, block);
}

function refOf(i: number): BlockRef {
  const id = i.toString(16).padStart(16, '0');
  return { birth: 2 ** 48 - 1 - i, id, count: i * 2 ** 33 + 7, sizeBytes: 2 ** 32 - 1 - i };
}

/** Compares every answer of the node with a plain search. */
function expectSearches(node: Node, keys: readonly Uint8Array[], probes: readonly Uint8Array[]): void {
  expect(node.count).toBe(keys.length);
  for (const [i, key] of keys.entries()) {
    expect(compareBytes(node.key(i), key)).toBe(0);
    expect(node.keyLength(i)).toBe(key.length);
  }
  for (const probe of [...keys, ...probes]) {
    const bound = keys.filter((key) => compareBytes(key, probe) < 0).length;
    const exact = bound < keys.length && compareBytes(keys[bound] as Uint8Array, probe) === 0;
    expect(node.lowerBound(probe)).toBe(bound);
    expect(node.find(probe)).toBe(exact ? bound : -1);
    expect(node.childFor(probe)).toBe(exact ? bound : Math.max(0, bound - 1));
    for (let i = 0; i < keys.length; i++) {
      const order = compareBytes(keys[i] as Uint8Array, probe);
      expect(Math.sign(node.compareKey(i, probe, probe.length))).toBe(Math.sign(order));
    }
    // The probe may be the beginning of a longer buffer.
    const longer = Uint8Array.of(...probe, 0, 255);
    expect(node.lowerBound(longer, probe.length)).toBe(bound);
    expect(node.find(longer, probe.length)).toBe(exact ? bound : -1);
  }
}

const byte = fc.constantFrom(0, 1, 127, 128, 255);
const shortKey = fc.array(byte, { maxLength: 7 }).map((bytes) => Uint8Array.from(bytes));
const prefixes = fc.array(byte, { maxLength: 70 });

describe('nodes', () => {
  it('find keys of any lengths as a plain search does', () => {
    const keys = fc.array(shortKey, { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(prefixes, keys, fc.array(shortKey, { maxLength: 10 }), (prefix, list, probes) => {
        const withPrefix = (key: Uint8Array): Uint8Array => Uint8Array.of(...prefix, ...key);
        const present = sorted(list.map(withPrefix));
        expectSearches(indexNode(present), present, [...probes, ...probes.map(withPrefix)]);
      }),
      { numRuns: 300 },
    );
  });

  it('find keys of one length', () => {
    const key = fc.uint8Array({ minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(fc.array(key, { minLength: 1, maxLength: 40 }), fc.array(shortKey), (list, probes) => {
        const present = sorted(list);
        expectSearches(indexNode(present), present, probes);
      }),
      { numRuns: 100 },
    );
  });

  it('may have suffixes of more than 64 KiB, of different lengths', () => {
    const keys = Array.from({ length: 100 }, (_, i) => new Uint8Array(1000 + (i % 7)).fill(i));
    const node = indexNode(keys);
    expect(node.sizeBytes).toBeGreaterThan(100_000);
    expectSearches(node, keys, [new Uint8Array(1001).fill(50), Uint8Array.of(99), new Uint8Array(0)]);
  });

  it('may share a prefix whose length does not fit into 16 bits', () => {
    const keys = [1, 2, 3].map((end) => new Uint8Array(70_000).fill(end, 69_999));
    const node = indexNode(keys);
    expect(node.prefixLength).toBe(0xffff);
    expectSearches(node, keys, [new Uint8Array(70_001), new Uint8Array(10)]);
  });

  it('may be empty', () => {
    const node = indexNode([]);
    expect(node.count).toBe(0);
    expect(node.lowerBound(Uint8Array.of(1))).toBe(0);
    expect(node.find(new Uint8Array(0))).toBe(-1);
  });

  it('hold children with their births, ids, counts and sizes', () => {
    const entries = new NodeEntries(innerShape);
    const keys = [0, 1, 2, 3].map((i) => new Uint8Array(i));
    keys.forEach((key, i) => entries.addChild(key, refOf(i)));
    const node = openNode(name, entries.encode(name, 0, 4));
    expect(node.level).toBe(3);
    for (let i = 0; i < 4; i++) {
      expect(node.child(i)).toEqual(refOf(i));
      expect(node.childCount(i)).toBe(refOf(i).count);
    }
    expect(node.totalCount()).toBe(entries.rowCount(0, 4));
    const again = new NodeEntries(innerShape);
    again.addNodeEntries(node, 0, 4);
    expect(again.encode(name, 0, 4)).toEqual(node.rows);
  });

  it('take from a list as many entries as fit, and at least one', () => {
    const lengths = fc.array(fc.nat({ max: 300 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 50, max: 2000 }), prefixes, (list, size, prefix) => {
        const entries = new NodeEntries(indexShape);
        list.forEach((length, i) => entries.addKey(Uint8Array.of(...prefix, i, ...new Uint8Array(length))));
        let from = 0;
        while (from < entries.count) {
          const n = entries.fitting(from, size);
          const block = entries.encode(name, from, from + n);
          expect(n === 1 || block.length <= size).toBe(true);
          expect(from + n === entries.count || entries.sizeOf(from, from + n + 1) > size).toBe(true);
          from += n;
        }
      }),
      { numRuns: 100 },
    );
  });
});

/** Returns a node whose body was changed and sealed again, with a correct checksum. */
function resealed(node: Node, change: (bytes: Uint8Array, view: DataView) => void): Uint8Array {
  const bytes = node.rows.slice();
  change(bytes, new DataView(bytes.buffer));
  sealBlock(name, node.kind, bytes);
  return bytes;
}

function withHeader(
  count: number,
  suffixBytes: number,
  stride: number,
  heapBytes: number,
  kind: BlockKind,
): Uint8Array {
  const bytes = new Uint8Array(blockHeaderBytes + 24 + 32);
  const view = new DataView(bytes.buffer);
  bytes[blockHeaderBytes] = kind === BlockKind.inner ? 1 : 0;
  [count, suffixBytes, stride, heapBytes].forEach((value, i) =>
    view.setUint32(blockHeaderBytes + 4 + i * 4, value, true),
  );
  sealBlock(name, kind, bytes);
  return bytes;
}

describe('damaged nodes', () => {
  const keys = [1, 2, 3, 4, 5, 6].map((i) => Uint8Array.of(7, i, i, i, i, 9));
  const suffixAt = blockHeaderBytes + 24 + 4;

  it('whose keys are unsorted or twice there are refused by searches', () => {
    const node = indexNode(keys);
    expect(node.prefixLength).toBe(1);
    for (const [to, from] of [
      [1, 0],
      [1, 4],
      [5, 0],
    ] as const) {
      const block = resealed(node, (bytes) =>
        bytes.copyWithin(suffixAt + to * 5, suffixAt + from * 5, suffixAt + from * 5 + 5),
      );
      const damaged = openNode(name, block);
      expect(() => damaged.lowerBound(Uint8Array.of(7, 3))).toThrow(CorruptionError);
      expect(() => damaged.find(Uint8Array.of(7, 3))).toThrow(CorruptionError);
    }
  });

  it('that claim more than they hold are refused before anything is allocated', () => {
    for (const kind of [BlockKind.table, BlockKind.index, BlockKind.inner]) {
      for (const count of [2 ** 32 - 1, 2 ** 30, 2 ** 20, 2 ** 28, 1_000_000]) {
        for (const stride of [0, 1, 24, 4096, 2 ** 31, 2 ** 32 - 1]) {
          for (const [suffixBytes, heapBytes] of [
            [0, 0],
            [0, 32],
            [32, 0],
            [2 ** 32 - 4, 36],
          ] as const) {
            const block = withHeader(count, suffixBytes, stride, heapBytes, kind);
            expect(() => openNode(name, block)).toThrow(CorruptionError);
          }
        }
      }
    }
    expect(() => openNode(name, withHeader(0, 0, 24, 32, BlockKind.inner))).toThrow(CorruptionError);
  });

  it('are measured without wrapping around', () => {
    for (const length of [0, 1, 2, 3, 4, 5, 2 ** 31 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 50 + 3]) {
      expect(padTo4(length) % 4).toBe(0);
      expect(padTo4(length) - length).toBeGreaterThanOrEqual(0);
      expect(padTo4(length) - length).toBeLessThan(4);
    }
  });
});

const highest = 0xffff_ffff;
/** Keys that are spread evenly, in clusters, and at random. */
const number = fc.oneof(
  fc.nat({ max: 400 }),
  fc.nat({ max: 3 }).map((cluster) => cluster * 1_000_000_000),
  fc.integer({ min: 0, max: highest }),
);

describe('heads of keys', () => {
  it('are found as a plain search finds them', () => {
    fc.assert(
      fc.property(fc.array(number, { maxLength: 300 }), fc.array(number, { maxLength: 20 }), (list, wanted) => {
        const heads = Uint32Array.from(list).toSorted();
        for (const each of [...list, ...list.map((one) => Math.min(one + 1, highest)), ...wanted, 0, highest]) {
          const below = heads.filter((head) => head < each).length;
          for (const guess of [
            0,
            heads.length >> 1,
            Math.max(0, heads.length - 1),
            Math.min(below, heads.length - 1),
          ]) {
            expect(firstNotBelow(heads, each, Math.max(0, guess))).toBe(below);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('sort as the bytes do, zeros standing for those that are missing', () => {
    const bytes = Uint8Array.of(255, 1, 2, 3, 4);
    expect(headOf(bytes, 0, 5)).toBe(0xff010203);
    expect(headOf(bytes, 3, 5)).toBe(0x03040000);
    expect(headOf(bytes, 1, 1)).toBe(0);
  });
});
