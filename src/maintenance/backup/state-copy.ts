/**
 * Copies all blocks and blobs of a state of a database to another place, but not its Block 0. Blocks and blobs never change, so
 * an object that is there already is not copied again, and an interrupted copy can be continued.
 *
 * Also reads the stored form of an object: plain, compressed, or encrypted with some key, which its first bytes show without a key.
 *
 * Invariant: an object that is copied through this process is checked against its checksums, so that damage does not spread.
 */
import type { Environment } from '../../base/env.ts';
import { ContentionError, CorruptionError, StorageError, isUnreadable } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import { forEachOf, Pacer } from '../../base/pacer.ts';
import { BlobStore } from '../../blob/blob-store.ts';
import { checkBlobRecord } from '../../blob/blob-rows.ts';
import { blobsSchema } from '../../blob/blob-tables.ts';
import type { BlobRecord } from '../../blob/blob-rows.ts';
import { openBlock } from '../../format/block.ts';
import type { Block0 } from '../../format/block0.ts';
import { blobName, folders, parseBlobName } from '../../format/object-names.ts';
import { decodeRow } from '../../format/row-decode.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { PutBody, StorageDriver, RequestOptions } from '../../storage/contract/driver.ts';
import type { Protection } from '../../storage/wrap/encryption-options.ts';
import { protectedDriver } from '../../storage/wrap/envelope-driver.ts';
import { RetryingDriver } from '../../storage/wrap/retrying-driver.ts';
import { readAll } from '../../tree/cursor.ts';
import { View } from '../../view/view.ts';
import type { ViewContext } from '../../view/view.ts';
import { ReachableBlocks } from '../gc/gc-store.ts';
import { compareBytes } from '../../base/bytes.ts';
import { Codec, decodeEnvelopeHeader, encryptedHeaderBytes, isEnvelope } from '../../format/envelope.ts';

/** The place of a database or of backups. */
export interface StorePlace {
  /** The driver of the store that keeps the objects. */
  readonly driver: StorageDriver;
  /** The prefix of their names, without `/` at either end, as `dbPrefix`. */
  readonly prefix: string;
}

/** A place whose driver compresses and encrypts objects as the options say. */
export interface ProtectedPlace extends StorePlace {
  /** The driver inside, which shows objects as they are stored. */
  readonly bare: StorageDriver;
  readonly protection: Protection | undefined;
}

/** Makes a place whose driver compresses and encrypts objects as the options say. `databaseId`: the database's, if known. */
export function protectedPlace(
  environment: Environment,
  { driver, prefix }: StorePlace,
  protection: Protection | undefined,
  databaseId?: string,
): ProtectedPlace {
  const whose = databaseId !== undefined && { databaseId };
  const inside = protectedDriver({ driver, prefix, protection, environment, ...whose });
  return { driver: inside, prefix, bare: driver, protection };
}

/** Makes a place whose drivers retry the requests that may be repeated. */
export function patiently(place: ProtectedPlace, environment: Environment): ProtectedPlace {
  const { driver, bare } = place;
  const repeating = new RetryingDriver(driver, environment);
  return { ...place, driver: repeating, bare: bare === driver ? repeating : new RetryingDriver(bare, environment) };
}

/** Progress of a copy. */
export interface CopyProgress {
  /** Number of objects at the other place, copied or there before. */
  readonly done: number;
  /** Number of objects of the state. */
  readonly total: number;
  /** Bytes that went through this process, without objects that the store copied by itself. */
  readonly copiedBytes: number;
}

export interface StateCopyOptions {
  readonly environment: Environment;
  readonly from: StorePlace;
  readonly to: ProtectedPlace;
  /**
   * Objects that were put at the other place up to this time, by the clock of its store, are known to be encrypted with the
   * current key. The form of other objects is read. Default: nothing is known.
   */
  readonly vouchedUntilMs?: number | undefined;
  /** Whether both places are in one store, so that the driver of `from` can copy to the other place, if it can copy at all. */
  readonly isOneStore: boolean;
  /** Reads the blocks of `from`. */
  readonly context: ViewContext;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: CopyProgress) => void) | undefined;
  /** Called before each object. If it rejects, so does the copy. */
  readonly check?: () => Promise<void>;
}

/** Counts of a copy. */
export interface CopyCounts {
  /** Number of objects of the state. */
  readonly objects: number;
  /** Number of these objects that were not there yet. */
  readonly copiedObjects: number;
  /** Number of these objects that were there with another key or without one, and were stored again as the options say. */
  readonly rewrittenObjects: number;
  /** Bytes that went through this process, without objects that the store copied by itself. */
  readonly copiedBytes: number;
}

/** The result of a copy. */
export interface CopiedState {
  readonly counts: CopyCounts;
  /**
   * If there are keys: names of objects that were there before, are not part of the state, and are not covered by a voucher.
   */
  readonly unknown: readonly string[];
}

/** Objects that are copied at the same time, and the size above which a blob is copied in pieces. */
const maxCopies = 16;
const maxWholeBytes = 4 * 1024 * 1024;
const maxAttempts = 4;

/** An object to copy to the other place. */
interface CopiedObject {
  readonly name: string;
  /** Length of its content, in bytes. */
  readonly contentBytes: number;
  readonly contentType?: string | undefined;
  /** Reads the object, and checks it against its checksums. */
  readonly read: () => Promise<PutBody>;
}

/** The state of an object at the other place. */
type There = 'missing' | 'right' | ObjectForm;

class StateCopy {
  readonly #options: StateCopyOptions;
  readonly #pacer: Pacer;
  readonly #blobs: BlobStore;
  /** The objects at the other place: their names and stored lengths. */
  readonly #present = new Map<string, number>();
  /** Names of these objects that no voucher covers; only if there are keys. */
  readonly #unvouched = new Set<string>();
  /** Whether the store copies objects by itself: false once it has refused one, since it would refuse the next one too. */
  #storeCopies: boolean;
  #total = 0;
  #done = 0;
  #copiedObjects = 0;
  #rewrittenObjects = 0;
  #copiedBytes = 0;

  constructor(options: StateCopyOptions) {
    this.#options = options;
    this.#pacer = new Pacer(options.environment);
    this.#storeCopies = options.isOneStore && options.from.driver.copy !== undefined;
    this.#blobs = new BlobStore(options.from.driver, options.from.prefix);
  }

  async run(block0: Block0): Promise<CopiedState> {
    const { context, signal } = this.#options;
    await this.#listPresent();
    const reach = new ReachableBlocks(context, this.#pacer);
    await reach.add(block0, signal);
    // Roots that are part of Block 0 are not objects.
    for (const { name } of block0.inlined) reach.names.delete(name);
    const blobs = await blobsOf(context, block0, this.#pacer, signal);
    this.#total = reach.names.size + blobs.length;
    await this.#each(reach.names, ([name, sizeBytes]) => this.#bring(this.#block(name, sizeBytes)));
    await this.#each(blobs, (blob) => this.#bring(this.#blob(blob)));
    const counts = {
      objects: this.#total,
      copiedObjects: this.#copiedObjects,
      rewrittenObjects: this.#rewrittenObjects,
      copiedBytes: this.#copiedBytes,
    };
    for (const name of reach.names.keys()) this.#unvouched.delete(name);
    for (const { reference } of blobs) this.#unvouched.delete(blobName(reference));
    return { counts, unknown: [...this.#unvouched] };
  }

  async #listPresent(): Promise<void> {
    const { to, signal, vouchedUntilMs = Number.NEGATIVE_INFINITY } = this.#options;
    const isKeyed = to.protection?.hasKeys === true;
    for (const folder of [folders.data, folders.indexes, folders.blobs]) {
      for await (const entry of listAll(to.driver, `${to.prefix}/${folder}`, defined({ signal }))) {
        const name = entry.key.slice(to.prefix.length + 1);
        this.#present.set(name, entry.sizeBytes);
        if (isKeyed && entry.lastModifiedMs > vouchedUntilMs) this.#unvouched.add(name);
      }
    }
  }

  /** Copies several items at a time. Rejects with the first failure, once no copy is under way any more. */
  #each<T>(items: Iterable<T>, copy: (item: T) => Promise<void>): Promise<void> {
    const { signal, onProgress, check } = this.#options;
    return forEachOf(items, maxCopies, async (item) => {
      signal?.throwIfAborted();
      await check?.();
      await copy(item);
      this.#done++;
      onProgress?.({ done: this.#done, total: this.#total, copiedBytes: this.#copiedBytes });
      if (this.#pacer.due()) await this.#pacer.pause();
    });
  }

  #block(name: string, contentBytes: number): CopiedObject {
    const { from, signal } = this.#options;
    const read = async (): Promise<PutBody> => {
      const found = await from.driver.get(`${from.prefix}/${name}`, defined({ signal }));
      if (found.status !== 'found') throw new CorruptionError(name, 'A block that the state refers to is missing');
      openBlock(name, found.bytes);
      return found.bytes;
    };
    return { name, contentBytes, read };
  }

  #blob({ reference, record }: StateBlob): CopiedObject {
    const { signal } = this.#options;
    const { sizeBytes, contentType } = record;
    const read = async (): Promise<PutBody> => {
      if (sizeBytes === 0) await this.#blobs.check(reference, record, signal);
      return sizeBytes <= maxWholeBytes
        ? this.#blobs.read(reference, record, 0, sizeBytes, signal)
        : this.#blobs.stream(reference, record, 0, sizeBytes, signal);
    };
    return { name: blobName(reference), contentBytes: sizeBytes, contentType, read };
  }

  /**
   * Ensures that an object is at the other place, encrypted as the options say. An object that is there with another key, or not
   * encrypted, is replaced: otherwise the copy would need that key, or be readable.
   */
  async #bring(object: CopiedObject): Promise<void> {
    const { signal } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const known = attempt === 1 ? this.#known(object) : 'unsure';
      const there = known === 'unsure' ? await this.#look(object) : known;
      if (there === 'right') {
        // Another process put it there, or an earlier attempt of this one whose answer was lost.
        if (attempt > 1) this.#copiedObjects++;
        return;
      }
      if (there === 'missing' && attempt === 1 && (await this.#copiedByStore(object))) return;
      try {
        if (await this.#put(object, there)) return;
      } catch (error) {
        if (!(error instanceof StorageError) || attempt >= maxAttempts || signal?.aborted === true) throw error;
      }
      if (attempt >= maxAttempts) {
        throw new ContentionError(
          `Others replaced ${object.name} again and again while it was copied. Try again later.`,
        );
      }
    }
  }

  /** The state of an object as the listing shows it. */
  #known({ name, contentBytes }: CopiedObject): There | 'unsure' {
    const storedBytes = this.#present.get(name);
    if (storedBytes === undefined) return 'missing';
    if (this.#options.to.protection?.current !== undefined)
      return storedBytes === contentBytes || this.#unvouched.has(name) ? 'unsure' : 'right';
    return isSurelyPlain(name, storedBytes, contentBytes) ? 'right' : 'unsure';
  }

  async #look({ name, contentBytes }: CopiedObject): Promise<There> {
    const { to, signal } = this.#options;
    const form = await formOf(to.bare, `${to.prefix}/${name}`, name, defined({ signal }));
    if (form === undefined) return 'missing';
    const isPlain = to.protection?.current === undefined && isSurelyPlain(name, form.sizeBytes, contentBytes);
    return isPlain || isStoredAs(form, to.protection) ? 'right' : form;
  }

  /** Has the store copy an object, if both places are in one store that can copy. */
  async #copiedByStore({ name, contentBytes, contentType }: CopiedObject): Promise<boolean> {
    const { from, to, signal } = this.#options;
    if (!this.#storeCopies) return false;
    const isBlob = name.startsWith(folders.blobs);
    const options = {
      ...(isBlob && { sizeBytes: contentBytes }),
      ...defined({ contentType, signal }),
    };
    const answer = await from.driver.copy?.(`${from.prefix}/${name}`, `${to.prefix}/${name}`, options);
    if (answer?.status === 'copied') this.#copiedObjects++;
    else this.#storeCopies = false;
    return answer?.status === 'copied';
  }

  /** Puts an object where none is, or in place of one that is stored in another form. False if another one came first. */
  async #put(
    { name, contentBytes, contentType, read }: CopiedObject,
    before: 'missing' | ObjectForm,
  ): Promise<boolean> {
    const { to, signal } = this.#options;
    const put = await to.driver.put(`${to.prefix}/${name}`, await read(), {
      if: before === 'missing' ? 'absent' : { etag: before.etag },
      ...defined({ signal, contentType }),
    });
    if (put.status !== 'written') return false;
    if (before === 'missing') this.#copiedObjects++;
    else this.#rewrittenObjects++;
    this.#copiedBytes += contentBytes;
    return true;
  }
}

/** Copies the objects that are not there yet. Once it resolves, all objects of the state are at the other place. */
export function copyState(block0: Block0, options: StateCopyOptions): Promise<CopiedState> {
  return new StateCopy(options).run(block0);
}

/** A blob that rows of a state refer to. */
interface StateBlob {
  readonly reference: string;
  readonly record: BlobRecord;
}

/** Reads the records of all blobs of a state. Rejects if any record cannot be read. */
export async function blobsOf(
  context: ViewContext,
  block0: Block0,
  pacer: Pacer,
  signal: AbortSignal | undefined,
): Promise<StateBlob[]> {
  const blobs: StateBlob[] = [];
  const table = View.ofBlock0(context, block0).table(blobsSchema.name);
  if (table === undefined) return blobs;
  const cursor = readAll(table.tree);
  while (await cursor.next()) {
    signal?.throwIfAborted();
    if (pacer.due()) await pacer.pause();
    for (let i = cursor.from; i < cursor.to; i++) {
      const row = decodeRow(table.shape.layout, cursor.node, cursor.node.rowBase(i));
      const reference = row['id'] as string;
      blobs.push({ reference, record: checkBlobRecord(reference, row) });
    }
  }
  return blobs;
}

/** Objects whose forms are read at the same time. */
const looksAtOnce = 16;

/** Reads the form of each object: with which key it is encrypted, if any. Objects that are not there are left out. */
export async function* formsOf(
  { bare, prefix }: Pick<ProtectedPlace, 'bare' | 'prefix'>,
  names: readonly string[],
  signal: AbortSignal | undefined,
): AsyncGenerator<{ readonly name: string; readonly form: ObjectForm }, void, undefined> {
  for (let at = 0; at < names.length; at += looksAtOnce) {
    signal?.throwIfAborted();
    const looks = names.slice(at, at + looksAtOnce).map(async (name) => {
      return { name, form: await formOf(bare, `${prefix}/${name}`, name, defined({ signal })) };
    });
    for (const { name, form } of await Promise.all(looks)) if (form !== undefined) yield { name, form };
  }
}

/** Counts objects by the keys that they are encrypted with. */
export class KeyCounts {
  readonly #keys = new Map<string, number>();
  unencrypted = 0;
  damaged = 0;

  add({ kind, keyId }: Pick<ObjectForm, 'kind' | 'keyId'>): void {
    if (keyId !== undefined) this.#keys.set(keyId, (this.#keys.get(keyId) ?? 0) + 1);
    else if (kind === 'damaged') this.damaged++;
    else this.unencrypted++;
  }

  get keys(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#keys);
  }
}

/** The stored form of one object. */
export interface ObjectForm {
  readonly etag: string;
  /** Length of the stored object, in bytes. */
  readonly sizeBytes: number;
  /**
   * `plain`: without an envelope. `compressed`: in an envelope without a key. `encrypted`: with the key of `keyId`. `damaged`:
   * its header cannot be read.
   */
  readonly kind: 'plain' | 'compressed' | 'encrypted' | 'damaged';
  readonly keyId: string | undefined;
  readonly keyCheck: Uint8Array | undefined;
}

/** Shorter content, compressed and encrypted, may by chance have its original length. */
const tellingBytes = 2048;

/** Whether the length alone proves that an object is stored plain. Blobs are never compressed, so an encrypted blob is longer. */
export function isSurelyPlain(name: string, sizeBytes: number, contentBytes: number): boolean {
  return sizeBytes === contentBytes && (contentBytes >= tellingBytes || parseBlobName(name) !== undefined);
}

/**
 * Reads the stored form of an object; undefined if it is missing. `driver` must be the driver that neither encrypts nor
 * compresses.
 */
export async function formOf(
  driver: StorageDriver,
  key: string,
  name: string,
  options: RequestOptions,
): Promise<ObjectForm | undefined> {
  const found = await driver.get(key, { ...options, range: { start: 0, end: encryptedHeaderBytes } });
  if (found.status !== 'found') return undefined;
  const { bytes, etag, sizeBytes } = found;
  const form = { etag, sizeBytes, keyId: undefined, keyCheck: undefined };
  if (!isEnvelope(bytes)) return { ...form, kind: 'plain' };
  try {
    const { seal, codec } = decodeEnvelopeHeader(name, bytes);
    if (seal !== undefined) return { ...form, kind: 'encrypted', keyId: seal.keyId, keyCheck: seal.keyCheck };
    return { ...form, kind: codec === Codec.none ? 'plain' : 'compressed' };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { ...form, kind: 'damaged' };
  }
}

/** Whether an object is stored as the options require: encrypted with the current key, or not encrypted. */
export function isStoredAs(form: ObjectForm, protection: Protection | undefined): boolean {
  const current = protection?.current;
  if (current === undefined) return form.kind === 'plain' || (form.kind === 'compressed' && protection !== undefined);
  const { keyId, keyCheck } = form;
  return keyId === current.id && keyCheck !== undefined && compareBytes(keyCheck, current.check) === 0;
}
