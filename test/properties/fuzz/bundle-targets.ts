/** What the fuzzer feeds to readers of bundles: pointers, manifests, contents, compressed objects and blocks, damaged or forged. */
import { CorruptionError, UnknownFormatError } from '../../../src/base/errors.ts';
import { checksum } from '../../../src/base/bytes.ts';
import { BlockKind } from '../../../src/format/block.ts';
import {
  bundleObjectName,
  bundleSource,
  checkBundleBlock,
  decodeContents,
  decodeManifest,
  decodePointer,
  encodeContents,
  encodeManifest,
  encodePointer,
  packBundleObject,
  sealBundleBlock,
  unpackBundleObject,
} from '../../../src/format/bundle.ts';
import type { StoredSchema } from '../../../src/format/stored-schema.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { mutate } from './mutations.ts';

const schema: StoredSchema = {
  name: 'towns',
  version: 1,
  fields: [
    { name: 'id', typeId: 3 },
    { name: 'name', typeId: 10 },
  ],
  primaryKey: ['id'],
  indexes: [{ name: 'name', fields: ['name'] }],
};
const body = new TextEncoder().encode('0123456789abcdef and what a node has, '.repeat(9));
const sealed = sealBundleBlock({ table: 'towns' }, BlockKind.table, body.slice(), 5, () => undefined);
const root = { ...sealed.ref, count: 3, sizeBytes: body.length, level: 0 };
const source = bundleSource('0190c0a0-0000-7000-8000-000000000000');
const manifest = encodeManifest({
  source,
  tables: [{ name: 'towns', versions: [{ schema, root, indexes: [{ name: 'name', root }] }] }],
  inlined: [{ name: sealed.name, block: Buffer.from(body).toString('base64') }],
});
const contents = encodeContents({
  blocks: [sealed.name],
  inlined: [],
  blobs: ['000000000005/blobs/0190c0a0-0000-7000-8000-000000000000'],
});
const pointer = encodePointer({
  source,
  bundles: [
    {
      number: 5,
      manifest: bundleObjectName('manifests', 5, manifest),
      contents: bundleObjectName('contents', 5, contents),
      position: 12,
      publishedMs: 1_790_000_000_000,
    },
  ],
});
const packed = packBundleObject('contents/x', body);

function isRead(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof CorruptionError || error instanceof UnknownFormatError) return false;
    throw error;
  }
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function pointers(random: SeededRandom): void {
  const bytes = mutate(pointer, random);
  check(isEqual(bytes, pointer) || !isRead(() => decodePointer(bytes)), 'A damaged pointer was read');
  // With its checksum put right, as a server can.
  const text = Buffer.from(bytes).toString('latin1');
  const sum = checksum(bytes.subarray(19)).toString(16).padStart(8, '0');
  isRead(() => decodePointer(Buffer.from(`{"crc32":"${sum}${text.slice(19)}`, 'latin1')));
}

function manifests(random: SeededRandom): void {
  const bytes = mutate(manifest, random);
  const name = bundleObjectName('manifests', 5, manifest);
  check(isEqual(bytes, manifest) || !isRead(() => decodeManifest(name, bytes)), 'A damaged manifest was read');
  const forged = bundleObjectName('manifests', 5, bytes);
  isRead(() => {
    const { tables } = decodeManifest(forged, bytes);
    check(
      tables.every(({ versions }) => versions.length === 1),
      'A table is in several versions',
    );
  });
}

function allContents(random: SeededRandom): void {
  const bytes = mutate(contents, random);
  isRead(() => decodeContents(bundleObjectName('contents', 5, bytes), bytes));
}

function packedObjects(random: SeededRandom): void {
  const bytes = mutate(packed, random);
  isRead(() => check(unpackBundleObject('contents/x', bytes, 1000).length <= 1000, 'An object is too long'));
}

function blocks(random: SeededRandom): void {
  const bytes = mutate(sealed.bytes, random);
  const isSame =
    isEqual(bytes.subarray(0, 12), sealed.bytes.subarray(0, 12)) &&
    isEqual(bytes.subarray(16), sealed.bytes.subarray(16));
  check(isSame || !isRead(() => checkBundleBlock(sealed.name, bytes)), 'A damaged block has its name');
}

export const bundleTargets = {
  'pointer of a bundle': { weight: 1, run: pointers },
  'manifest of a bundle': { weight: 1, run: manifests },
  'contents of a bundle': { weight: 1, run: allContents },
  'object of a bundle, compressed': { weight: 1, run: packedObjects },
  'block of a bundle': { weight: 1, run: blocks },
} as const;
