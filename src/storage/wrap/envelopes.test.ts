import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { EncryptionKeyError, CorruptionError, UnknownFormatError } from '../../base/errors.ts';
import { checksum } from '../../base/bytes.ts';
import { realEnvironment } from '../../base/env.ts';
import {
  Codec,
  decodeEnvelopeHeader,
  encodeEnvelopeHeader,
  encryptedHeaderBytes,
  chunkBytes,
  decryptedBytes,
  encryptedBytes,
  tagBytes,
} from '../../format/envelope.ts';
import { encodeFrame } from '../../format/compression.ts';
import { SeededRandom } from '../../testing/seeded-random.ts';
import { Envelopes, databaseTag } from './envelopes.ts';
import { EnvelopeDriver } from './envelope-driver.ts';
import { MemoryDriver } from '../memory-driver.ts';
import { checkProtection } from './encryption-options.ts';
import type { Compression, EncryptionOptions, Protection } from './encryption-options.ts';

const key = Uint8Array.from({ length: 32 }, (_, i) => i * 5);
const other = Uint8Array.from({ length: 32 }, (_, i) => i * 3 + 1);
const name = 'data/t/000000000001-0123456789abcdef';
const random = new SeededRandom('envelopes');
const noise = random.bytes(2 ** 16 + 1);

function protection(encryption?: Partial<EncryptionOptions>, compression?: Compression): Protection {
  const defaults = { keys: { k: key }, current: 'k' };
  return checkProtection(encryption && { ...defaults, ...encryption }, compression) as Protection;
}

function envelopes(encryption?: Partial<EncryptionOptions>, compression?: Compression): Envelopes {
  return new Envelopes(protection(encryption, compression), realEnvironment);
}

const encrypting = envelopes({});

/** Long content, which a comparison by `toEqual` would take minutes for. */
function contentOf(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => (noise[i % noise.length] as number) ^ (i >>> 16));
}

function isSame(a: unknown, b: Uint8Array): boolean {
  return a instanceof Uint8Array && Buffer.compare(a, b) === 0;
}

/** Returns the content of an envelope, or the kind of the error. */
async function opened(object: Uint8Array, as = name, by: Envelopes = encrypting): Promise<unknown> {
  try {
    return (await by.unpack(as, object)).content;
  } catch (error) {
    if (error instanceof CorruptionError) return 'damaged';
    if (error instanceof UnknownFormatError) return 'unknown';
    if (error instanceof EncryptionKeyError) return 'no key';
    throw error;
  }
}

const text = new TextEncoder().encode('all work and no play makes a dull boy. '.repeat(4000));
const sizes = [
  0,
  1,
  15,
  16,
  17,
  1000,
  chunkBytes - 1,
  chunkBytes,
  chunkBytes + 1,
  3 * chunkBytes,
  17 * chunkBytes + 77,
];

describe('an envelope', () => {
  it.each(sizes)('holds %i bytes, encrypted', async (size) => {
    const content = contentOf(size);
    const object = await encrypting.pack(name, content, true, databaseTag('a'));
    expect(object).toHaveLength(encryptedBytes(size));
    expect(decryptedBytes(object.length)).toBe(size);
    expect(isSame(await opened(object), content)).toBe(true);
    async function* pieces(): AsyncGenerator<Uint8Array, void, undefined> {
      for (let at = 0; at < size; ) {
        const end = Math.min(size, at + random.integer(1, 200_000));
        yield content.subarray(at, end);
        at = end;
      }
    }
    const parts: Uint8Array[] = [];
    for await (const part of encrypting.packStream(name, pieces(), encrypting.protection.current as never)) {
      parts.push(part);
    }
    const streamed = new Uint8Array(Buffer.concat(parts));
    expect(streamed).toHaveLength(object.length);
    expect(isSame(await opened(streamed), content)).toBe(true);
  });

  it('of no other length is taken for one', () => {
    const lengths = new Set(Array.from({ length: 3 * chunkBytes }, (_, size) => encryptedBytes(size)));
    const all = Array.from({ length: encryptedBytes(3 * chunkBytes - 1) }, (_, length) => length);
    expect(lengths.size).toBe(3 * chunkBytes);
    expect(all.filter((length) => (decryptedBytes(length) !== undefined) !== lengths.has(length))).toEqual([]);
  });

  it('is refused with any byte changed, and with any part of it missing or added', async () => {
    const content = random.bytes(100);
    const object = await encrypting.pack(name, content, false, databaseTag('a'));
    for (let at = 0; at < object.length; at++) {
      for (const bit of [1, 128]) {
        const changed = object.slice();
        changed[at] = (changed[at] as number) ^ bit;
        expect(['damaged', 'unknown'], `byte ${at}`).toContain(await opened(changed));
      }
      expect(await opened(object.slice(0, at)), `${at} bytes`).toBe('damaged');
    }
    expect(await opened(Uint8Array.from([...object, 0]))).toBe('damaged');
    expect(isSame(await opened(object), content)).toBe(true);
  });

  it('is refused under another name, with another key, and with a header that was made up', async () => {
    const content = random.bytes(1000);
    const object = await encrypting.pack(name, content, false, databaseTag('a'));
    expect(await opened(object, `${name}0`)).toBe('damaged');
    expect(await opened(object, name, envelopes({ keys: { k: other } }))).toBe('no key');
    expect(await opened(object, name, envelopes({ keys: { l: key }, current: 'l' }))).toBe('no key');
    expect(await opened(object, name, envelopes(undefined, 'none'))).toBe('no key');
    // An attacker who can write may also correct the checksum of the header: the check with the key fails nevertheless.
    const { bytes: _, seal, ...rest } = decodeEnvelopeHeader(name, object);
    if (seal === undefined) throw new Error('not encrypted');
    const headers = [
      [`${name}0`, { ...rest, seal }],
      [name, { ...rest, seal: { ...seal, database: databaseTag('b') } }],
      [name, { ...rest, seal: { ...seal, salt: random.bytes(32) } }],
      [name, { ...rest, codec: Codec.deflate, contentBytes: 1000, seal }],
      [name, { ...rest, codec: Codec.deflate, contentBytes: 64 * 1024 * 1024, seal }],
    ] as const;
    for (const [as, header] of headers) {
      const forged = object.slice();
      forged.set(encodeEnvelopeHeader(as, header));
      expect(await opened(forged, as)).toBe('damaged');
    }
    const sameKeyOtherId = envelopes({ keys: { l: key, k: key }, current: 'k' });
    const renamed = object.slice();
    renamed.set(encodeEnvelopeHeader(name, { ...rest, seal: { ...seal, keyId: 'l' } }));
    expect(await opened(renamed, name, sameKeyOtherId)).toBe('damaged');
  });

  it('is refused under a name that its checksum takes for its own', async () => {
    const names = new Map<number, string>();
    let [one, two] = ['', ''];
    for (let i = 0; two === ''; i++) {
      const each = `data/t/${createHash('sha256').update(String(i)).digest('hex')}`;
      const sum = checksum(new TextEncoder().encode(each));
      [one, two] = names.has(sum) ? [names.get(sum) as string, each] : ['', ''];
      names.set(sum, each);
    }
    const object = await encrypting.pack(one, random.bytes(100), false);
    expect(decodeEnvelopeHeader(two, object).seal?.keyId).toBe('k');
    expect(await opened(object, one)).toHaveLength(100);
    expect(await opened(object, two)).toBe('damaged');
  });

  it('notices chunks that changed places, were repeated or left out, or come from another object', async () => {
    const content = contentOf(4 * chunkBytes);
    // Equal chunks of content have different stored bytes.
    const even = await encrypting.pack(name, new Uint8Array(4 * chunkBytes), false);
    const stride = chunkBytes + tagBytes;
    const chunkOf = (from: Uint8Array, i: number): Uint8Array => {
      return from.subarray(encryptedHeaderBytes + i * stride, encryptedHeaderBytes + (i + 1) * stride);
    };
    for (let i = 1; i < 4; i++) expect(isSame(chunkOf(even, i), chunkOf(even, 0))).toBe(false);
    const object = await encrypting.pack(name, content, false);
    const second = await encrypting.pack(name, content, false);
    expect(isSame(chunkOf(second, 0), chunkOf(object, 0))).toBe(false);
    const header = object.subarray(0, encryptedHeaderBytes);
    const orders = [[0, 1, 2], [0, 1, 2, 2], [0, 2, 1, 3], [1, 2, 3], [0, 1, 2, 3, 3], [3], [], [0, 1, 3]];
    for (const order of orders) {
      const made = Buffer.concat([header, ...order.map((i) => chunkOf(object, i))]);
      expect(await opened(new Uint8Array(made)), order.join()).toBe('damaged');
    }
    const mixed = Buffer.concat([
      header,
      chunkOf(object, 0),
      chunkOf(second, 1),
      chunkOf(object, 2),
      chunkOf(object, 3),
    ]);
    expect(await opened(new Uint8Array(mixed))).toBe('damaged');
    expect(isSame(await opened(object), content)).toBe(true);
  });

  it.each([undefined, {}])('is compressed where that pays, encryption %o', async (encryption) => {
    const by = envelopes(encryption, 'deflate');
    for (const content of [text, text.subarray(0, 500), text.subarray(0, chunkBytes + 1)]) {
      const object = await by.pack(name, content, true);
      expect(object.length).toBeLessThan(content.length * 0.8);
      expect(isSame(await opened(object, name, by), content)).toBe(true);
    }
    const odd = random.bytes(5000);
    const overhead = encryption === undefined ? 0 : encryptedBytes(5000) - 5000;
    expect(await by.pack(name, odd, true)).toHaveLength(odd.length + overhead);
    expect(await by.pack(name, text, false)).toHaveLength(
      encryption === undefined ? text.length : encryptedBytes(text.length),
    );
    const mixed = new Uint8Array(Buffer.concat([contentOf(chunkBytes), text]));
    expect(isSame(await opened(await by.pack(name, mixed, true), name, by), mixed)).toBe(true);
  });

  it('says no more than it holds: lengths are bounded, and must be right', async () => {
    const by = envelopes(undefined, 'deflate');
    const bomb = await by.pack(name, new Uint8Array(chunkBytes), true);
    expect(bomb.length).toBeLessThan(400);
    for (const contentBytes of [0, 1, chunkBytes - 1, chunkBytes + 1, 2 * chunkBytes, 64 * 1024 * 1024]) {
      const header = encodeEnvelopeHeader(name, { codec: Codec.deflate, contentBytes, seal: undefined });
      const forged = bomb.slice();
      forged.set(header);
      expect(await opened(forged, name, by), String(contentBytes)).toBe('damaged');
    }
    // A frame that holds its content as it is, and one that holds it compressed.
    for (const content of [contentOf(1000), new Uint8Array(1000)]) {
      const frame = encodeFrame(Codec.deflate, content);
      const openedAs = (contentBytes: number): Promise<unknown> => {
        const head = encodeEnvelopeHeader(name, { codec: Codec.deflate, contentBytes, seal: undefined });
        return opened(Buffer.concat([head, frame]), name, by);
      };
      expect(isSame(await openedAs(1000), content)).toBe(true);
      for (const bytes of [1, 999, 1001, 2000]) expect(await openedAs(bytes), String(bytes)).toBe('damaged');
    }
    const header = encodeEnvelopeHeader(name, { codec: Codec.deflate, contentBytes: 2 ** 32 - 1, seal: undefined });
    expect(await opened(header, name, by)).toBe('damaged');
    for (const codec of [Codec.zstd, 3]) {
      const otherCodec = bomb.slice();
      otherCodec.set(encodeEnvelopeHeader(name, { codec: codec as Codec, contentBytes: chunkBytes, seal: undefined }));
      expect(['damaged', 'unknown']).toContain(await opened(otherCodec, name, by));
    }
  });

  it('compressed with zstd is read by every runtime', async () => {
    // Made by zstd 1.5: the text, and then a frame of zeros.
    const frame = Buffer.from('KLUv/WDoAtUAAHB0byBiZSBvciBub3QgLAMAzG9WUJkLrvkF', 'base64');
    const head = new Uint8Array(4);
    new DataView(head.buffer).setUint32(0, frame.length, true);
    const content = new TextEncoder().encode('to be or not to be, '.repeat(50));
    const header = encodeEnvelopeHeader(name, { codec: Codec.zstd, contentBytes: content.length, seal: undefined });
    const by = envelopes(undefined, 'none');
    const object = new Uint8Array(Buffer.concat([header, head, frame]));
    expect(isSame(await opened(object, name, by), content)).toBe(true);
    for (let at = 28; at < object.length; at++) {
      const changed = object.slice();
      changed[at] = (changed[at] as number) ^ 1;
      // Its checksums match its content.
      const result = await opened(changed, name, by);
      const isBounded = result instanceof Uint8Array && result.length === content.length;
      expect(result === 'damaged' || isBounded).toBe(true);
    }
  });
});

describe('a driver that encrypts', () => {
  const prefix = 'a/b';
  const blob = `${prefix}/blobs/0b7e3ab4-8f3c-4a53-9d1c-0123456789ab`;

  function driverOn(inner: MemoryDriver, encryption: Partial<EncryptionOptions> = {}): EnvelopeDriver {
    return new EnvelopeDriver({
      driver: inner,
      prefix,
      protection: protection(encryption),
      environment: realEnvironment,
    });
  }

  it.each([{}, { current: null }])('gives every range that there is, with %o', async (encryption) => {
    const inner = new MemoryDriver();
    for (const size of [0, 1, 100, chunkBytes, chunkBytes + 5, 3 * chunkBytes + 9]) {
      const content = contentOf(size);
      await driverOn(inner, encryption).put(blob, content, { if: 'any' });
      const ends = [0, 1, size - 1, size, size + 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 2 * chunkBytes];
      const offsets = ends.filter((end) => end >= 0);
      const warm = driverOn(inner, encryption);
      for (const start of offsets) {
        for (const end of offsets.filter((each) => each >= start)) {
          for (const driver of [warm, driverOn(inner, encryption)]) {
            const found = await driver.get(blob, { range: { start, end } });
            if (found.status !== 'found') throw new Error(found.status);
            expect(found.sizeBytes, `${start} to ${end} of ${size}`).toBe(size);
            expect(Buffer.compare(found.bytes, content.subarray(start, end))).toBe(0);
          }
        }
      }
    }
  });

  it('verifies a range without the rest, and notices one that was cut off or replaced', async () => {
    const inner = new MemoryDriver();
    const driver = driverOn(inner);
    const content = contentOf(5 * chunkBytes);
    await driver.put(blob, content, { if: 'any' });
    const stored = await inner.get(blob);
    if (stored.status !== 'found') throw new Error('missing');
    const damaged = stored.bytes.slice();
    damaged[encryptedHeaderBytes + 10] = 1 ^ (damaged[encryptedHeaderBytes + 10] as number);
    await inner.put(blob, damaged, { if: 'any' });
    const rest = await driver.get(blob, { range: { start: 2 * chunkBytes, end: 3 * chunkBytes } });
    expect(rest).toMatchObject({ status: 'found', sizeBytes: content.length });
    await expect(driver.get(blob, { range: { start: 0, end: 10 } })).rejects.toMatchObject({ code: 'CORRUPTION' });
    const cut = stored.bytes.slice(0, encryptedHeaderBytes + 3 * (chunkBytes + tagBytes));
    await inner.put(blob, cut, { if: 'any' });
    const last = driver.get(blob, { range: { start: 2 * chunkBytes, end: 5 * chunkBytes } });
    await expect(last).rejects.toMatchObject({ code: 'CORRUPTION' });
    // Rewritten between two reads: the remembered head is out of date.
    await driver.put(blob, content, { if: 'any' });
    await driver.get(blob, { range: { start: chunkBytes, end: chunkBytes + 1 } });
    await driverOn(inner).put(blob, content, { if: 'any' });
    const again = await driver.get(blob, { range: { start: chunkBytes, end: chunkBytes + 3 } });
    expect(again).toMatchObject({ bytes: content.subarray(chunkBytes, chunkBytes + 3) });
  });

  it('hides the media type of a blob, and leaves other prefixes alone', async () => {
    const inner = new MemoryDriver();
    const types: unknown[] = [];
    const put = inner.put.bind(inner);
    const watched = Object.assign(inner, {
      put: (...args: Parameters<typeof put>) => (types.push(args[2]), put(...args)),
    });
    await driverOn(watched).put(blob, random.bytes(10), { if: 'absent', contentType: 'text/secret' });
    await driverOn(watched, { current: null }).put(blob, random.bytes(10), { if: 'any', contentType: 'text/html' });
    expect(types).toEqual([
      { if: 'absent', purge: true },
      { if: 'any', contentType: 'text/html' },
    ]);
    await expect(driverOn(inner).get('a/bc/block0')).rejects.toMatchObject({ code: 'STORAGE' });
  });
});
