/** Dense leaves whose first entries another writer has written: they have the bytes that they would have had anyway. */
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../../../src/base/bytes.ts';
import { writeCount } from '../../../src/format/counts.ts';
import { DenseWriter } from '../../../src/format/dense-writer.ts';
import type { WrittenKeys } from '../../../src/format/dense-writer.ts';
import { KeyList } from '../../../src/format/key-list.ts';
import { writeKeyComponent } from '../../../src/format/ordered-key.ts';
import { Types } from '../../../src/format/types.ts';
import { Random } from '../../properties/model/random.ts';

/** Entries of words, each with some rows; keys are numbers, or texts of any length. */
function entriesOf(random: Random, keyType: typeof Types.uint32 | typeof Types.varchar): KeyList {
  const list = new KeyList();
  for (let word = 0; word < 30; word++) {
    const text = `${'word'.repeat(1 + random.below(3))}${word + 10}`;
    for (let id = random.below(9); id < 60; id += 1 + random.below(20)) {
      writeKeyComponent(list.writer, Types.varchar, text);
      writeKeyComponent(list.writer, keyType, keyType === Types.uint32 ? id : `${id}`.repeat(1 + random.below(3)));
      writeCount(list.writer, 1 + random.below(300));
      writeCount(list.writer, random.below(200));
      list.end();
    }
  }
  return list;
}

function part(list: KeyList, from: number): WrittenKeys {
  const writer = new ByteWriter();
  const ends: number[] = [];
  for (let i = from; i < list.count; i++) {
    writer.append(list.key(i));
    ends.push(writer.length);
  }
  return { bytes: writer.bytes, ends: Uint32Array.from(ends) };
}

describe('the entries of a dense leaf', () => {
  it.each([
    ['numbers', Types.uint32],
    ['texts', Types.varchar],
  ] as const)('of rows whose keys are %s are those of another leaf, from any of them on', (_, keyType) => {
    const random = new Random(5);
    // One writer takes over again and again, as leaves of a tree do.
    const taking = new DenseWriter([keyType]);
    for (let round = 0; round < 12; round++) {
      const list = entriesOf(random, keyType);
      const all = part(list, 0);
      const other = new DenseWriter([keyType]);
      other.sizeOf(all, list.count);
      for (const from of [0, 1, 63, 64, 65, 100, list.count - 1]) {
        const rest = part(list, from);
        const count = list.count - from;
        // Some entries may be left for it to write.
        const written = count - random.below(Math.min(3, count));
        other.truncate(from + written);
        taking.takeFrom(other, from, rest);
        expect(taking.block(rest, count)).toEqual(new DenseWriter([keyType]).block(rest, count));
        taking.truncate(0);
        other.sizeOf(all, list.count);
      }
    }
  });
});
