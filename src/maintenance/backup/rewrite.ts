/**
 * Rewrites the objects that are not encrypted and compressed as the options say: after a key was replaced, or when encryption is
 * turned on or off. Every object is replaced under its own name, on condition that it is still the object that was read. Its
 * content stays the same at every moment, so nobody who reads, writes, merges or collects garbage meanwhile notices it.
 */
import { forEachOf, Pacer } from '../../base/pacer.ts';
import { compareBytes, checksum } from '../../base/bytes.ts';
import { defined } from '../../base/options.ts';
import { sleep } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { EncryptionKeyError, StorageError, isUnreadable } from '../../base/errors.ts';
import { Codec } from '../../format/envelope.ts';
import { backupFolder, block0Name, folders, parseBlobName, parseMadeName } from '../../format/object-names.ts';
import { mayCompress } from '../../storage/wrap/envelope-driver.ts';
import type { EnvelopeDriver, StoredForm } from '../../storage/wrap/envelope-driver.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { PutBody, PutOptions } from '../../storage/contract/driver.ts';

/** Progress of `db.rewrite()`. */
export interface RewriteProgress {
  /** Number of objects that were examined. */
  readonly done: number;
  /** Number of objects when the call began. */
  readonly total: number;
}

/** Options of `db.rewrite()`. */
export interface RewriteOptions {
  /** Writes nothing, and reports which keys are needed. Objects that only need compression are not looked for. Default false. */
  readonly dryRun?: boolean;
  /** Called after every object. */
  readonly onProgress?: (progress: RewriteProgress) => void;
  /** Gives the call up. Objects rewritten until then stay so, and the next run continues. */
  readonly signal?: AbortSignal;
}

/** The result of `db.rewrite()`. */
export interface RewriteReport {
  /** Number of objects that were examined. */
  readonly objects: number;
  /** Number of objects that were rewritten; in a dry run, that would be. */
  readonly rewritten: number;
  /** Size of these objects before, in bytes. */
  readonly rewrittenBytes: number;
  /** Number of objects that need each key after the run, by the key's id. A key that is not listed is not needed here any more. */
  readonly keys: Readonly<Record<string, number>>;
  /** Number of objects that are not encrypted, after the run. */
  readonly unencrypted: number;
  /** Objects that could not be read, and stay as they are. */
  readonly failed: readonly { readonly name: string; readonly message: string }[];
}

export interface RewriteContext {
  readonly environment: Environment;
  readonly driver: EnvelopeDriver;
  readonly prefix: string;
  /** Writes Block 0 again, unchanged, in the usual way. Undefined where there is none: at a place for backups. */
  readonly rewriteBlock0: ((signal: AbortSignal | undefined) => Promise<void>) | undefined;
  /** Called before an object is rewritten. */
  readonly beforeReplacing?: (name: string) => Promise<void>;
  /** Returns the media type of a blob, if it is known. The store keeps the media types of blobs that are not encrypted. */
  readonly contentTypeOf: (blob: string) => Promise<string | undefined>;
}

/** Objects that are rewritten at the same time. */
const maxWorkers = 8;
/** Attempts at an object that others replace, or that the store does not accept. */
const maxAttempts = 6;
/** Larger objects are copied in pieces. */
const maxWholeBytes = 8 * 1024 * 1024;
const pieceBytes = 4 * 1024 * 1024;
/** The pause before an object is tried again, in milliseconds. */
const pauseMs = 50;

const ownFolders = [...Object.values(folders), backupFolder];

class Rewriting {
  readonly #context: RewriteContext;
  readonly #options: RewriteOptions;
  readonly #pacer: Pacer;
  readonly #keys = new Map<string, number>();
  readonly #failed: { name: string; message: string }[] = [];
  #total = 0;
  #done = 0;
  #rewritten = 0;
  #rewrittenBytes = 0;
  #unencrypted = 0;

  constructor(context: RewriteContext, options: RewriteOptions) {
    this.#context = context;
    this.#options = options;
    this.#pacer = new Pacer(context.environment);
  }

  async run(): Promise<RewriteReport> {
    for await (const _ of this.#names()) this.#total++;
    // Objects that instances with the same options add meanwhile need no rewriting.
    await forEachOf(this.#names(), maxWorkers, async (name) => {
      if (name !== block0Name) await this.#visit(name);
    });
    // Objects that were deleted or replaced may be left in the store in their earlier form: also from a run that was given up.
    const { driver, prefix } = this.#context;
    const { signal, dryRun = false } = this.#options;
    if (!dryRun) await driver.forget?.(`${prefix}/`, defined({ signal }));
    // Block 0 is the last one: if it is encrypted, everything is.
    if (this.#context.rewriteBlock0 !== undefined) await this.#visit(block0Name);
    return {
      objects: this.#done,
      rewritten: this.#rewritten,
      rewrittenBytes: this.#rewrittenBytes,
      keys: Object.fromEntries(this.#keys),
      unencrypted: this.#unencrypted,
      failed: this.#failed,
    };
  }

  async *#names(): AsyncGenerator<string, void, undefined> {
    const { driver, prefix } = this.#context;
    const { signal } = this.#options;
    for await (const { key } of listAll(driver, `${prefix}/`, defined({ signal }))) {
      const name = key.slice(prefix.length + 1);
      if (parseMadeName(name) !== undefined) continue;
      if (name === block0Name || ownFolders.some((folder) => name.startsWith(folder))) yield name;
    }
  }

  async #visit(name: string): Promise<void> {
    const { signal, onProgress } = this.#options;
    signal?.throwIfAborted();
    if (this.#pacer.due()) await this.#pacer.pause();
    try {
      await this.#bringOver(name);
    } catch (error) {
      if (!isUnreadable(error) && !(error instanceof EncryptionKeyError)) throw error;
      this.#failed.push({ name, message: (error as Error).message });
    }
    this.#done++;
    onProgress?.({ done: this.#done, total: Math.max(this.#done, this.#total) });
  }

  /** Rewrites an object if need be, and repeats that until it is stored as it should be, or is gone. */
  async #bringOver(name: string): Promise<void> {
    const { environment, driver, prefix } = this.#context;
    const { signal, dryRun = false } = this.#options;
    const key = `${prefix}/${name}`;
    for (let attempt = 1; ; attempt++) {
      const form = await driver.look(key, defined({ signal }));
      if (form === undefined) return;
      const isDue = this.#isDue(form);
      if (dryRun || !(isDue || (await this.#wouldPay(name, key, form)))) {
        this.#note(form, form.header?.seal?.keyId, isDue);
        return;
      }
      if (await this.#replace(name, key, form, attempt)) {
        this.#note(form, driver.envelopes.protection.current?.id, true);
        return;
      }
      await sleep(environment, pauseMs * attempt, signal);
    }
  }

  #note({ sizeBytes }: StoredForm, keyId: string | undefined, isRewritten: boolean): void {
    if (keyId === undefined) this.#unencrypted++;
    else this.#keys.set(keyId, (this.#keys.get(keyId) ?? 0) + 1);
    if (!isRewritten) return;
    this.#rewritten++;
    this.#rewrittenBytes += sizeBytes;
  }

  #isDue({ header }: StoredForm): boolean {
    const { current, codec } = this.#context.driver.envelopes.protection;
    if (header?.seal?.keyId !== current?.id) return true;
    return header !== undefined && header.codec !== Codec.none && header.codec !== codec;
  }

  /** Whether an object that is not compressed should be. Block 0 need not be: it is replaced all the time anyway. */
  async #wouldPay(name: string, key: string, { header }: StoredForm): Promise<boolean> {
    const { driver } = this.#context;
    const isOpen = (header?.codec ?? Codec.none) === Codec.none && driver.envelopes.protection.codec !== Codec.none;
    if (!isOpen || !mayCompress(name) || name === block0Name) return false;
    const { signal } = this.#options;
    const found = await driver.get(key, defined({ signal }));
    return found.status === 'found' && driver.envelopes.isWorthCompressing(found.bytes);
  }

  /** Replaces an object. False if another one took its place meanwhile, or if the outcome is not known. */
  async #replace(name: string, key: string, form: StoredForm, attempt: number): Promise<boolean> {
    const { driver, rewriteBlock0, beforeReplacing, contentTypeOf } = this.#context;
    const { signal } = this.#options;
    if (name === block0Name) {
      await rewriteBlock0?.(signal);
      return true;
    }
    await beforeReplacing?.(name);
    const blob = parseBlobName(name);
    // The store keeps the media type of a blob only if that is not encrypted.
    const isPlainBlob = blob !== undefined && driver.envelopes.protection.current === undefined;
    const contentType = isPlainBlob ? await contentTypeOf(blob) : undefined;
    const options: PutOptions = {
      if: { etag: form.etag },
      ...defined({ contentType, signal }),
    };
    try {
      const body = await this.#body(name, key, form);
      return body !== undefined && (await driver.put(key, body, options)).status === 'written';
    } catch (error) {
      // The next look at the object shows whether it was written.
      if (!(error instanceof StorageError) || attempt >= maxAttempts || signal?.aborted === true) throw error;
      return false;
    }
  }

  /**
   * Reads the content of the object; undefined if it is another object by now. An object that was not encrypted is read twice:
   * only that detects damage on the way, which would be stored for good.
   */
  async #body(name: string, key: string, { etag, sizeBytes, header }: StoredForm): Promise<PutBody | undefined> {
    const { driver } = this.#context;
    const { signal } = this.#options;
    if (sizeBytes > maxWholeBytes && !mayCompress(name)) {
      return this.#pieces(key, etag, header?.seal === undefined ? await this.#checksum(key, etag) : undefined);
    }
    const found = await driver.read(key, defined({ signal }));
    if (found?.etag !== etag) return undefined;
    if (found.isAuthentic) return found.bytes;
    const again = await driver.read(key, defined({ signal }));
    return again?.etag === etag && compareBytes(again.bytes, found.bytes) === 0 ? found.bytes : undefined;
  }

  async #checksum(key: string, etag: string): Promise<number> {
    let sum = 0;
    for await (const bytes of this.#pieces(key, etag)) sum = checksum(bytes, sum);
    return sum;
  }

  /** Reads an object in pieces. Throws before the last piece if the checksum of the whole is not `expected`. */
  async *#pieces(key: string, etag: string, expected?: number): AsyncGenerator<Uint8Array, void, undefined> {
    const { driver } = this.#context;
    const { signal } = this.#options;
    let sum = 0;
    for (let start = 0, end = 1; start < end; start += pieceBytes) {
      const range = { start, end: start + pieceBytes };
      const found = await driver.get(key, { range, ...defined({ signal }) });
      if (found.status !== 'found' || found.etag !== etag) {
        throw new StorageError(key, 'none', 'The object was replaced or deleted while it was read.');
      }
      end = found.sizeBytes;
      sum = checksum(found.bytes, sum);
      const isLast = start + pieceBytes >= end;
      if (isLast && expected !== undefined && sum !== expected) {
        throw new StorageError(key, 'none', 'The object was not the same when it was read again.');
      }
      if (found.bytes.length > 0) yield found.bytes;
    }
  }
}

/** Runs `db.rewrite()`. */
export function rewriteObjects(context: RewriteContext, options: RewriteOptions): Promise<RewriteReport> {
  return new Rewriting(context, options).run();
}
