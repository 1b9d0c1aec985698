/** What the fuzzer feeds to those who open envelopes: headers, encrypted chunks and compressed frames, damaged or made up. */
import { compareBytes } from '../../../src/base/bytes.ts';
import { CorruptionError, UnknownFormatError } from '../../../src/base/errors.ts';
import {
  Codec,
  decodeEnvelopeHeader,
  encodeEnvelopeHeader,
  encryptedHeaderBytes,
  isEnvelope,
  maxCompressedContentBytes,
  plainHeaderBytes,
  EnvelopeCipher,
  keyCheckOf,
  SecretKey,
  tagBytes,
} from '../../../src/format/envelope.ts';
import type { EnvelopeHeader } from '../../../src/format/envelope.ts';
import { decodeFrame, encodeFrame, frameBytes, prepareToExpand } from '../../../src/format/compression.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { mutate } from './mutations.ts';

const name = 'data/t/000000000001-0123456789abcdef';
const key = new SecretKey(Uint8Array.from({ length: 32 }, (_, i) => i));
const seal = {
  keyId: '2026',
  keyCheck: keyCheckOf(key),
  database: new Uint8Array(16).fill(7),
  salt: Uint8Array.from({ length: 32 }, (_, i) => i * i),
};
const headers: readonly Omit<EnvelopeHeader, 'bytes'>[] = [
  { codec: Codec.none, contentBytes: 0, seal },
  { codec: Codec.deflate, contentBytes: 70_000, seal },
  { codec: Codec.deflate, contentBytes: 5, seal: undefined },
];
const content = new TextEncoder().encode('to be or not to be, '.repeat(40));
const cipher = new EnvelopeCipher(key, name, encodeEnvelopeHeader(name, headers[0] as EnvelopeHeader), seal.salt);
const chunk = new Uint8Array(content.length + tagBytes);
await cipher.encrypt(3, false, content, chunk, 0);
const frame = encodeFrame(Codec.deflate, content);
/** The same text, as zstd writes it. */
const zstdFrame = new Uint8Array(Buffer.from('JAAAACi1L/1gIALVAABwdG8gYmUgb3Igbm90ICwDAARvVlCZC675BQ==', 'base64'));
await prepareToExpand(Codec.zstd);

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

function isRead(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof CorruptionError || error instanceof UnknownFormatError) return false;
    throw error;
  }
}

/** Whatever differs from a header is refused; what nobody made has bounds all the same. */
function header(random: SeededRandom): void {
  const known = random.pick(headers);
  const bytes = encodeEnvelopeHeader(name, known);
  const damaged = mutate(bytes, random);
  if (!isEnvelope(damaged)) return;
  const length = known.seal === undefined ? plainHeaderBytes : encryptedHeaderBytes;
  const same = compareBytes(damaged.subarray(0, length), bytes) === 0;
  check(isRead(() => decodeEnvelopeHeader(name, damaged)) === same, 'a damaged header is not noticed');
  const odd = {
    codec: random.integer(0, 4) as Codec,
    contentBytes: random.pick([0, 1, 65_536, maxCompressedContentBytes, maxCompressedContentBytes + 1, 0xffff_ffff]),
    seal: random.chance(0.3) ? undefined : { ...seal, keyId: 'x'.repeat(random.integer(0, 32)) },
  };
  isRead(() => {
    const read = decodeEnvelopeHeader(name, encodeEnvelopeHeader(name, odd));
    check(read.contentBytes <= maxCompressedContentBytes, 'a length without bounds');
    check(read.codec !== Codec.none || read.contentBytes === 0, 'a length of what is not compressed');
  });
}

function chunks(random: SeededRandom): void {
  const damaged = mutate(chunk, random);
  const same = compareBytes(damaged, chunk) === 0;
  const at = random.chance(0.7) ? 3 : random.integer(0, 5);
  const isLast = random.chance(0.2);
  // Without a promise on Node.js.
  const opened = cipher.decrypt(at, isLast, damaged) as Uint8Array | undefined;
  check((opened !== undefined) === (same && at === 3 && !isLast), 'a chunk is opened that is none');
  if (opened !== undefined) check(compareBytes(opened, content) === 0, 'a chunk is opened as another');
}

function frames(codec: Codec, sample: Uint8Array): (random: SeededRandom) => void {
  return (random) => {
    const damaged = mutate(sample, random);
    const same = compareBytes(damaged, sample) === 0;
    const size = random.pick([content.length, content.length, 0, 1, content.length - 1, frameBytes]);
    const target = new Uint8Array(size);
    const read = isRead(() => check(decodeFrame(name, codec, damaged, 0, target) <= damaged.length, 'it ends outside'));
    if (same) check(read === (size === content.length), 'a frame is read as longer or shorter than it is');
    if (same && read) check(compareBytes(target, content) === 0, 'a frame is read as another');
  };
}

export const envelopeTargets = {
  'envelope header': { weight: 3, run: header },
  'encrypted chunks': { weight: 1, run: chunks },
  'deflated frames': { weight: 1, run: frames(Codec.deflate, frame) },
  'frames of zstd': { weight: 1, run: frames(Codec.zstd, zstdFrame) },
} as const;
