/** The contents of a bucket, in memory: objects, open uploads, and the contents of a moment ago. */
import type { Checksum, ChecksumAlgorithm } from './checksums.ts';
import type { S3Dialect } from './dialect.ts';

/** How an object is encrypted, by the values of the headers that say so. */
export interface Encryption {
  /** `AES256` unless the request asked for something else: Amazon encrypts everything. */
  readonly algorithm: string;
  readonly keyId: string | undefined;
  readonly bucketKey: string | undefined;
}

/** What an object is given beside its bytes. */
export interface ObjectProperties {
  readonly contentType: string;
  /** `cache-control`, `content-encoding` and their like. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of `x-amz-meta-*`, without that beginning. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly encryption: Encryption;
}

export interface StoredObject extends ObjectProperties {
  readonly bytes: Buffer;
  /** With its quotes. */
  readonly etag: string;
  /** In whole seconds, as S3 keeps it. */
  readonly lastModifiedMs: number;
  readonly checksum: Checksum | undefined;
}

export interface Part {
  readonly bytes: Buffer;
  /** With its quotes. */
  readonly etag: string;
  readonly md5: Buffer;
  readonly uploadedMs: number;
  readonly checksum: Checksum | undefined;
}

/** A multipart upload that is neither completed nor aborted. */
export interface OpenUpload extends ObjectProperties {
  readonly uploadId: string;
  readonly key: string;
  readonly initiatedMs: number;
  readonly checksumAlgorithm: ChecksumAlgorithm | undefined;
  readonly parts: Map<number, Part>;
}

/** What is kept of an upload that was completed, so that it can be answered once more. */
export interface CompletedUpload {
  readonly key: string;
  readonly etag: string;
  readonly encryption: Encryption;
  readonly checksum: Checksum | undefined;
}

interface Change {
  readonly key: string;
  readonly atMs: number;
  readonly before: StoredObject | undefined;
}

interface SortedKey {
  readonly key: string;
  readonly bytes: Buffer;
}

export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export class Bucket {
  readonly name: string;
  readonly createdMs: number;
  /** By upload id, in the order in which they were begun. */
  readonly uploads = new Map<string, OpenUpload>();
  /** By upload id. */
  readonly completed = new Map<string, CompletedUpload>();
  /** When each key was written last; only kept up where a dialect asks for it. */
  readonly lastWriteMs = new Map<string, number>();
  readonly #dialect: Readonly<S3Dialect>;
  readonly #objects = new Map<string, StoredObject>();
  #changes: Change[] = [];
  #sorted: readonly string[] | undefined;

  constructor(name: string, createdMs: number, dialect: Readonly<S3Dialect>) {
    this.name = name;
    this.createdMs = createdMs;
    this.#dialect = dialect;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  put(key: string, object: StoredObject, nowMs: number): void {
    this.#remember(key, nowMs);
    if (!this.#objects.has(key)) this.#sorted = undefined;
    this.#objects.set(key, object);
  }

  delete(key: string, nowMs: number): void {
    if (!this.#objects.has(key)) return;
    this.#remember(key, nowMs);
    this.#objects.delete(key);
    this.#sorted = undefined;
  }

  /** The object that a reader sees who sees nothing after `timeMs`. */
  getAsOf(key: string, timeMs: number): StoredObject | undefined {
    const change = this.#changes.find((candidate) => candidate.key === key && candidate.atMs > timeMs);
    return change === undefined ? this.#objects.get(key) : change.before;
  }

  /** Keys in the order of their UTF-8 bytes. */
  keys(): readonly string[] {
    this.#sorted ??= sortKeys(this.#objects.keys());
    return this.#sorted;
  }

  /** The keys that a reader sees who sees nothing after `timeMs`. */
  keysAsOf(timeMs: number): readonly string[] {
    const changed = new Set(this.#changes.filter(({ atMs }) => atMs > timeMs).map(({ key }) => key));
    if (changed.size === 0) return this.keys();
    const keys = new Set([...this.#objects.keys(), ...changed]);
    return sortKeys(keys).filter((key) => this.getAsOf(key, timeMs) !== undefined);
  }

  #remember(key: string, nowMs: number): void {
    const { staleReadsMs, staleListsMs } = this.#dialect;
    const memoryMs = Math.max(staleReadsMs, staleListsMs);
    if ((this.#changes[0]?.atMs ?? nowMs) < nowMs - memoryMs) {
      this.#changes = this.#changes.filter(({ atMs }) => atMs >= nowMs - memoryMs);
    }
    if (memoryMs === 0) return;
    this.#changes.push({ key, atMs: nowMs, before: this.#objects.get(key) });
  }
}

function sortKeys(keys: Iterable<string>): string[] {
  const sorted: SortedKey[] = Array.from(keys, (key) => ({ key, bytes: Buffer.from(key) }));
  return sorted.toSorted((a, b) => Buffer.compare(a.bytes, b.bytes)).map(({ key }) => key);
}
