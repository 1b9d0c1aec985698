/**
 * A driver around another one that compresses and encrypts the objects of one database when they are put, and decrypts and
 * expands them when they are read. The layers above it see only the content. Sizes are sizes of the content, except in listings,
 * which have the stored sizes. Probes of the store pass unchanged.
 */
import { indexOfBytes } from '#platform';
import { isBytes } from '../../base/brands.ts';
import {
  NotEncryptedError,
  CorruptionError,
  NotSupportedError,
  StorageError,
  isUnreadable,
} from '../../base/errors.ts';
import type { Environment } from '../../base/env.ts';
import { compareBytes, encodeUtf8 } from '../../base/bytes.ts';
import { databaseIdOf } from '../../format/block0.ts';
import { encryptedHeaderBytes, chunkBytes, chunkStart, decryptedBytes, tagBytes } from '../../format/envelope.ts';
import type { EnvelopeHeader, EnvelopeCipher } from '../../format/envelope.ts';
import { backupFolder, block0Name, folders, probePrefix, sharedPrefix } from '../../format/object-names.ts';
import { Envelopes, databaseTag } from './envelopes.ts';
import type {
  FoundObject,
  GetOptions,
  GetResult,
  PutBody,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import type { Protection } from './encryption-options.ts';
import { readBody } from '../contract/requests.ts';
import { WrappedDriver, optionalMembersBut } from './wrapped-driver.ts';

export interface EnvelopeDriverOptions {
  readonly driver: StorageDriver;
  /** The prefix of the database, without `/` at the end. */
  readonly prefix: string;
  readonly protection: Protection;
  readonly environment: Environment;
  /** The id of the database, if it is known; otherwise it is read from Block 0. */
  readonly databaseId?: string;
}

/** The stored form of an object. */
export interface StoredForm {
  readonly etag: string;
  /** Length of the stored object, in bytes. */
  readonly sizeBytes: number;
  /** Undefined if the object is neither compressed nor encrypted. */
  readonly header: EnvelopeHeader | undefined;
}

/** A whole object, taken out of its envelope. */
export interface OpenedObject extends FoundObject {
  readonly isAuthentic: boolean;
}

/** The ETag and the cipher of an object that is read in ranges. */
interface Head {
  readonly etag: string;
  /** Undefined if the object is not in an envelope. */
  readonly cipher: EnvelopeCipher | undefined;
}

/** Most heads that are remembered. */
const maxHeads = 256;
/** Attempts at reading a range of an object that is rewritten meanwhile. */
const maxAttempts = 5;

/** Objects in these folders have random names, and the content of a name never differs. Clones share them. */
const sharedFolders = [folders.data, folders.indexes, folders.blobs];
/** Objects in these folders are not compressed, because they are read in ranges. */
const rangedFolders = [folders.blobs, folders.staged];

/** Whether the object with a name may be compressed. */
export function mayCompress(name: string): boolean {
  return !rangedFolders.some((folder) => name.startsWith(folder));
}

/** Whether an object holds a Block 0: the present one, or an older one that is kept. */
function isBlock0(name: string): boolean {
  return (
    name === block0Name || [folders.roots, folders.history, backupFolder].some((folder) => name.startsWith(folder))
  );
}

/** Compresses and encrypts the objects of one database. */
export class EnvelopeDriver extends WrappedDriver implements StorageDriver {
  readonly envelopes: Envelopes;
  readonly #driver: StorageDriver;
  readonly #prefix: string;
  readonly #heads = new Map<string, Head>();
  #database: { readonly id: string; readonly tag: Uint8Array } | undefined;

  constructor({ driver, prefix, protection, environment, databaseId }: EnvelopeDriverOptions) {
    // Encrypted objects cannot be copied within the store: their encryption depends on their name.
    super(driver, protection.hasKeys ? optionalMembersBut('copy') : undefined);
    this.#driver = driver;
    this.#prefix = prefix;
    this.envelopes = new Envelopes(protection, environment);
    if (databaseId !== undefined) this.#noteDatabase(databaseId);
    if (protection.hasKeys && this.presign !== undefined) this.presign = refusePresigning;
  }

  /** The inner driver if the store may copy objects without decrypting them, else this driver. */
  get copying(): StorageDriver {
    return this.envelopes.protection.hasKeys ? this : this.#driver;
  }

  #nameOf(key: string): string {
    if (key.startsWith(`${this.#prefix}/`)) return key.slice(this.#prefix.length + 1);
    throw new StorageError(key, 'none', `The object is not under ${this.#prefix}/, to which this driver is bound.`);
  }

  /**
   * Whether the object with a name passes unchanged: without keys, a blob is stored as exactly its bytes, even if they look like
   * an envelope.
   */
  #isPassed(name: string): boolean {
    return name.startsWith(probePrefix) || (!this.envelopes.protection.hasKeys && !mayCompress(name));
  }

  override async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    if (key.startsWith(sharedPrefix)) return this.#driver.get(key, options);
    const name = this.#nameOf(key);
    if (this.#isPassed(name)) return this.#driver.get(key, options);
    const { range } = options;
    if (range !== undefined && !mayCompress(name)) return this.#getRange(key, name, range, options);
    // The caller only wants to know whether the object exists.
    if (range?.end === 0) return this.#driver.get(key, options);
    const { range: _range, ...whole } = options;
    const found = await this.#getWhole(key, name, whole);
    if (found.status !== 'found') return found;
    const { etag, sizeBytes, lastModifiedMs, bytes } = found;
    const part = range === undefined ? bytes : bytes.subarray(range.start, range.end);
    return { status: 'found', bytes: part, etag, sizeBytes, lastModifiedMs };
  }

  async #getWhole(key: string, name: string, options: GetOptions): Promise<OpenedObject | GetResult> {
    for (let attempt = 1; ; attempt++) {
      const found = await this.#driver.get(key, options);
      if (found.status !== 'found') return found;
      try {
        const { content, header } = await this.#unpack(name, found.bytes);
        if (header?.seal !== undefined) this.#checkDatabase(name, header);
        // It may be another database than before: the Block 0 register checks that.
        if (name === block0Name) this.#noteBlock0(content);
        return { ...found, bytes: content, sizeBytes: content.length, isAuthentic: header?.seal !== undefined };
      } catch (error) {
        // The bytes may have been damaged in transit: read them again. Damage in the store shows in the second read too.
        if (!isDamage(error) || attempt > 1) throw error;
      }
    }
  }

  /** Reads a whole object, and whether it was encrypted: then its content is authentic. Undefined if it is missing. */
  async read(key: string, options: RequestOptions = {}): Promise<OpenedObject | undefined> {
    const found = await this.#getWhole(key, this.#nameOf(key), options);
    return found.status === 'found' ? (found as OpenedObject) : undefined;
  }

  async #unpack(name: string, object: Uint8Array): ReturnType<Envelopes['unpack']> {
    if (!this.#mayBeBare(name)) return this.envelopes.unpack(name, object);
    try {
      return await this.envelopes.unpack(name, object);
    } catch {
      return { content: object, header: undefined };
    }
  }

  /** Whether bytes that look like an envelope may be an unencrypted blob of the user: its checksums decide. */
  #mayBeBare(name: string): boolean {
    return this.envelopes.protection.acceptsUnencrypted && name.startsWith(folders.blobs);
  }

  /** Throws if an object was encrypted for another database. Objects with random names need no check. */
  #checkDatabase(name: string, { seal }: EnvelopeHeader): void {
    if (seal === undefined || this.#database === undefined || name === block0Name) return;
    if (sharedFolders.some((folder) => name.startsWith(folder))) return;
    if (compareBytes(seal.database, this.#database.tag) === 0) return;
    throw new CorruptionError(name, 'The object was encrypted for another database');
  }

  #noteDatabase(id: string): void {
    if (this.#database?.id !== id) this.#database = { id, tag: databaseTag(id) };
  }

  #noteBlock0(content: Uint8Array): void {
    // The id is usually known already: then Block 0 need not be decoded for it.
    const id = this.#database?.id;
    if (id !== undefined && indexOfBytes(content, encodeUtf8(id)) >= 0) return;
    try {
      this.#noteDatabase(databaseIdOf(content));
    } catch {
      // The caller decodes Block 0 too, and reports the error.
    }
  }

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    if (key.startsWith(sharedPrefix)) return this.#driver.put(key, body, options);
    const name = this.#nameOf(key);
    if (this.#isPassed(name)) return this.#driver.put(key, body, options);
    const { current } = this.envelopes.protection;
    // An encrypted object must reveal neither its media type nor its earlier unencrypted versions.
    const { contentType: _type, ...unnamed } = { ...options, purge: true };
    if (!isBytes(body)) {
      if (current === undefined) return this.#driver.put(key, body, options);
      const content = readBody(key, body, options.signal);
      return this.#driver.put(key, this.envelopes.packStream(name, content, current, this.#database?.tag), unnamed);
    }
    if (isBlock0(name)) this.#noteBlock0(body);
    const object = await this.envelopes.pack(name, body, mayCompress(name), this.#database?.tag);
    return this.#driver.put(key, object, current === undefined ? options : unnamed);
  }

  /** Reads the stored form of an object; undefined if it is missing. Throws `CorruptionError` and `NotEncryptedError`. */
  async look(key: string, options: RequestOptions = {}): Promise<StoredForm | undefined> {
    const name = this.#nameOf(key);
    for (let attempt = 1; ; attempt++) {
      const found = await this.#driver.get(key, { ...options, range: { start: 0, end: encryptedHeaderBytes } });
      if (found.status !== 'found') return undefined;
      const { etag, sizeBytes } = found;
      try {
        const header = this.envelopes.header(name, found.bytes);
        // Then the next reader of its ranges expects an encrypted object.
        if (header?.seal !== undefined && !mayCompress(name)) this.#noteHead(key, name, found);
        return { etag, sizeBytes, header };
      } catch (error) {
        if (this.#mayBeBare(name)) return { etag, sizeBytes, header: undefined };
        if (!isDamage(error) || attempt > 1) throw error;
      }
    }
  }

  /** Reads a range of an object that is not compressed. */
  async #getRange(
    key: string,
    name: string,
    range: { readonly start: number; readonly end: number },
    options: GetOptions,
  ): Promise<GetResult> {
    let damaged = false;
    for (let attempt = 1; ; attempt++) {
      try {
        const found = await this.#tryRange(key, name, range, options);
        if (found !== 'changed') return found;
        if (attempt >= maxAttempts)
          throw new StorageError(key, 'none', 'The object was rewritten during every attempt to read it.');
      } catch (error) {
        if (!isUnreadable(error) || damaged) throw error;
        damaged = true;
      }
      this.#heads.delete(key);
    }
  }

  /** Tries to read a range. `changed`: the object was rewritten since its head was read. */
  async #tryRange(
    key: string,
    name: string,
    range: { readonly start: number; readonly end: number },
    options: GetOptions,
  ): Promise<GetResult | 'changed'> {
    const first = Math.floor(range.start / chunkBytes);
    let head = this.#heads.get(key);
    if (head === undefined && first > 0) {
      const beginning = await this.#driver.get(key, { ...options, range: { start: 0, end: encryptedHeaderBytes } });
      if (beginning.status !== 'found') return beginning;
      head = this.#noteHead(key, name, beginning);
    }
    if (head !== undefined && head.cipher === undefined) {
      const found = await this.#driver.get(key, options);
      return found.status === 'found' && found.etag !== head.etag ? 'changed' : found;
    }
    // The range includes the head if they are adjacent. An empty range reads as much as an empty object has.
    const chunks = Math.ceil(range.end / chunkBytes);
    const start = first === 0 ? 0 : chunkStart(first);
    const end = chunks === 0 ? chunkStart(0) + tagBytes : chunkStart(Math.max(chunks, first + 1));
    const found = await this.#driver.get(key, { ...options, range: { start, end } });
    if (found.status !== 'found') return found;
    head ??= this.#noteHead(key, name, found);
    if (found.etag !== head.etag) return 'changed';
    if (head.cipher === undefined) return { ...found, bytes: found.bytes.subarray(range.start, range.end) };
    const contentBytes = decryptedBytes(found.sizeBytes);
    if (contentBytes === undefined)
      throw new CorruptionError(name, `No encrypted object is ${found.sizeBytes} bytes long`);
    const stored = first === 0 ? found.bytes.subarray(encryptedHeaderBytes) : found.bytes;
    const isNothing = chunks === 0 && contentBytes > 0;
    const content = isNothing
      ? new Uint8Array(0)
      : await this.envelopes.decryptChunks(name, head.cipher, stored, { first, contentBytes });
    const offset = first * chunkBytes;
    return { ...found, bytes: content.subarray(range.start - offset, range.end - offset), sizeBytes: contentBytes };
  }

  /** Remembers the head of an object. Throws the errors of {@link Envelopes.header} and {@link Envelopes.cipher}. */
  #noteHead(key: string, name: string, { bytes, etag }: FoundObject): Head {
    const head = { etag, cipher: this.#cipherOf(name, bytes) };
    // An object without an envelope is not remembered: its header may have been damaged in transit.
    if (head.cipher === undefined) return head;
    if (this.#heads.size >= maxHeads) this.#heads.delete(this.#heads.keys().next().value as string);
    this.#heads.set(key, head);
    return head;
  }

  #cipherOf(name: string, beginning: Uint8Array): EnvelopeCipher | undefined {
    try {
      const header = this.envelopes.header(name, beginning);
      if (header === undefined) return undefined;
      this.#checkDatabase(name, header);
      if (header.codec !== 0) throw new CorruptionError(name, 'An object that StoreDb does not compress is compressed');
      return this.envelopes.cipher(name, header);
    } catch (error) {
      if (this.#mayBeBare(name)) return undefined;
      throw error;
    }
  }
}

/** Whether an error may be gone when the object is read again. */
function isDamage(error: unknown): boolean {
  return isUnreadable(error) || error instanceof NotEncryptedError;
}

async function refusePresigning(): Promise<string> {
  throw new NotSupportedError(
    'Blobs of this database are encrypted, so a download URL would return encrypted bytes: read the blob ' +
      'with getBuffer() or stream().',
  );
}

/** Whether the store behind `store`, a driver as the user passed it, can copy objects to the place that `driver` writes to. */
export function isSameStore(driver: StorageDriver, store: StorageDriver): boolean {
  return (driver instanceof EnvelopeDriver ? driver.copying : driver) === store;
}

/** Returns the driver, wrapped in one that compresses and encrypts if the options say so. */
export function protectedDriver(
  options: Omit<EnvelopeDriverOptions, 'protection'> & { readonly protection: Protection | undefined },
): StorageDriver {
  const { protection } = options;
  return protection === undefined ? options.driver : new EnvelopeDriver({ ...options, protection });
}
