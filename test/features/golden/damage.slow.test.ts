/**
 * Damaged and hostile bytes: whatever a decoder is given, it answers with what is stored or with an error that says that
 * the bytes are not, and it neither hangs nor takes up memory out of proportion. Half of the damage is sealed again, so
 * that it gets past the checksum.
 */
import { describe, expect, it } from 'vitest';
import { ByteWriter, encodeUtf8, checksum } from '../../../src/base/bytes.ts';
import { CorruptionError, UnknownFormatError } from '../../../src/base/errors.ts';
import { openStored } from '../../../src/cache/dense-node.ts';
import { BlockKind, blockHeaderBytes, openBlock, sealBlock } from '../../../src/format/block.ts';
import { decodeBlock0 } from '../../../src/format/block0.ts';
import { decodeCatalogue } from '../../../src/format/catalogue.ts';
import { commitBlockName, decodeCommit } from '../../../src/format/commit.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';
import { MalformedKey, readKeyComponent, skipKeyComponent } from '../../../src/format/ordered-key.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { copyRow } from '../../../src/format/row-encode.ts';
import { Types } from '../../../src/format/types.ts';
import { findCatalogue, layout, objects, slot, writtenCatalogue } from './samples.ts';
import type { ObjectKind } from './samples.ts';

/** Numbers from a seed (a 32-bit linear congruential generator, its high bits). */
function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 0x1_0000_0000) * below);
  };
}

/** Does to a node all that readers do. */
function readNode(node: Node): void {
  const probes = [new Uint8Array(0), Uint8Array.of(1, 0x72, 0x6f, 0x77), Uint8Array.of(255)];
  for (const probe of probes) {
    expect(node.lowerBound(probe)).toBeLessThanOrEqual(node.count);
    node.find(probe);
    node.childFor(probe);
  }
  for (let i = 0; i < node.count; i++) {
    const key = node.key(i);
    try {
      readKeyComponent(key, 0, skipKeyComponent(key, 0, Types.varchar), Types.varchar);
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
    }
    if (node.kind === BlockKind.inner) node.child(i);
    // Whoever loads a leaf checks that its rows are as long as the schema says.
    if (node.kind !== BlockKind.table || node.stride !== layout.stride) continue;
    tolerate(() => decodeRow(layout, node, node.rowBase(i)));
    tolerate(() => copyRow(layout, node, node.rowBase(i), new ByteWriter(), new ByteWriter()));
  }
  node.totalCount();
  node.expectReads(1000);
}

const readers: Readonly<Record<ObjectKind, (bytes: Uint8Array) => void>> = {
  'table-leaf': (bytes) => readNode(openNode(objects['table-leaf'].name, bytes)),
  'index-leaf': (bytes) => readNode(openNode(objects['index-leaf'].name, bytes)),
  'inner-node': (bytes) => readNode(openNode(objects['inner-node'].name, bytes)),
  commit: (bytes) => {
    for (const { changes } of decodeCommit(slot, bytes).members) {
      for (const { node } of changes) tolerate(() => readNode(node));
    }
  },
  block0: (bytes) => void decodeBlock0(bytes),
  'block0-migrating': (bytes) => void decodeBlock0(bytes),
  'result-leaf': (bytes) => readNode(openNode(objects['result-leaf'].name, bytes)),
  'commit-functions': (bytes) => void decodeCommit(slot, bytes),
  'commit-renames': (bytes) => void decodeCommit(slot, bytes),
  'block0-renames': (bytes) => void decodeBlock0(bytes),
  'commit-rules': (bytes) => void decodeCommit(slot, bytes),
  'block0-rules': (bytes) => void decodeBlock0(bytes),
  'commit-partial': (bytes) => void decodeCommit(slot, bytes),
  'block0-partial': (bytes) => void decodeBlock0(bytes),
  'commit-expiry': (bytes) => void decodeCommit(slot, bytes),
  'block0-expiry': (bytes) => void decodeBlock0(bytes),
  'commit-drops': (bytes) => void decodeCommit(slot, bytes),
  'block0-drops': (bytes) => void decodeBlock0(bytes),
  'commit-compound': (bytes) => void decodeCommit(slot, bytes),
  'block0-compound': (bytes) => void decodeBlock0(bytes),
  'commit-including': (bytes) => void decodeCommit(slot, bytes),
  'block0-including': (bytes) => void decodeBlock0(bytes),
  'leaf-texts': (bytes) => readNode(openStored(objects['leaf-texts'].name, bytes)),
  'commit-texts': (bytes) => void decodeCommit(slot, bytes),
  'block0-texts': (bytes) => void decodeBlock0(bytes),
  'commit-paths': (bytes) => void decodeCommit(slot, bytes),
  'block0-paths': (bytes) => void decodeBlock0(bytes),
  'commit-parts-paths': (bytes) => void decodeCommit(slot, bytes),
  'block0-parts-paths': (bytes) => void decodeBlock0(bytes),
  'commit-lists-including': (bytes) => void decodeCommit(slot, bytes),
  'block0-lists-including': (bytes) => void decodeBlock0(bytes),
  'commit-later-runs': (bytes) => void decodeCommit(slot, bytes),
  'block0-adding': (bytes) => void decodeBlock0(bytes),
  'block0-catalogue': (bytes) => void decodeBlock0(bytes, findCatalogue),
  catalogue: (bytes) => void decodeCatalogue({ ...writtenCatalogue.catalogue.ref, sizeBytes: bytes.length }, bytes),
  'block0-functions': (bytes) => void decodeBlock0(bytes),
};

/** True if the bytes were read; false if they were refused as they should be. Throws what is thrown otherwise. */
function tolerate(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof CorruptionError || error instanceof UnknownFormatError) return false;
    throw error;
  }
}

/** Makes the checksum right again, as whoever wrote such bytes on purpose would. */
function reseal(kind: ObjectKind, bytes: Uint8Array): void {
  if (kind.startsWith('block0')) {
    if (bytes.length < 18) return;
    const rest = bytes.subarray(18);
    bytes.set(encodeUtf8(checksum(rest).toString(16).padStart(8, '0')), 10);
  } else if (bytes.length >= blockHeaderBytes) {
    const { name } = objects[kind];
    sealBlock(name, bytes[4] as BlockKind, bytes);
  }
}

const interesting = [0, 1, 2, 3, 4, 0x7f, 0x80, 0xfe, 0xff];

function mutate(original: Uint8Array, random: (below: number) => number): Uint8Array {
  let bytes = original.slice();
  for (let edits = 1 + random(3); edits > 0; edits--) {
    const at = random(bytes.length);
    switch (random(6)) {
      case 0:
        bytes[at] = (bytes[at] as number) ^ (1 << random(8));
        break;
      case 1:
        bytes[at] = interesting[random(interesting.length)] as number;
        break;
      case 2:
        // A number of the header, where there is most to be had.
        bytes[blockHeaderBytes + random(Math.min(24, bytes.length - blockHeaderBytes))] = random(256);
        break;
      case 3:
        bytes.fill(random(2) * 255, at, at + random(8));
        break;
      case 4:
        bytes = bytes.slice(0, Math.max(blockHeaderBytes + 1, at));
        break;
      default:
        bytes.copyWithin(at, random(bytes.length), random(bytes.length));
    }
  }
  return bytes;
}

describe('damaged bytes', () => {
  for (const kind of Object.keys(objects) as ObjectKind[]) {
    const { bytes } = objects[kind];

    it(`${kind}: every flipped bit and every missing end is noticed`, () => {
      for (let at = 0; at < bytes.length; at++) {
        const damaged = bytes.slice();
        damaged[at] = (damaged[at] as number) ^ (1 << (at % 8));
        expect(
          tolerate(() => readers[kind](damaged)),
          `byte ${at}`,
        ).toBe(false);
        expect(
          tolerate(() => readers[kind](bytes.slice(0, at))),
          `${at} bytes`,
        ).toBe(false);
      }
      expect(tolerate(() => readers[kind](Uint8Array.of(...bytes, 0)))).toBe(false);
      expect(tolerate(() => readers[kind](bytes))).toBe(true);
    });

    it(`${kind}: damage under a right checksum is an answer or an error, never a crash`, () => {
      const random = randomOf(kind.length);
      for (let run = 0; run < 4000; run++) {
        const damaged = mutate(bytes, random);
        reseal(kind, damaged);
        tolerate(() => readers[kind](damaged));
      }
    });
  }

  it('a block under another name is noticed', () => {
    const { name, bytes } = objects['table-leaf'];
    expect(openBlock(name, bytes)).toBe(BlockKind.table);
    expect(() => openBlock(`${name.slice(0, -1)}0`, bytes)).toThrow(CorruptionError);
    expect(() => openBlock('', bytes)).toThrow(CorruptionError);
    expect(() => decodeCommit(slot + 1, objects.commit.bytes)).toThrow(CorruptionError);
  });

  it('blocks within a commit are checked as well, wherever its header says that they are', () => {
    const { bytes, name } = objects.commit;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const headerBytes = view.getUint32(blockHeaderBytes, true);
    const header = Buffer.from(bytes.subarray(blockHeaderBytes + 4, blockHeaderBytes + 4 + headerBytes)).toString();
    for (const [from, to] of [
      [/"offset":0/, '"offset":1'],
      [/"offset":0/, '"offset":-1'],
      [/"offset":0/, '"offset":9007199254740991'],
      [/"offset":0/, '"offset":1e300'],
      [/"length":\d+/, '"length":4294967296'],
      [/"length":\d+/, '"length":0'],
      [/"length":\d+/, '"length":"9"'],
    ] as const) {
      const changed = encodeUtf8(header.replace(from, to));
      const blocksAt = blockHeaderBytes + 4 + Math.ceil(headerBytes / 4) * 4;
      const padded = Math.ceil(changed.length / 4) * 4;
      const commit = new Uint8Array(blockHeaderBytes + 4 + padded + bytes.length - blocksAt);
      new DataView(commit.buffer).setUint32(blockHeaderBytes, changed.length, true);
      commit.set(changed, blockHeaderBytes + 4);
      commit.set(bytes.subarray(blocksAt), blockHeaderBytes + 4 + padded);
      sealBlock(name, BlockKind.commit, commit);
      expect(() => decodeCommit(slot, commit), to).toThrow(CorruptionError);
    }
    expect(commitBlockName('t')).toBe('commit/t');
  });

  it('versions, codecs, encryptions and kinds of the future are refused, and never guessed', () => {
    const { name, bytes } = objects['table-leaf'];
    for (const [at, value] of [
      [3, 2],
      [5, 1],
      [6, 1],
      [4, 6],
      [4, 0],
    ] as const) {
      const changed = bytes.slice();
      changed[at] = value;
      const view = new DataView(changed.buffer);
      const named = checksum(changed.subarray(0, 12), checksum(encodeUtf8(name)));
      view.setUint32(12, checksum(changed.subarray(blockHeaderBytes), named), true);
      expect(() => openNode(name, changed)).toThrow(UnknownFormatError);
    }
  });
});
