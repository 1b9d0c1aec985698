/**
 * The encryption of one object: AES-256-GCM in chunks, so that a range can be read and verified without the rest.
 *
 * Each object has a key of its own, which HKDF makes of the key that was given, a random salt, the header and the name. So
 * nobody who lacks the key can change a byte of the header, or put the object under another name: another key follows, and
 * nothing opens. The nonce of a chunk is its number, and whether it is the last one, so that chunks cannot change places, go
 * missing or be added. No nonce is used twice with one key, since no salt is.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { encodeUtf8 } from '../base/bytes.ts';
import { encryptedHeaderBytes, keyCheckBytes } from './envelope.ts';

/** Bytes of content in every chunk but the last. */
export const chunkBytes = 65_536;
/** What each chunk has behind it. */
export const tagBytes = 16;
const storedChunkBytes = chunkBytes + tagBytes;
const keyBytes = 32;
const algorithm = 'aes-256-gcm';
const objectContext = encodeUtf8('store-db object 1');
const checkContext = encodeUtf8('store-db key check 1');
const nothing = new Uint8Array(0);

/** Makes a key of 32 bytes into one that nobody can print by accident. */
export function secretKey(bytes: Uint8Array): KeyObject {
  return createSecretKey(bytes);
}

/** Bytes that tell a key from another one, and nothing else about it. */
export function keyCheckOf(key: KeyObject): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, nothing, checkContext, keyCheckBytes));
}

/** How many chunks content of a length has: one at least, so that there is always a last one. */
export function chunkCount(contentBytes: number): number {
  return Math.max(1, Math.ceil(contentBytes / chunkBytes));
}

/** Length of the object that holds content of a length. */
export function encryptedBytes(contentBytes: number): number {
  return encryptedHeaderBytes + contentBytes + chunkCount(contentBytes) * tagBytes;
}

/** Length of the content of an object of a length; undefined if no content has that. */
export function decryptedBytes(objectBytes: number): number | undefined {
  const bodyBytes = objectBytes - encryptedHeaderBytes;
  const contentBytes = bodyBytes - Math.max(1, Math.ceil(bodyBytes / storedChunkBytes)) * tagBytes;
  return contentBytes >= 0 && encryptedBytes(contentBytes) === objectBytes ? contentBytes : undefined;
}

/** Where a chunk begins in the object. */
export function chunkStart(chunk: number): number {
  return encryptedHeaderBytes + chunk * storedChunkBytes;
}

function nonceOf(chunk: number, isLast: boolean): Uint8Array {
  const nonce = new Uint8Array(12);
  new DataView(nonce.buffer).setUint32(7, chunk);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

export class EnvelopeCipher {
  readonly #key: Uint8Array;

  /** `header` as it is stored, with a salt that no other object has. */
  constructor(key: KeyObject, name: string, header: Uint8Array, salt: Uint8Array) {
    const context = Buffer.concat([objectContext, header, encodeUtf8(name)]);
    this.#key = new Uint8Array(hkdfSync('sha256', key, salt, context, keyBytes));
  }

  /** Writes a chunk and its tag to `target`, and returns where they end. */
  encrypt(chunk: number, isLast: boolean, content: Uint8Array, target: Uint8Array, at: number): number {
    const cipher = createCipheriv(algorithm, this.#key, nonceOf(chunk, isLast));
    const encrypted = cipher.update(content);
    cipher.final();
    target.set(encrypted, at);
    target.set(cipher.getAuthTag(), at + encrypted.length);
    return at + encrypted.length + tagBytes;
  }

  /** The content of a stored chunk; undefined unless it is what was written with this key at this place. */
  decrypt(chunk: number, isLast: boolean, stored: Uint8Array): Uint8Array | undefined {
    if (stored.length < tagBytes) return undefined;
    const contentBytes = stored.length - tagBytes;
    const decipher = createDecipheriv(algorithm, this.#key, nonceOf(chunk, isLast), { authTagLength: tagBytes });
    decipher.setAuthTag(stored.subarray(contentBytes));
    const content = decipher.update(stored.subarray(0, contentBytes));
    try {
      decipher.final();
    } catch {
      // Which is all that it says: the tag does not fit.
      return undefined;
    }
    return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
  }
}
