/** Puts objects and streams into envelopes, and takes them out again. It handles keys, and does not access a store. */
import { sha256 } from '#platform';
import { isBytes, isPromise } from '../../base/brands.ts';
import { compareBytes, joinBytes } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { EncryptionKeyError, NotEncryptedError, CorruptionError, isUnreadable } from '../../base/errors.ts';
import { newBytes } from '../../base/ids.ts';
import { Pacer } from '../../base/pacer.ts';
import { decodeFrame, encodeFrame, frameBytes, prepareToExpand } from '../../format/compression.ts';
import {
  Codec,
  databaseTagBytes,
  decodeEnvelopeHeader,
  encodeEnvelopeHeader,
  isEnvelope,
  maxCompressedContentBytes,
  plainHeaderBytes,
  saltBytes,
  EnvelopeCipher,
  chunkBytes,
  chunkCount,
  chunkStart,
  decryptedBytes,
  encryptedBytes,
  tagBytes,
} from '../../format/envelope.ts';
import type { EnvelopeHeader } from '../../format/envelope.ts';
import { block0Name } from '../../format/object-names.ts';
import type { CacheDriver } from '../contract/driver.ts';
import type { NamedKey, Protection } from './encryption-options.ts';

/** Chunks of a stream that are passed on at a time. */
const pieceChunks = 16;
/** Largest size of compressed content that is kept, as a share of the original: a smaller saving would not pay for expanding. */
const worthwhile = 0.9;

/** Returns the tag of a database in the header, which distinguishes it from other databases. */
export function databaseTag(databaseId: string): Uint8Array {
  return sha256(databaseId).slice(0, databaseTagBytes);
}

/** An envelope that has been opened. */
export interface OpenedEnvelope {
  readonly content: Uint8Array;
  /** Undefined if the object is not in an envelope. */
  readonly header: EnvelopeHeader | undefined;
}

/** Packs and unpacks objects with the keys and the codec of a database. */
export class Envelopes {
  readonly protection: Protection;
  /** The tag of an object that is written before the database exists: zeros. */
  readonly #noDatabase = new Uint8Array(databaseTagBytes);
  readonly #environment: Environment;
  readonly #pacer: Pacer;

  constructor(protection: Protection, environment: Environment) {
    this.protection = protection;
    this.#environment = environment;
    this.#pacer = new Pacer(environment);
  }

  /** Returns the bytes to store for content: the content itself if it is neither compressed nor encrypted. */
  async pack(
    name: string,
    content: Uint8Array,
    mayCompress: boolean,
    database: Uint8Array = this.#noDatabase,
  ): Promise<Uint8Array> {
    const compressed = mayCompress ? await this.#compress(content) : undefined;
    const { current } = this.protection;
    const codec = compressed === undefined ? Codec.none : this.protection.codec;
    const contentBytes = compressed === undefined ? 0 : content.length;
    if (current !== undefined) {
      return this.#encrypt(
        name,
        compressed ?? content,
        this.#newHeader(name, current, database, codec, contentBytes),
        current,
      );
    }
    if (compressed === undefined) return content;
    const header = encodeEnvelopeHeader(name, { codec, contentBytes, seal: undefined });
    return joinBytes([header, compressed]);
  }

  #newHeader(
    name: string,
    { id, check }: NamedKey,
    database: Uint8Array,
    codec: Codec,
    contentBytes: number,
  ): EnvelopeHeader {
    // Random numbers are not enough: a process that was cloned while it ran draws the same numbers as its copy.
    const salt = newBytes(this.#environment, saltBytes);
    const header = { codec, contentBytes, seal: { keyId: id, keyCheck: check, database, salt } };
    return { ...header, bytes: encodeEnvelopeHeader(name, header) };
  }

  /** Returns whether content would be stored compressed. */
  async isWorthCompressing(content: Uint8Array): Promise<boolean> {
    return (await this.#compress(content)) !== undefined;
  }

  async #compress(content: Uint8Array): Promise<Uint8Array | undefined> {
    const { codec } = this.protection;
    if (codec === Codec.none || content.length > maxCompressedContentBytes) return undefined;
    const frames: Uint8Array[] = [];
    let length = plainHeaderBytes;
    for (let at = 0; at < content.length; at += frameBytes) {
      if (this.#pacer.due()) await this.#pacer.pause();
      const frame = encodeFrame(codec, content.subarray(at, at + frameBytes));
      length += frame.length;
      if (length > content.length * worthwhile) return undefined;
      frames.push(frame);
    }
    return content.length === 0 ? undefined : joinBytes(frames);
  }

  async #encrypt(name: string, content: Uint8Array, header: EnvelopeHeader, key: NamedKey): Promise<Uint8Array> {
    const cipher = cipherOf(name, header, key);
    const chunks = chunkCount(content.length);
    const object = new Uint8Array(encryptedBytes(content.length));
    object.set(header.bytes);
    for (let chunk = 0, at = header.bytes.length; chunk < chunks; chunk++) {
      if (chunk % pieceChunks === pieceChunks - 1 && this.#pacer.due()) await this.#pacer.pause();
      const start = chunk * chunkBytes;
      const end = cipher.encrypt(chunk, chunk === chunks - 1, content.subarray(start, start + chunkBytes), object, at);
      at = isPromise(end) ? await end : end;
    }
    return object;
  }

  /** Encrypts a stream, without compressing it. */
  async *packStream(
    name: string,
    content: AsyncIterable<Uint8Array>,
    key: NamedKey,
    database: Uint8Array = this.#noDatabase,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const header = this.#newHeader(name, key, database, Codec.none, 0);
    const cipher = cipherOf(name, header, key);
    yield header.bytes;
    // A full buffer is encrypted only when another byte arrives: only then is it known not to hold the last chunk.
    const waiting = new Uint8Array(pieceChunks * chunkBytes);
    let filled = 0;
    let chunk = 0;
    const encrypted = async (isEnd: boolean): Promise<Uint8Array> => {
      const chunks = chunkCount(filled);
      const piece = new Uint8Array(filled + chunks * tagBytes);
      for (let i = 0, at = 0; i < chunks; i++) {
        const part = waiting.subarray(i * chunkBytes, Math.min(filled, (i + 1) * chunkBytes));
        at = await cipher.encrypt(chunk++, isEnd && i === chunks - 1, part, piece, at);
      }
      filled = 0;
      return piece;
    };
    for await (const bytes of content) {
      for (let at = 0; at < bytes.length; ) {
        if (filled === waiting.length) yield await encrypted(false);
        const end = Math.min(bytes.length, at + waiting.length - filled);
        waiting.set(bytes.subarray(at, end), filled);
        filled += end - at;
        at = end;
      }
      if (this.#pacer.due()) await this.#pacer.pause();
    }
    yield await encrypted(true);
  }

  /**
   * Decodes the header from the beginning of an object; undefined if the object is not in an envelope. Throws if it must be
   * encrypted and is not.
   */
  header(name: string, beginning: Uint8Array): EnvelopeHeader | undefined {
    if (isEnvelope(beginning)) {
      const header = decodeEnvelopeHeader(name, beginning);
      if (header.seal !== undefined) return header;
      this.#acceptUnencrypted(name);
      return header;
    }
    this.#acceptUnencrypted(name);
    return undefined;
  }

  #acceptUnencrypted(name: string): void {
    if (this.protection.acceptsUnencrypted) return;
    if (name === block0Name) throw new NotEncryptedError(name);
    throw new CorruptionError(
      name,
      'The object is not encrypted, and the database is. If it is being moved over, set acceptUnencrypted',
    );
  }

  /** Returns the cipher of a stored object. Throws `EncryptionKeyError`. */
  cipher(name: string, header: EnvelopeHeader): EnvelopeCipher {
    const { seal } = header;
    if (seal === undefined) throw new CorruptionError(name, 'The object is not encrypted');
    const key = this.protection.key(seal.keyId);
    if (key === undefined) {
      const known = this.protection.keyIds;
      const which = known.length === 0 ? 'no keys were given' : `the keys that were given are ${known.join(', ')}`;
      throw new EncryptionKeyError(name, seal.keyId, `The object is encrypted with key '${seal.keyId}', and ${which}`);
    }
    if (compareBytes(key.check, seal.keyCheck) !== 0) {
      throw new EncryptionKeyError(
        name,
        seal.keyId,
        `The object is encrypted with another key '${seal.keyId}' than the one that was given under that id`,
      );
    }
    return cipherOf(name, header, key);
  }

  /** Returns the content of a whole object. Throws `CorruptionError`, `EncryptionKeyError` and `UnknownFormatError`. */
  async unpack(name: string, object: Uint8Array): Promise<OpenedEnvelope> {
    const header = this.header(name, object);
    if (header === undefined) return { content: object, header };
    const body =
      header.seal === undefined ? object.subarray(header.bytes.length) : await this.#decrypt(name, object, header);
    const content = header.codec === Codec.none ? body : await this.#expand(name, body, header);
    return { content, header };
  }

  async #decrypt(name: string, object: Uint8Array, header: EnvelopeHeader): Promise<Uint8Array> {
    const contentBytes = decryptedBytes(object.length);
    if (contentBytes === undefined) throw unauthentic(name);
    return this.decryptChunks(name, this.cipher(name, header), object.subarray(chunkStart(0)), {
      first: 0,
      contentBytes,
    });
  }

  /** Decrypts consecutive chunks. `contentBytes` is the content length of the whole object. */
  async decryptChunks(
    name: string,
    cipher: EnvelopeCipher,
    stored: Uint8Array,
    { first, contentBytes }: { readonly first: number; readonly contentBytes: number },
  ): Promise<Uint8Array> {
    const last = chunkCount(contentBytes) - 1;
    const stride = chunkBytes + tagBytes;
    const count = Math.ceil(stored.length / stride);
    const contents: Uint8Array[] = [];
    for (let i = 0; i < count; i++) {
      if (i % pieceChunks === pieceChunks - 1 && this.#pacer.due()) await this.#pacer.pause();
      const decrypted = cipher.decrypt(first + i, first + i === last, stored.subarray(i * stride, (i + 1) * stride));
      const content = isPromise(decrypted) ? await decrypted : decrypted;
      if (content === undefined) throw unauthentic(name);
      contents.push(content);
    }
    // Usually there is only one chunk, which need not be copied.
    return contents.length === 1 ? (contents[0] as Uint8Array) : joinBytes(contents);
  }

  async #expand(name: string, body: Uint8Array, { codec, contentBytes }: EnvelopeHeader): Promise<Uint8Array> {
    const frames = Math.ceil(contentBytes / frameBytes);
    // Every frame takes some bytes, so this check bounds the allocation by the length of the body.
    if (body.length < frames * 5) throw new CorruptionError(name, 'A compressed object ends too early');
    await prepareToExpand(codec);
    const content = new Uint8Array(contentBytes);
    let at = 0;
    for (let start = 0; start < contentBytes; start += frameBytes) {
      if (this.#pacer.due()) await this.#pacer.pause();
      at = decodeFrame(name, codec, body, at, content.subarray(start, start + frameBytes));
    }
    if (at !== body.length) throw new CorruptionError(name, 'A compressed object has bytes after its end');
    return content;
  }
}

function cipherOf(name: string, { bytes, seal }: EnvelopeHeader, { key }: NamedKey): EnvelopeCipher {
  return new EnvelopeCipher(key, name, bytes, seal?.salt as Uint8Array);
}

function unauthentic(name: string): CorruptionError {
  return new CorruptionError(
    name,
    'The object is not what was encrypted under this name with its key: it is damaged, or somebody without the key changed it',
  );
}

/** A cache driver around another one that encrypts the cached blocks of an encrypted database. */
export class EncryptedCache implements CacheDriver {
  readonly #driver: CacheDriver;
  readonly #envelopes: Envelopes;

  constructor(driver: CacheDriver, protection: Protection, environment: Environment) {
    this.#driver = driver;
    this.#envelopes = new Envelopes(protection, environment);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const object = await this.#driver.get(key);
    if (!isBytes(object)) return undefined;
    try {
      const { header, content } = await this.#envelopes.unpack(key, object);
      const isEncrypted = header?.seal !== undefined;
      // A block from before the database was encrypted counts as a miss, and is cached again.
      return isEncrypted || this.#envelopes.protection.current === undefined ? content : undefined;
    } catch (error) {
      // A block with a retired key or a damaged block counts as a miss: the store has it.
      if (error instanceof EncryptionKeyError || isUnreadable(error)) return undefined;
      throw error;
    }
  }

  async set(key: string, bytes: Uint8Array): Promise<void> {
    await this.#driver.set(key, await this.#envelopes.pack(key, bytes, false));
  }

  async delete(key: string): Promise<void> {
    await this.#driver.delete(key);
  }
}
