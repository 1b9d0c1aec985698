/** One writer makes the dense leaves of a tree, one after the other: each has the bytes that a new writer would have given it. */
import { expect, it } from 'vitest';
import { ByteWriter } from '../../../src/base/bytes.ts';
import { openStored } from '../../../src/cache/dense-node.ts';
import { BlockKind } from '../../../src/format/block.ts';
import { writeCount } from '../../../src/format/counts.ts';
import { DenseWriter } from '../../../src/format/dense-writer.ts';
import type { WrittenKeys } from '../../../src/format/dense-writer.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
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

const keyTypes = [
  ['numbers', Types.uint32],
  ['texts', Types.varchar],
] as const;

it.each(keyTypes)('that is used again, where keys are %s', (_, keyType) => {
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

it.each(keyTypes)('that takes entries of other leaves, where keys are %s', (_, keyType) => {
  const random = new SeededRandom(6);
  const shape = { kind: BlockKind.index, level: 0, dense: [keyType] };
  for (let round = 0; round < 150; round++) {
    const keys = entriesFrom(random, keyType);
    const count = keys.ends.length;
    const key = (i: number): Uint8Array => keys.bytes.subarray(i === 0 ? 0 : keys.ends[i - 1], keys.ends[i]);
    const written = (from: number, to: number): Uint8Array => {
      const entries = new NodeEntries(shape);
      for (let i = from; i < to; i++) entries.addKey(key(i));
      return entries.encode('leaf', 0, to - from);
    };
    // The entries of a leaf, in parts, and others between them.
    const leaf = openStored('leaf', written(0, count));
    const from = random.integer(0, count - 1);
    let taken = new NodeEntries(shape);
    for (let at = from; at < count; ) {
      const to = Math.min(count, at + random.integer(1, 150));
      if (random.chance(0.3)) for (let i = at; i < to; i++) taken.addKey(key(i));
      else taken.addNodeEntries(leaf, at, to);
      at = to;
    }
    expect(taken.encode('leaf', 0, count - from)).toEqual(written(from, count));
    // The rest behind finished leaves goes on in another list.
    for (let at = from; at < count; ) {
      const next = new NodeEntries(shape);
      const cut = random.integer(1, count - at);
      next.addFrom(taken, cut, count - at);
      expect(next.encode('leaf', 0, next.count)).toEqual(written(at + cut, count));
      const joined = new NodeEntries(shape);
      joined.addFrom(taken, 0, 1);
      joined.sizeOf(0, 1);
      joined.addFrom(taken, cut, count - at);
      const whole = new NodeEntries(shape);
      for (let i = at; i < count; i = i === at ? at + cut : i + 1) whole.addKey(key(i));
      expect(joined.encode('leaf', 0, joined.count)).toEqual(whole.encode('leaf', 0, whole.count));
      taken = next;
      at += cut;
    }
  }
});
