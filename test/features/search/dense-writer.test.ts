/** One writer makes the dense leaves of a tree, one after the other: each has the bytes that a new writer would have given it. */
import { expect, it } from 'vitest';
import { ByteWriter } from '../../../src/base/bytes.ts';
import { writeCount } from '../../../src/format/counts.ts';
import { DenseWriter } from '../../../src/format/dense-writer.ts';
import type { WrittenKeys } from '../../../src/format/dense-writer.ts';
import { writeKeyComponent } from '../../../src/format/ordered-key.ts';
import { Types } from '../../../src/format/types.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';

/** The entries of some words in order, from a random one on. */
function entriesFrom(random: SeededRandom, keyType: typeof Types.uint32 | typeof Types.varchar): WrittenKeys {
  const writer = new ByteWriter();
  const ends: number[] = [];
  let word = random.integer(0, 99);
  for (let words = random.integer(1, 6); words > 0; words--, word += random.integer(1, 9)) {
    const text = `w${String(word).padStart(3, '0')}${'long'.repeat(word % 4)}`;
    let id = random.integer(0, 5);
    for (let rows = random.integer(1, 30); rows > 0; rows--, id += random.integer(1, 700)) {
      writeKeyComponent(writer, Types.varchar, text);
      writeKeyComponent(
        writer,
        keyType,
        keyType === Types.uint32
          ? id
          : String(id)
              .padStart(6, '0')
              .repeat(1 + (id % 3)),
      );
      writeCount(writer, random.integer(1, 300));
      writeCount(writer, random.integer(0, 3));
      ends.push(writer.length);
    }
  }
  return { bytes: writer.bytes, ends: Uint32Array.from(ends) };
}

it.each([
  ['numbers', Types.uint32],
  ['texts', Types.varchar],
] as const)('that is used again, where keys are %s', (_, keyType) => {
  const random = new SeededRandom(5);
  const writer = new DenseWriter([keyType]);
  for (let leaf = 0; leaf < 400; leaf++) {
    const keys = entriesFrom(random, keyType);
    const count = keys.ends.length;
    // Keys are added bit by bit, and the last ones may go again.
    for (let to = random.integer(1, count); to < count; to += random.integer(1, 20)) {
      writer.sizeOf(keys, to);
      if (random.chance(0.3)) writer.truncate(random.integer(0, to));
    }
    expect(writer.block(keys, count)).toEqual(new DenseWriter([keyType]).block(keys, count));
    writer.truncate(0);
  }
});
