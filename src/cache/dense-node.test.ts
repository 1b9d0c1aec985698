import { describe, expect, it } from 'vitest';
import { ByteWriter, compareBytes, concatBytes } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { DenseNode, openStored } from './dense-node.ts';
import { Random } from '../../test/properties/model/random.ts';
import { BlockKind, blockHeaderBytes } from '../format/block.ts';
import { writeCount } from '../format/counts.ts';
import { groupEntries } from '../format/dense-leaf.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { writeKeyComponent } from '../format/ordered-key.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';

const name = 'indexes/t/words/1';

function keyOf(word: string, types: readonly TypeId[], values: readonly (number | string)[], rest: readonly number[]) {
  const writer = new ByteWriter(64);
  writeKeyComponent(writer, Types.varchar, word);
  for (const [i, type] of types.entries()) writeKeyComponent(writer, type, values[i] as number);
  for (const count of rest) writeCount(writer, count);
  return writer.finish();
}

function randomKeys(random: Random, types: readonly TypeId[], count: number): Uint8Array[] {
  const keys = new Map<string, Uint8Array>();
  for (let i = 0; i < count; i++) {
    const word = ['wine', 'wines', 'w', 'été', 'red', 'x'.repeat(150), 'a\0b'][random.below(7)] as string;
    const values = types.map((type) => {
      const number = random.below(random.below(2) === 0 ? 300 : 2 ** 31);
      return type === Types.varchar ? `row ${number % 1000}` : type === Types.uint8 ? number % 256 : number;
    });
    const words = random.below(3) === 0 ? random.below(2 ** 30) : random.below(40);
    const rest = [words, ...Array.from({ length: random.below(3) }, () => random.below(random.below(2) * 300 + 3))];
    keys.set(`${word} ${values.join()}`, keyOf(word, types, values, rest));
  }
  return [...keys.values()].toSorted(compareBytes);
}

function encoded(keys: readonly Uint8Array[], types: readonly TypeId[]): Uint8Array {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0, dense: types });
  for (const key of keys) entries.addKey(key);
  return entries.encode(name, 0, entries.count);
}

/** A block with other bytes at an offset, as it would be with the right checksum. */
function changed(block: Uint8Array, at: number, byte: number): Uint8Array {
  const copy = block.slice();
  copy[at] = byte;
  return copy;
}

/** Returns the keys of a leaf; none if it is refused. */
function keysIn(block: Uint8Array): Uint8Array[] {
  try {
    const node = new DenseNode(name, block, false);
    return Array.from({ length: node.count }, (_, i) => node.key(i));
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    return [];
  }
}

const keyTypes: Record<string, readonly TypeId[]> = {
  numbers: [Types.uint32],
  'small numbers': [Types.uint8],
  texts: [Types.varchar],
  'several fields': [Types.uint16, Types.varchar, Types.float64],
};

describe.each(Object.entries(keyTypes))('a dense leaf with %s as primary keys', (_, types) => {
  const random = new Random(7);
  const keys = randomKeys(random, types, 500);
  const node = openStored(name, encoded(keys, types));

  it('has the keys that were written', () => {
    expect(node).toBeInstanceOf(DenseNode);
    expect(node.count).toBe(keys.length);
    expect(keys.every((key, i) => compareBytes(node.key(i), key) === 0)).toBe(true);
    for (let i = 0; i < 300; i++) {
      const at = random.below(keys.length);
      expect([node.keyLength(at), node.key(at)]).toEqual([keys[at]?.length, keys[at]]);
    }
  });

  it('finds keys, and the places of others, as a plain leaf does', () => {
    const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
    for (const key of keys) entries.addKey(key);
    const plain = entries.toNode(name);
    // Keys, others, and beginnings of keys.
    const others = randomKeys(random, types, 100);
    const parts = keys.map((key) => key.subarray(0, random.below(key.length + 1)));
    const longer = keys.map((key) => concatBytes(key, Uint8Array.of(random.below(256))));
    const answers = (leaf: Node): number[] => {
      const chance = new Random(9);
      return [...others, ...parts, ...longer, ...keys].flatMap((key) => {
        const bound = plain.lowerBound(key);
        const moved = concatBytes(Uint8Array.of(1, 2), key);
        const i = chance.below(keys.length);
        const j = chance.below(keys.length);
        const alike = Math.min(chance.below(12), keys[i]?.length ?? 0, keys[j]?.length ?? 0);
        return [
          leaf.lowerBound(key),
          leaf.find(key),
          leaf.boundFrom(chance.below(bound + 1), moved, 2, moved.length),
          Math.sign(leaf.compareKey(i, key, key.length)),
          Number(leaf.hasKey(i, key, 0, key.length)),
          Number(leaf.beginsAlike(i, j, alike)),
        ];
      });
    };
    expect(answers(node)).toEqual(answers(plain));
  });

  it('is as long as was said beforehand, with any number of entries, and after some were dropped', () => {
    const entries = new NodeEntries({ kind: BlockKind.index, level: 0, dense: types });
    for (const key of keys) entries.addKey(key);
    for (const count of [1, 2, groupEntries, groupEntries + 1, keys.length]) {
      const block = entries.encode(name, 0, count);
      expect(entries.sizeOf(0, count)).toBe(block.length);
      expect(block).toEqual(encoded(keys.slice(0, count), types));
    }
    entries.truncate(groupEntries + 7);
    for (const key of keys.slice(-50)) entries.addKey(key);
    expect(entries.encode(name, 0, entries.count)).toEqual(
      encoded([...keys.slice(0, groupEntries + 7), ...keys.slice(-50)], types),
    );
    const rest = new NodeEntries({ kind: BlockKind.index, level: 0, dense: types });
    rest.addNodeEntries(node, 100, 250);
    expect(rest.encode(name, 0, rest.count)).toEqual(encoded(keys.slice(100, 250), types));
  });

  it('is refused, or has ascending keys, with any byte changed', () => {
    const block = encoded(keys.slice(0, 150), types);
    const wrong = Array.from({ length: 600 }, () => {
      const at = blockHeaderBytes + random.below(block.length - blockHeaderBytes);
      const other = changed(block, at, random.below(4) === 0 ? random.below(256) : random.below(4));
      const found = keysIn(other);
      return found.some((key, i) => i > 0 && compareBytes(found[i - 1] as Uint8Array, key) >= 0) ? at : -1;
    });
    expect(wrong.filter((at) => at >= 0)).toEqual([]);
  });
});

describe('a dense leaf', () => {
  it('keeps keys that are no entries of an index on texts', () => {
    const odd = [
      [],
      [0],
      [1],
      [1, 0],
      [1, 0, 1],
      [1, 0, 1, 7],
      [1, 65, 0, 3],
      [2],
      [255, 255],
      [255, 255, 128],
      [255, 255, 128, 0],
    ];
    const keys = odd.map((bytes) => Uint8Array.from(bytes));
    const node = openStored(name, encoded(keys, [Types.uint32]));
    expect(keys.map((_, i) => node.key(i))).toEqual(keys);
  });

  it('is refused if its entries do not ascend, do not fill it, or go over the ends of their parts', () => {
    const keys = Array.from({ length: 70 }, (_, i) => keyOf('wine', [Types.uint8], [i * 3], [12, 0]));
    const block = encoded(keys, [Types.uint8]);
    // Behind the headers, two offsets and a whole entry: the second one is a step of 3, and 12 × 4 + 2.
    const second = blockHeaderBytes + 24 + 8 + 12;
    expect([...block.subarray(second, second + 2)]).toEqual([4, 50]);
    expect(keysIn(block)).toEqual(keys);
    for (const [at, byte] of [
      [second, 0],
      [second, 1],
      [second, 0x7f],
      [second + 1, 48],
      [second + 1, 49],
      [block.length - 1, 0x80],
      [blockHeaderBytes + 4, 69],
      [blockHeaderBytes + 4, 71],
      [blockHeaderBytes + 8, 0],
      [blockHeaderBytes + 2, 1],
      [blockHeaderBytes + 28, 0],
    ] as const) {
      expect([at, keysIn(changed(block, at, byte))]).toEqual([at, []]);
    }
  });

  it('takes less than three bytes for an entry of a word of many rows', () => {
    const keys = Array.from({ length: 1000 }, (_, i) => keyOf('wine', [Types.uint32], [i * 20], [12, 0]));
    expect(encoded(keys, [Types.uint32]).length).toBeLessThan(2500);
  });
});
