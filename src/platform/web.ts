/**
 * The platform of browsers and Workers: the functions of `node.ts`, made of what JavaScript has everywhere, WebCrypto, and a few
 * libraries. No module of Node.js is needed.
 */
import { hkdf } from '@noble/hashes/hkdf.js';
import { sha256 as sha256Of } from '@noble/hashes/sha2.js';
import { deflateSync, inflateSync } from 'fflate';
import { loadZstdDecoder } from './zstd.ts';

/** Bytes of values, as applications get them. */
export type Bytes = Uint8Array;

/** The stream of a blob, as applications get it. */
export type BlobStream = ReadableStream<Uint8Array>;

/** The encodings of `BlobReference.getString()`. */
export type TextEncoding = 'utf8' | 'utf-8' | 'latin1' | 'binary' | 'ascii' | 'hex' | 'base64' | 'base64url';

const { setTimeout, clearTimeout, performance, MessageChannel } = globalThis;

interface Channel {
  readonly start: { readonly hasSubscribers: boolean };
  readonly end: { readonly hasSubscribers: boolean };
  readonly asyncStart: { readonly hasSubscribers: boolean };
  readonly asyncEnd: { readonly hasSubscribers: boolean; publish(payload: object): void };
  readonly error: { readonly hasSubscribers: boolean };
  subscribe(listeners: object): void;
  unsubscribe(listeners: object): void;
  tracePromise<T>(work: () => Promise<T>, payload: object): Promise<T>;
}

/** Browsers and most Workers have no channels. */
export const tracingChannel: ((name: string) => Channel) | undefined = undefined;

/** Nothing but the browser decides how long a page or a Worker runs, so no timer keeps it alive. */
export function startTimer(callback: () => void, delayMs: number, _isBackground: boolean): () => void {
  const handle = setTimeout(callback, delayMs);
  return () => clearTimeout(handle);
}

/** Browsers delay nested timers by 4 milliseconds and more; messages come at once, after what is waiting. */
function makeAfterIo(): (callback: () => void) => void {
  if (typeof MessageChannel === 'undefined') return (callback) => void setTimeout(callback, 0);
  const waiting: (() => void)[] = [];
  const open = (): { postMessage(message: undefined): void } => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener('message', () => waiting.shift()?.());
    port1.start();
    return port2;
  };
  let port: ReturnType<typeof open> | undefined;
  return (callback) => {
    waiting.push(callback);
    port ??= open();
    port.postMessage(undefined);
  };
}
export const afterIo: (callback: () => void) => void = makeAfterIo();

export const monotonicMs = (): number => performance.now();

export function loopActiveMs(): number | undefined {
  return undefined;
}

/** Most bytes that one call may ask for. */
const mostRandomBytes = 65_536;

export function fillRandom(bytes: Uint8Array): Uint8Array {
  for (let at = 0; at < bytes.length; at += mostRandomBytes) {
    globalThis.crypto.getRandomValues(unshared(bytes.subarray(at, at + mostRandomBytes)));
  }
  return bytes;
}

/** Browsers do not warn of listeners. Throws unless the signal is of the runtime's own class. */
export function allowListeners(signal: AbortSignal): void {
  if (!(signal instanceof AbortSignal)) throw new TypeError('The signal is of another realm');
}

/** Workers may make no signals before they answer a request, so the classes are read here and not derived from one. */
export const OwnAbortController: typeof AbortController = globalThis.AbortController;
export const OwnAbortSignal: typeof AbortSignal = globalThis.AbortSignal;

/** Reads the internal type of a typed array, undefined for other values. */
const arrayType = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype) as object,
  Symbol.toStringTag,
) as { readonly get: () => string | undefined };

/** Looks at the internal type, which neither another realm nor a subclass changes. */
export function isUint8Array(value: unknown): value is Uint8Array {
  return arrayType.get.call(value) === 'Uint8Array';
}

export function isDate(value: unknown): value is Date {
  try {
    Date.prototype.getTime.call(value);
    return true;
  } catch {
    return false;
  }
}

export function isNativeError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
}

export function asBytes(bytes: Uint8Array): Bytes {
  return bytes;
}

export function copyBytes(bytes: Uint8Array): Bytes {
  return new Uint8Array(bytes);
}

export function uncleared(size: number): Uint8Array {
  return new Uint8Array(size);
}

/** Most characters that are made at once: arguments of a call stand on the stack. */
const mostCodes = 4096;

type SliceMethod = (this: Uint8Array, start: number, end: number) => string;

export const latin1Slice: SliceMethod = function (start, end) {
  let text = '';
  for (let at = start; at < end; at += mostCodes) {
    text += String.fromCharCode(...this.subarray(at, Math.min(end, at + mostCodes)));
  }
  return text;
};

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

export const utf8Slice: SliceMethod = function (start, end) {
  return decoder.decode(this.subarray(start, end));
};

export function utf8Length(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) length++;
    if (unit < 0x800) continue;
    // A pair of surrogates takes four bytes; one that is alone is encoded as U+FFFD, which takes three.
    const isPair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00;
    if (isPair) i++;
    length++;
  }
  return length;
}

function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

function toBase64(bytes: Uint8Array): string {
  return btoa(latin1Slice.call(bytes, 0, bytes.length));
}

export function toText(bytes: Uint8Array, encoding: TextEncoding): string {
  switch (encoding) {
    case 'utf8':
    case 'utf-8':
      return utf8Slice.call(bytes, 0, bytes.length);
    case 'latin1':
    case 'binary':
      return latin1Slice.call(bytes, 0, bytes.length);
    case 'ascii':
      return latin1Slice.call(
        bytes.map((byte) => byte & 0x7f),
        0,
        bytes.length,
      );
    case 'hex':
      return toHex(bytes);
    case 'base64':
      return toBase64(bytes);
    case 'base64url':
      return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
    default:
      throw new TypeError(`Unknown encoding: ${String(encoding)}`);
  }
}

function fromHex(text: string): Uint8Array {
  const digits = (/^(?:[\da-f]{2})*/i.exec(text) as RegExpExecArray)[0];
  const bytes = new Uint8Array(digits.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

export function fromText(text: string, encoding: 'hex' | 'base64' | 'base64url'): Uint8Array {
  if (encoding === 'hex') return fromHex(text);
  const digits = (/^[\w+/-]*/.exec(text) as RegExpExecArray)[0].replaceAll('-', '+').replaceAll('_', '/');
  // A digit that is alone at the end holds no whole byte.
  const binary = atob(digits.length % 4 === 1 ? digits.slice(0, -1) : digits);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

export function indexOfBytes(bytes: Uint8Array, part: Uint8Array): number {
  if (part.length === 0) return 0;
  const [first] = part as unknown as [number];
  for (let at = bytes.indexOf(first); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (part.every((byte, i) => bytes[at + i] === byte)) return at;
  }
  return -1;
}

export function streamOf(pieces: AsyncIterable<Bytes>): BlobStream {
  const iterator = pieces[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await iterator.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    // Nothing is read before the application reads.
    { highWaterMark: 0 },
  );
}

/** The remainders of the bytes by the polynomial of CRC-32, with its bits reversed. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? 0xedb88320 ^ (remainder >>> 1) : remainder >>> 1;
  return remainder;
});

export function crc32(bytes: Uint8Array, seed = 0): number {
  let sum = ~seed;
  for (let i = 0; i < bytes.length; i++) {
    sum = (remainders[(sum ^ (bytes[i] as number)) & 0xff] as number) ^ (sum >>> 8);
  }
  return ~sum >>> 0;
}

export function sha256(...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const hash = sha256Of.create();
  for (const part of parts) hash.update(typeof part === 'string' ? encoder.encode(part) : part);
  return hash.digest();
}

export function deriveBytes(key: Uint8Array, salt: Uint8Array, context: Uint8Array, length: number): Uint8Array {
  return hkdf(sha256Of, key, salt, context, length);
}

const algorithm = 'AES-GCM';
/** WebCrypto takes no shared memory, in which no bytes of StoreDb are. */
function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}

/** The keys as WebCrypto has them. An object has a key of its own, for all of its chunks. */
const cryptoKeys = new WeakMap<Uint8Array, ReturnType<typeof importKey>>();

function importKey(key: Uint8Array): ReturnType<typeof globalThis.crypto.subtle.importKey> {
  return globalThis.crypto.subtle.importKey('raw', unshared(key), algorithm, false, ['encrypt', 'decrypt']);
}

function cryptoKey(key: Uint8Array): ReturnType<typeof importKey> {
  const known = cryptoKeys.get(key);
  if (known !== undefined) return known;
  const imported = importKey(key);
  cryptoKeys.set(key, imported);
  return imported;
}

export async function encryptAesGcm(key: Uint8Array, nonce: Uint8Array, content: Uint8Array): Promise<Uint8Array> {
  const parameters = { name: algorithm, iv: unshared(nonce) };
  const encrypted = await globalThis.crypto.subtle.encrypt(parameters, await cryptoKey(key), unshared(content));
  return new Uint8Array(encrypted);
}

export async function decryptAesGcm(
  key: Uint8Array,
  nonce: Uint8Array,
  encrypted: Uint8Array,
): Promise<Uint8Array | undefined> {
  const imported = await cryptoKey(key);
  const parameters = { name: algorithm, iv: unshared(nonce) };
  try {
    return new Uint8Array(await globalThis.crypto.subtle.decrypt(parameters, imported, unshared(encrypted)));
  } catch {
    // The tag does not match; the error has no further details.
    return undefined;
  }
}

type Level = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;

export function deflate(content: Uint8Array, level: number, _mostBytes?: number): Uint8Array {
  return deflateSync(content, { level: level as Level });
}

export function inflate(compressed: Uint8Array, mostBytes: number): Uint8Array {
  // The library leaves out what does not fit: one byte more shows that.
  const content = inflateSync(compressed, { out: new Uint8Array(mostBytes + 1) });
  if (content.length > mostBytes) throw new RangeError(`The content is longer than ${mostBytes} bytes`);
  return content;
}

/** Browsers and Workers cannot compress with zstd. */
export const compressZstd: ((content: Uint8Array, level: number) => Uint8Array) | undefined = undefined;

/** Workers may not compile WebAssembly from bytes, so the decoder is JavaScript. */
export const loadZstdExpander: typeof loadZstdDecoder = loadZstdDecoder;
