/** The objects of bundles as format 1 has them: what is encoded today must be the same bytes. */
import { describe, expect, it } from 'vitest';
import { BlockKind, openBlock } from '../../../src/format/block.ts';
import {
  bundleBlobsPrefix,
  bundleObjectName,
  bundleSource,
  checkBundleBlock,
  decodeContents,
  decodeManifest,
  decodePointer,
  encodeContents,
  encodeManifest,
  encodePointer,
  hashKey,
  isOfBundles,
  packBundleObject,
  sealBundleBlock,
  unpackBundleObject,
} from '../../../src/format/bundle.ts';
import { Codec, encodeEnvelopeHeader } from '../../../src/format/envelope.ts';

const source = bundleSource('0190c0a0-0000-7000-8000-000000000000');
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const bytes = (string: string): Uint8Array => Buffer.from(string);

describe('the objects of a bundle', () => {
  it('are a pointer', () => {
    const manifest = `manifests/000000000007-${'0a'.repeat(16)}`;
    const contents = `contents/000000000007-${'0b'.repeat(16)}`;
    const pointer = {
      source,
      bundles: [{ number: 7, manifest, contents, position: 12, publishedMs: 1_790_000_000_000 }],
    };
    expect(text(encodePointer(pointer))).toMatchInlineSnapshot(
      `"{"crc32":"7c2f7a57","format":1,"source":"4d71ea162f5d3f48eedd3bac076448ea","bundles":[{"number":7,"manifest":"manifests/000000000007-0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a","contents":"contents/000000000007-0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b","position":12,"publishedMs":1790000000000}]}"`,
    );
    expect(decodePointer(encodePointer(pointer))).toEqual(pointer);
    expect(() => decodePointer(bytes(text(encodePointer(pointer)).replace('12', '13')))).toThrow(
      'does not match its checksum',
    );
    expect(() => decodePointer(encodePointer({ source, bundles: [] }))).toThrow('lacks a field');
  });

  it('are a manifest and contents, named after their bytes', () => {
    const manifest = { source, tables: [], inlined: [{ name: 'data/t/00-00', block: 'AA==' }] };
    const name = bundleObjectName('manifests', 0x1234, encodeManifest(manifest));
    expect(name).toMatchInlineSnapshot(`"manifests/000000001234-c23128e6de221824a44d051f17054d4f"`);
    expect(text(encodeManifest(manifest))).toMatchInlineSnapshot(
      `"{"format":1,"source":"4d71ea162f5d3f48eedd3bac076448ea","tables":[],"inlined":[{"name":"data/t/00-00","block":"AA=="}]}"`,
    );
    expect(decodeManifest(name, encodeManifest(manifest))).toEqual(manifest);
    expect(() => decodeManifest(name, encodeManifest({ ...manifest, inlined: [] }))).toThrow(
      'bytes that its name tells',
    );
    const later = bytes(text(encodeManifest(manifest)).replace('"format":1', '"format":4'));
    expect(() => decodeManifest(bundleObjectName('manifests', 1, later), later)).toThrow('upgrade it');
    const contents = { blocks: ['data/t/010203040007-0123456789abcdef'], inlined: [], blobs: [] };
    const contentsName = bundleObjectName('contents', 7, encodeContents(contents));
    expect(text(encodeContents(contents))).toMatchInlineSnapshot(
      `"{"blocks":["data/t/010203040007-0123456789abcdef"],"inlined":[],"blobs":[]}"`,
    );
    expect(decodeContents(contentsName, encodeContents(contents))).toEqual(contents);
  });

  it('are blocks, named after their folder and bytes, and after the bundle that was first', () => {
    const block = new Uint8Array(40).fill(7);
    const { name, ref } = sealBundleBlock(
      { table: 'T', index: 'i' },
      BlockKind.index,
      block,
      0x1_0009,
      () => undefined,
    );
    expect(name).toMatchInlineSnapshot(`"indexes/_54/i/4212bc370009-d7ef3a40bd54b3cb"`);
    expect(openBlock(name, block)).toBe(BlockKind.index);
    checkBundleBlock(name, block);
    expect(() => checkBundleBlock(name.replace('_54', '_55'), block)).toThrow('bytes that its name tells');
    expect(name).toBe(`indexes/_54/i/${ref.birth.toString(16).padStart(12, '0')}-${ref.id}`);
    const again = sealBundleBlock({ table: 'T', index: 'i' }, BlockKind.index, block, 12, (key) => {
      expect(key).toBe(hashKey(name));
      return name;
    });
    expect(again).toMatchObject({ name, ref });
    block[39] = 8;
    expect(() => checkBundleBlock(name, block)).toThrow('bytes that its name tells');
  });

  it('are compressed where that makes them shorter, and in no other form', () => {
    const content = bytes('to be or not to be '.repeat(9000));
    const packed = packBundleObject('contents/x', content);
    expect(packed.length).toBeLessThan(content.length / 10);
    expect(text(packed.subarray(0, 7))).toBe('SDBCAPS');
    expect(unpackBundleObject('contents/x', packed, content.length)).toEqual(new Uint8Array(content));
    expect(() => unpackBundleObject('contents/x', packed, content.length - 1)).toThrow('longer than');
    expect(packBundleObject('contents/x', bytes('abc'))).toEqual(bytes('abc'));
    for (const codec of [Codec.none, Codec.zstd]) {
      const header = encodeEnvelopeHeader('contents/x', {
        codec,
        contentBytes: codec === Codec.none ? 0 : 3,
        seal: undefined,
      });
      expect(() => unpackBundleObject('contents/x', Buffer.concat([header, bytes('abc')]), 100)).toThrow(
        'a form that bundles',
      );
    }
  });
});

describe('isOfBundles()', () => {
  const id = '0123456789abcdef';
  it.each([
    [`data/t/01020304fffe-${id}`, 0xffff, true],
    [`data/t/01020304ffff-${id}`, 0xffff, true],
    [`data/t/010203040000-${id}`, 0xffff, false],
    [`data/t/010203040001-${id}`, 0x1_0000, false],
    [`indexes/t/i/010203040000-${id}`, 0x1_0000, true],
    [`indexes/t/i/01020304ffff-${id}`, 0x1_0000, true],
    [`manifests/000000000003-${id}${id}`, 3, true],
    [`contents/000000000003-${id}${id}`, 2, false],
    [`${bundleBlobsPrefix(4)}/blobs/x`, 4, true],
    [`${bundleBlobsPrefix(5)}/blobs/x`, 4, false],
    ['bundle', 4, undefined],
    ['block0', 4, undefined],
    [`data/t/${id}`, 4, undefined],
    ['mine/anything.html', 4, undefined],
  ])('of %s and %d is %s', (name, upTo, expected) => {
    expect(isOfBundles(name, upTo)).toBe(expected);
  });
});
