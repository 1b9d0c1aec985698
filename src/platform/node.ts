/**
 * The platform Node.js, also for Bun and Deno: what the core needs of the runtime and JavaScript itself does not have. `web.ts` has the
 * same functions for browsers and Workers. The core imports them from `#platform`, which stands for the file of the platform; nothing
 * else in the core imports a module of Node.js.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomFillSync } from 'node:crypto';
import * as diagnostics from 'node:diagnostics_channel';
import { setMaxListeners } from 'node:events';
import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import * as timers from 'node:timers';
import * as util from 'node:util';
import zlib, { crc32 } from 'node:zlib';
import { loadZstdDecoder } from './zstd.ts';

/** Bytes of values, as applications get them: `Buffer`, or `Uint8Array` in programs that are typed without Node.js. */
export type Bytes = typeof globalThis extends { Buffer: { concat(list: never): infer Own extends Uint8Array } }
  ? Own
  : Uint8Array;

/** The stream of a blob, as applications get it. */
export type BlobStream = Readable;

/** The encodings of `BlobReference.getString()`. */
export type TextEncoding = BufferEncoding;

const { setTimeout, clearTimeout } = timers;

/**
 * Calls a function outside of every call of the application, so that what it begins counts as nobody's: the context of a call that
 * happens to set a timer is not that of the work.
 */
const outside: (callback: () => void) => void = AsyncLocalStorage.snapshot();

/** The channels on which the package tells what it does; undefined where the runtime has none. */
export const tracingChannel: typeof diagnostics.tracingChannel | undefined = diagnostics.tracingChannel;

/** Makes the runtime call `callback` later, once. Returns a function that prevents it. */
export function startTimer(callback: () => void, delayMs: number, isBackground: boolean): () => void {
  const handle = setTimeout(outside, delayMs, callback);
  if (isBackground) handle.unref();
  return () => clearTimeout(handle);
}

/** Calls `callback` once pending I/O callbacks had a chance to run. */
export const afterIo: (callback: () => void) => void = timers.setImmediate;

/** Returns the time by the monotonic clock, in milliseconds with a fraction. */
export const monotonicMs: () => number = performance.now.bind(performance);

/** Returns how long the event loop has been active so far, in milliseconds; undefined where the runtime does not know that. */
export function loopActiveMs(): number | undefined {
  const { active } = performance.eventLoopUtilization();
  return active > 0 ? active : undefined;
}

/** Fills `bytes` with cryptographically random ones, and returns them. */
export function fillRandom(bytes: Uint8Array): Uint8Array {
  return randomFillSync(bytes);
}

/** Makes any number of listeners of a signal no reason for a warning. Throws unless the signal is of the runtime's own class. */
export function allowListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}

function runtimeController(): typeof AbortController {
  try {
    allowListeners(new AbortController().signal);
    return AbortController;
  } catch {
    return util.transferableAbortController().constructor as typeof AbortController;
  }
}

/** The runtime's own class, whatever the global name holds. */
export const OwnAbortController: typeof AbortController = runtimeController();

/** The class of its signals. */
export const OwnAbortSignal = new OwnAbortController().signal.constructor as typeof AbortSignal;

export const isDate: (value: unknown) => value is Date = util.types.isDate;
export const isUint8Array: (value: unknown) => value is Uint8Array = util.types.isUint8Array;
export const isNativeError: (value: unknown) => value is Error = util.types.isNativeError;

/** Returns the same bytes as applications get them, without a copy. */
export function asBytes({ buffer, byteOffset, byteLength }: Uint8Array): Bytes {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

/** Returns a copy of bytes, as applications get them. */
export function copyBytes(bytes: Uint8Array): Bytes {
  return Buffer.from(bytes);
}

/** Returns bytes that may hold anything, in memory of their own. */
export function uncleared(size: number): Uint8Array {
  return new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
}

type SliceMethod = (this: Uint8Array, start: number, end: number) => string;
const decoders = Buffer.prototype as unknown as { readonly latin1Slice: SliceMethod; readonly utf8Slice: SliceMethod };

/** Returns a text with a character for each byte of a range. */
export const latin1Slice: SliceMethod = decoders.latin1Slice;

/** Decodes a range as UTF-8, with U+FFFD in place of bytes that are not well-formed. */
export const utf8Slice: SliceMethod = decoders.utf8Slice;

/** Returns the number of bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  return Buffer.byteLength(text);
}

/** Returns bytes as text in an encoding. */
export function toText(bytes: Uint8Array, encoding: TextEncoding): string {
  return asBytes(bytes).toString(encoding);
}

/** Decodes a text in hexadecimal, base64 or base64url up to its first wrong character. */
export function fromText(text: string, encoding: 'hex' | 'base64' | 'base64url'): Uint8Array {
  return new Uint8Array(Buffer.from(text, encoding));
}

/** Returns the place at which `part` first is in `bytes`, or -1. */
export function indexOfBytes(bytes: Uint8Array, part: Uint8Array): number {
  return asBytes(bytes).indexOf(part);
}

/** Returns a stream of pieces. It emits their error. */
export function streamOf(pieces: AsyncIterable<Bytes>): BlobStream {
  return Readable.from(pieces, { objectMode: false });
}

export { crc32 };

/** Returns the SHA-256 of parts, one after the other. */
export function sha256(...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
}

/** Derives `length` bytes from a key by HKDF with SHA-256. */
export function deriveBytes(key: Uint8Array, salt: Uint8Array, context: Uint8Array, length: number): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, salt, context, length));
}

const algorithm = 'aes-256-gcm';
const tagBytes = 16;

/** Encrypts with AES-256-GCM. The result is the ciphertext with the tag behind it. No nonce may be used twice with one key. */
export function encryptAesGcm(
  key: Uint8Array,
  nonce: Uint8Array,
  content: Uint8Array,
): Uint8Array | Promise<Uint8Array> {
  const cipher = createCipheriv(algorithm, key, nonce);
  const encrypted = new Uint8Array(content.length + tagBytes);
  encrypted.set(cipher.update(content));
  cipher.final();
  encrypted.set(cipher.getAuthTag(), content.length);
  return encrypted;
}

/** Decrypts the result of {@link encryptAesGcm}; undefined unless it was made with this key and nonce. */
export function decryptAesGcm(
  key: Uint8Array,
  nonce: Uint8Array,
  encrypted: Uint8Array,
): Uint8Array | undefined | Promise<Uint8Array | undefined> {
  const contentBytes = encrypted.length - tagBytes;
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  decipher.setAuthTag(encrypted.subarray(contentBytes));
  const content = decipher.update(encrypted.subarray(0, contentBytes));
  try {
    decipher.final();
  } catch {
    // The tag does not match; the error has no further details.
    return undefined;
  }
  return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
}

/** Compresses with deflate, without a header. `level`: 1 (fast) to 9 (small). `mostBytes`: the longest content that is passed. */
export function deflate(content: Uint8Array, level: number, mostBytes?: number): Uint8Array {
  return zlib.deflateRawSync(content, mostBytes === undefined ? { level } : { level, chunkSize: mostBytes });
}

/** Expands the result of {@link deflate}. Throws for other bytes, and for more than `mostBytes` of content, of which it makes no more. */
export function inflate(compressed: Uint8Array, mostBytes: number): Uint8Array {
  return zlib.inflateRawSync(compressed, { maxOutputLength: mostBytes });
}

interface ZstdOfNode {
  readonly constants: Readonly<Record<string, number>>;
  readonly zstdCompressSync?: (bytes: Uint8Array, options: object) => Uint8Array;
  readonly zstdDecompressSync?: (bytes: Uint8Array, options: object) => Uint8Array;
}
// These functions are newer than the oldest Node.js, whose types are used here.
const { constants, zstdCompressSync, zstdDecompressSync } = zlib as unknown as ZstdOfNode;

/** Compresses with zstd; undefined if this runtime cannot. */
export const compressZstd: ((content: Uint8Array, level: number) => Uint8Array) | undefined =
  zstdCompressSync &&
  ((content, level) =>
    zstdCompressSync(content, { params: { [constants['ZSTD_c_compressionLevel'] as number]: level } }));

/** Expands bytes that were compressed with zstd to exactly `contentBytes`, or throws. */
type ZstdExpander = (compressed: Uint8Array, contentBytes: number) => Uint8Array;

/** Loads the decoder of zstd. */
export async function loadZstdExpander(): Promise<ZstdExpander> {
  if (zstdDecompressSync !== undefined) {
    return (compressed, contentBytes) => zstdDecompressSync(compressed, { maxOutputLength: contentBytes });
  }
  return loadZstdDecoder();
}
