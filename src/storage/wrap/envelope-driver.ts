/**
 * A driver around another one that compresses and encrypts what is put, and opens what is got, for one database. Nothing above
 * it knows of that. Sizes of objects are those of their content, save in listings, which tell what is stored. What a store is
 * tried out with passes as it is.
 */
import { isBytes } from '../../base/brands.ts';
import {
  NotEncryptedError,
  CorruptionError,
  NotSupportedError,
  StorageError,
  isUnreadable,
} from '../../base/errors.ts';
import type { Environment } from '../../base/env.ts';
import { compareBytes } from '../../base/bytes.ts';
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
  /** What the names of the database's objects begin with, without `/` at the end. */
  readonly prefix: string;
  readonly protection: Protection;
  readonly environment: Environment;
  /** Of whose database the objects are, where that is known; otherwise Block 0 tells it. */
  readonly databaseId?: string;
}

/** How an object is stored. */
export interface StoredForm {
  readonly etag: string;
  /** Length of what is stored, in bytes. */
  readonly sizeBytes: number;
  /** Undefined where it is neither compressed nor encrypted. */
  readonly header: EnvelopeHeader | undefined;
}

/** A whole object, taken out of its envelope. */
export interface OpenedObject extends FoundObject {
  readonly isAuthentic: boolean;
}

/** What is known of an object of which ranges are read. */
interface Head {
  readonly etag: string;
  /** Undefined where the object is no envelope. */
  readonly cipher: EnvelopeCipher | undefined;
}

/** Heads that are remembered. */
const maxHeads = 256;
/** Attempts at a range of an object that is rewritten meanwhile. */
const maxAttempts = 5;

/** Objects of these folders have random names, and what they hold never differs: also in a clone, which shares them. */
const sharedFolders = [folders.data, folders.indexes, folders.blobs];
/** Kept as they are: ranges of them are read. */
const rangedFolders = [folders.blobs, folders.staged];

/** Whether objects of a name may be compressed. */
export function mayCompress(name: string): boolean {
  return !rangedFolders.some((folder) => name.startsWith(folder));
}

/** Whether an object holds a Block 0: the present one, or one that is kept. */
function isBlock0(name: string): boolean {
  return (
    name === block0Name || [folders.roots, folders.history, backupFolder].some((folder) => name.startsWith(folder))
  );
}

export class EnvelopeDriver extends WrappedDriver implements StorageDriver {
  readonly envelopes: Envelopes;
  readonly #driver: StorageDriver;
  readonly #prefix: string;
  readonly #heads = new Map<string, Head>();
  #database: { readonly id: string; readonly tag: Uint8Array } | undefined;

  constructor({ driver, prefix, protection, environment, databaseId }: EnvelopeDriverOptions) {
    // Encrypted objects are not copied as they are.
    super(driver, protection.hasKeys ? optionalMembersBut('copy') : undefined);
    this.#driver = driver;
    this.#prefix = prefix;
    this.envelopes = new Envelopes(protection, environment);
    if (databaseId !== undefined) this.#noteDatabase(databaseId);
    if (protection.hasKeys && this.presign !== undefined) this.presign = refusePresigning;
  }

  /** The driver inside, where objects may be copied without being opened. */
  get copying(): StorageDriver {
    return this.envelopes.protection.hasKeys ? this : this.#driver;
  }

  #nameOf(key: string): string {
    if (key.startsWith(`${this.#prefix}/`)) return key.slice(this.#prefix.length + 1);
    throw new StorageError(key, 'none', `The object is not under ${this.#prefix}/, to which this driver is bound.`);
  }

  /** Whether objects of a name pass as they are: without keys, a blob is exactly its bytes, whatever they look like. */
  #isPassed(name: string): boolean {
    return name.startsWith(probePrefix) || (!this.envelopes.protection.hasKeys && !mayCompress(name));
  }

  override async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    if (key.startsWith(sharedPrefix)) return this.#driver.get(key, options);
    const name = this.#nameOf(key);
    if (this.#isPassed(name)) return this.#driver.get(key, options);
    const { range } = options;
    if (range !== undefined && !mayCompress(name)) return this.#getRange(key, name, range, options);
    // Somebody only wants to know whether it is there.
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
        // Whatever database it is: the register tells whether it may be another one than before.
        if (name === block0Name) this.#noteBlock0(content);
        return { ...found, bytes: content, sizeBytes: content.length, isAuthentic: header?.seal !== undefined };
      } catch (error) {
        // Damage on the way is possible; damage in the store is there the second time too.
        if (!isDamage(error) || attempt > 1) throw error;
      }
    }
  }

  /** A whole object, and whether it was encrypted: then it is what was written, for certain. Undefined if it is missing. */
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

  /** Whether bytes that look like an envelope may be a blob of a user's that is not encrypted: its checksums tell. */
  #mayBeBare(name: string): boolean {
    return this.envelopes.protection.acceptsUnencrypted && name.startsWith(folders.blobs);
  }

  /** An object that another database could have under the same name must be of this one. */
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
    // Mostly it is known, and need not be taken apart for that.
    const id = this.#database?.id;
    if (id !== undefined && Buffer.from(content.buffer, content.byteOffset, content.byteLength).includes(id)) return;
    try {
      this.#noteDatabase(databaseIdOf(content));
    } catch {
      // The caller finds the same, and says so.
    }
  }

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    if (key.startsWith(sharedPrefix)) return this.#driver.put(key, body, options);
    const name = this.#nameOf(key);
    if (this.#isPassed(name)) return this.#driver.put(key, body, options);
    const { current } = this.envelopes.protection;
    // What a blob is, is nobody's business where it is encrypted; nor is what was there before it was.
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

  /** How an object is stored; undefined if it is missing. Throws `CorruptionError` and `NotEncryptedError`. */
  async look(key: string, options: RequestOptions = {}): Promise<StoredForm | undefined> {
    const name = this.#nameOf(key);
    for (let attempt = 1; ; attempt++) {
      const found = await this.#driver.get(key, { ...options, range: { start: 0, end: encryptedHeaderBytes } });
      if (found.status !== 'found') return undefined;
      const { etag, sizeBytes } = found;
      try {
        const header = this.envelopes.header(name, found.bytes);
        // The next reader of its ranges is sure to read what is encrypted.
        if (header?.seal !== undefined && !mayCompress(name)) this.#noteHead(key, name, found);
        return { etag, sizeBytes, header };
      } catch (error) {
        if (this.#mayBeBare(name)) return { etag, sizeBytes, header: undefined };
        if (!isDamage(error) || attempt > 1) throw error;
      }
    }
  }

  /** A range of an object that is not compressed. */
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
        if (attempt >= maxAttempts) throw new StorageError(key, 'none', 'The object was rewritten again and again.');
      } catch (error) {
        if (!isUnreadable(error) || damaged) throw error;
        damaged = true;
      }
      this.#heads.delete(key);
    }
  }

  /** `changed`: the object is another one than the one whose head is known. */
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
    // With the head where that is next to it. Of nothing, as much as an empty object has.
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

  /** Takes note of how an object begins. Throws what {@link Envelopes.header} and {@link Envelopes.cipher} do. */
  #noteHead(key: string, name: string, { bytes, etag }: FoundObject): Head {
    const head = { etag, cipher: this.#cipherOf(name, bytes) };
    // That it looked as if it were no envelope may have been damage on the way.
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
      if (header.codec !== 0) throw new CorruptionError(name, 'An object is compressed that never is');
      return this.envelopes.cipher(name, header);
    } catch (error) {
      if (this.#mayBeBare(name)) return undefined;
      throw error;
    }
  }
}

/** Whether it may be gone when the object is read again. */
function isDamage(error: unknown): boolean {
  return isUnreadable(error) || error instanceof NotEncryptedError;
}

async function refusePresigning(): Promise<string> {
  throw new NotSupportedError(
    'Blobs of this database are encrypted, so that a download URL would give bytes that nobody can read: read the blob ' +
      'with getBuffer() or stream().',
  );
}

/** Whether objects can be copied to where a driver puts them by the store that another one, as its user gave it, is for. */
export function isSameStore(driver: StorageDriver, store: StorageDriver): boolean {
  return (driver instanceof EnvelopeDriver ? driver.copying : driver) === store;
}

/** The driver, within one that compresses and encrypts if the options say so. */
export function protectedDriver(
  options: Omit<EnvelopeDriverOptions, 'protection'> & { readonly protection: Protection | undefined },
): StorageDriver {
  const { protection } = options;
  return protection === undefined ? options.driver : new EnvelopeDriver({ ...options, protection });
}
