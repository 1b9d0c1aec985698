/**
 * An envelope: the form in which a compressed or encrypted object is stored. Its content is the block, commit or Block 0 in its
 * usual form. An envelope begins with a header:
 *
 *   0  7 bytes  "SDBCAPS"
 *   7  u8       version (1)
 *   8  u8       codec (0: none, 1: deflate, 2: zstd)
 *   9  u8       encryption (0: none, 1: AES-256-GCM)
 *  10  u8       length of the id of the key
 *  11  u8       zero
 *  12  u32      CRC-32 of the object's name, of the bytes 0 to 11, and of the rest of the header
 *  16  u48      length of the content if it is compressed, otherwise 0
 *  22  u16      zero
 *
 * and, if it is encrypted,
 *
 *  24  8 bytes  distinguishes the key from others with the same id
 *  32  16 bytes identifies the database
 *  48  32 bytes salt
 *  80  32 bytes id of the key, padded with zeros
 *
 * The checksum only distinguishes damage from a missing key. Encrypted objects are protected from changes because their own key
 * depends on every byte of the header, and on the name (see `EnvelopeCipher`).
 */
import { decryptAesGcm, deriveBytes, encryptAesGcm } from '#platform';
import { andThen } from '../base/brands.ts';
import { decodeUtf8, encodeUtf8, checksum, joinBytes, toLatin1 } from '../base/bytes.ts';
import { EncryptionKeyError, CorruptionError, InvalidOptionError, UnknownFormatError } from '../base/errors.ts';

export const Codec = { none: 0, deflate: 1, zstd: 2 } as const;
export type Codec = (typeof Codec)[keyof typeof Codec];

/** Lengths of the header, without and with encryption. */
export const plainHeaderBytes = 24;
export const encryptedHeaderBytes = 112;
const keyCheckBytes = 8;
export const databaseTagBytes = 16;
export const saltBytes = 32;
/** Longest id of a key, in bytes. */
export const maxKeyIdBytes = 32;
/** Longest content that is compressed. A header that claims more is damaged. */
export const maxCompressedContentBytes: number = 64 * 1024 * 1024;

const magic = encodeUtf8('SDBCAPS');
const version = 1;
const checksumAt = 12;
const lengthAt = 16;
const keyCheckAt = 24;
const databaseAt = keyCheckAt + keyCheckBytes;
const saltAt = databaseAt + databaseTagBytes;
const keyIdAt = saltAt + saltBytes;
const encryptionNone = 0;
const encryptionAesGcm = 1;

/** The part of an encrypted envelope's header that identifies its key. */
export interface EnvelopeSeal {
  readonly keyId: string;
  readonly keyCheck: Uint8Array;
  /** Identifies the database; zeros in objects written before the database existed. */
  readonly database: Uint8Array;
  readonly salt: Uint8Array;
}

export interface EnvelopeHeader {
  readonly codec: Codec;
  /** Length of the content if it is compressed, otherwise 0. */
  readonly contentBytes: number;
  /** Undefined if the object is not encrypted. */
  readonly seal: EnvelopeSeal | undefined;
  /** The header as it is stored. */
  readonly bytes: Uint8Array;
}

export function isEnvelope(bytes: Uint8Array): boolean {
  return bytes.length >= plainHeaderBytes && magic.every((byte, i) => bytes[i] === byte);
}

function headerChecksum(name: string, header: Uint8Array): number {
  const named = checksum(header.subarray(0, checksumAt), checksum(encodeUtf8(name)));
  return checksum(header.subarray(lengthAt), named);
}

export function encodeEnvelopeHeader(name: string, header: Omit<EnvelopeHeader, 'bytes'>): Uint8Array {
  const { codec, contentBytes, seal } = header;
  const bytes = new Uint8Array(seal === undefined ? plainHeaderBytes : encryptedHeaderBytes);
  const view = new DataView(bytes.buffer);
  bytes.set(magic);
  bytes[7] = version;
  bytes[8] = codec;
  bytes[9] = seal === undefined ? encryptionNone : encryptionAesGcm;
  view.setUint32(lengthAt, contentBytes, true);
  if (seal !== undefined) {
    const keyId = encodeUtf8(seal.keyId);
    bytes[10] = keyId.length;
    bytes.set(seal.keyCheck, keyCheckAt);
    bytes.set(seal.database, databaseAt);
    bytes.set(seal.salt, saltAt);
    bytes.set(keyId, keyIdAt);
  }
  view.setUint32(checksumAt, headerChecksum(name, bytes), true);
  return bytes;
}

/** Decodes the header of bytes that pass {@link isEnvelope}. Throws `CorruptionError` and `UnknownFormatError`. */
export function decodeEnvelopeHeader(name: string, envelope: Uint8Array): EnvelopeHeader {
  const known = envelope[7] === version && (envelope[8] as number) <= Codec.zstd && (envelope[9] as number) <= 1;
  const isEncrypted = envelope[9] === encryptionAesGcm;
  const bytes = envelope.slice(0, isEncrypted ? encryptedHeaderBytes : plainHeaderBytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isWhole = bytes.length === (isEncrypted ? encryptedHeaderBytes : plainHeaderBytes);
  if (!isWhole || view.getUint32(checksumAt, true) !== headerChecksum(name, bytes)) {
    if (!known && envelope[7] !== version) throw unknownEnvelope(name, envelope);
    throw new CorruptionError(name, 'The header of the object does not match its checksum');
  }
  if (!known) throw unknownEnvelope(name, envelope);
  const codec = bytes[8] as Codec;
  const contentBytes = view.getUint32(lengthAt, true);
  const keyIdBytes = bytes[10] as number;
  const isRight =
    bytes[11] === 0 &&
    view.getUint32(20, true) === 0 &&
    contentBytes <= maxCompressedContentBytes &&
    (codec !== Codec.none || contentBytes === 0) &&
    (isEncrypted ? keyIdBytes > 0 && keyIdBytes <= maxKeyIdBytes : keyIdBytes === 0);
  if (!isRight) throw new CorruptionError(name, 'The header of the object has impossible values');
  if (!isEncrypted) return { codec, contentBytes, seal: undefined, bytes };
  const seal = {
    keyId: decodeUtf8(bytes.subarray(keyIdAt, keyIdAt + keyIdBytes)),
    keyCheck: bytes.subarray(keyCheckAt, databaseAt),
    database: bytes.subarray(databaseAt, saltAt),
    salt: bytes.subarray(saltAt, keyIdAt),
  };
  return { codec, contentBytes, seal, bytes };
}

function unknownEnvelope(name: string, envelope: Uint8Array): UnknownFormatError {
  const what = `version ${envelope[7]}, codec ${envelope[8]}, encryption ${envelope[9]}`;
  return new UnknownFormatError(
    name,
    `The object is compressed or encrypted in a way (${what}) that this version of store-db does not know: upgrade it, unless the object is damaged`,
  );
}

/** Throws if bytes in which no envelope was expected are one: then options are missing. */
export function refuseEnvelope(name: string, bytes: Uint8Array): void {
  if (!isEnvelope(bytes)) return;
  if (bytes[9] !== encryptionNone) {
    // The checksum is not verified, because a kept Block 0 has another name.
    const keyId = toLatin1(bytes.subarray(keyIdAt, keyIdAt + (bytes[10] as number)));
    const shown = /^[\w.-]+$/.test(keyId) ? keyId : '';
    throw new EncryptionKeyError(
      name,
      shown,
      `The database is encrypted, and no keys were given: set the option encryption, with key '${shown}' among its keys`,
    );
  }
  throw new InvalidOptionError(
    'compression',
    `Option compression is missing: the database is compressed (object ${name}). Set it to read that, if only to 'none'.`,
  );
}

/** Bytes of content in every chunk but the last. */
export const chunkBytes = 65_536;
/** Bytes of the tag after each chunk. */
export const tagBytes = 16;
const storedChunkBytes = chunkBytes + tagBytes;
const keyBytes = 32;
const objectContext = encodeUtf8('store-db object 1');
const checkContext = encodeUtf8('store-db key check 1');
const nothing = new Uint8Array(0);

/** A key of 32 bytes, which is not printed by accident. */
export class SecretKey {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = Uint8Array.from(bytes);
  }

  /** Returns `length` bytes for a purpose. They reveal nothing about the key, nor about bytes for another salt or context. */
  derive(salt: Uint8Array, context: Uint8Array, length: number): Uint8Array {
    return deriveBytes(this.#bytes, salt, context, length);
  }
}

/** Returns bytes that distinguish a key from others and reveal nothing else about it. */
export function keyCheckOf(key: SecretKey): Uint8Array {
  return key.derive(nothing, checkContext, keyCheckBytes);
}

/** Returns the number of chunks of content of a length: at least one, so that there is always a last one. */
export function chunkCount(contentBytes: number): number {
  return Math.max(1, Math.ceil(contentBytes / chunkBytes));
}

/** Returns the length of the object for content of a length. */
export function encryptedBytes(contentBytes: number): number {
  return encryptedHeaderBytes + contentBytes + chunkCount(contentBytes) * tagBytes;
}

/** Returns the length of the content of an object of a length; undefined if no content has such an object. */
export function decryptedBytes(objectBytes: number): number | undefined {
  const bodyBytes = objectBytes - encryptedHeaderBytes;
  const contentBytes = bodyBytes - Math.max(1, Math.ceil(bodyBytes / storedChunkBytes)) * tagBytes;
  return contentBytes >= 0 && encryptedBytes(contentBytes) === objectBytes ? contentBytes : undefined;
}

/** Returns the offset of a chunk in its object. */
export function chunkStart(chunk: number): number {
  return encryptedHeaderBytes + chunk * storedChunkBytes;
}

function nonceOf(chunk: number, isLast: boolean): Uint8Array {
  const nonce = new Uint8Array(12);
  new DataView(nonce.buffer).setUint32(7, chunk);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/**
 * Encrypts one object with AES-256-GCM, in chunks, so that a range can be read and verified without the rest.
 *
 * Each object has its own key, which HKDF derives from the given key, a random salt, the header and the name. So without the
 * key nobody can change a byte of the header or move the object to another name: the derived key would differ, and decryption
 * fail. The nonce of a chunk is its number and whether it is the last one, so chunks cannot be reordered, removed or added. No
 * salt is used twice, so no nonce is used twice with one key.
 */
export class EnvelopeCipher {
  readonly #key: Uint8Array;

  /** `header`: the header as it is stored. `salt`: used by no other object. */
  constructor(key: SecretKey, name: string, header: Uint8Array, salt: Uint8Array) {
    this.#key = key.derive(salt, joinBytes([objectContext, header, encodeUtf8(name)]), keyBytes);
  }

  /** Writes a chunk and its tag to `target`, and returns the offset at which they end. */
  encrypt(
    chunk: number,
    isLast: boolean,
    content: Uint8Array,
    target: Uint8Array,
    at: number,
  ): number | Promise<number> {
    return andThen(encryptAesGcm(this.#key, nonceOf(chunk, isLast), content), (encrypted) => {
      target.set(encrypted, at);
      return at + encrypted.length;
    });
  }

  /** Returns the content of a stored chunk; undefined unless it was written with this key at this position. */
  decrypt(
    chunk: number,
    isLast: boolean,
    stored: Uint8Array,
  ): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    if (stored.length < tagBytes) return undefined;
    return decryptAesGcm(this.#key, nonceOf(chunk, isLast), stored);
  }
}
