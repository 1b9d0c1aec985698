/** What the database says of a blob decides what is read and allocated: a record that cannot be is refused first. */
import { getHeapStatistics } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { checksum } from '../../../src/base/bytes.ts';
import { CorruptionError } from '../../../src/base/errors.ts';
import { BlobStore } from '../../../src/blob/blob-store.ts';
import { blobChunkBytes, checkBlobRecord } from '../../../src/blob/blob-rows.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

const reference = '01234567-89ab-4def-8123-456789abcdef';
const body = new Uint8Array(300).fill(7);
const checksums = new Uint8Array(4);
new DataView(checksums.buffer).setUint32(0, checksum(body), true);
const right = { sizeBytes: body.length, contentType: 'text/plain', checksums };

const wrong: readonly (readonly [what: string, changes: Readonly<Record<string, unknown>>])[] = [
  ['no size', { sizeBytes: null }],
  ['a size below zero', { sizeBytes: -1 }],
  ['half a byte', { sizeBytes: 300.5 }],
  ['a size that is no number', { sizeBytes: Number.NaN }],
  ['an infinite size', { sizeBytes: Number.POSITIVE_INFINITY }],
  ['a size that memory cannot hold', { sizeBytes: 2 ** 50 }],
  ['no type', { contentType: null }],
  ['no checksums', { checksums: null }],
  ['half a checksum', { checksums: checksums.subarray(0, 2) }],
  ['a checksum too many', { checksums: new Uint8Array(8) }],
];

describe('the record of a blob', () => {
  it.each(wrong)('is refused with %s', (_, changes) => {
    expect(() => checkBlobRecord(reference, { ...right, ...changes })).toThrow(CorruptionError);
  });

  it('is compared with the object before memory is allocated for it', async () => {
    const driver = new MemoryDriver();
    const store = new BlobStore(driver, 'db');
    await driver.put(`db/blobs/${reference}`, body, { if: 'absent' });
    expect(await store.read(reference, checkBlobRecord(reference, right), 0, body.length)).toEqual(Buffer.from(body));
    const chunks = 1000;
    const sizeBytes = chunks * blobChunkBytes;
    const hostile = checkBlobRecord(reference, { ...right, sizeBytes, checksums: new Uint8Array(chunks * 4) });
    const before = getHeapStatistics().external_memory;
    await expect(store.read(reference, hostile, 0, sizeBytes)).rejects.toThrow(CorruptionError);
    expect(getHeapStatistics().external_memory - before).toBeLessThan(sizeBytes / 4);
    const shorter = { ...right, sizeBytes: 100 };
    await expect(store.read(reference, shorter, 0, 100)).rejects.toThrow(CorruptionError);
  });
});
