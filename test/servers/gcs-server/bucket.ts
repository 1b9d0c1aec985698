/** What the test server stores: objects with their generations, and sessions of uploads. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareStrings } from '../../../src/base/bytes.ts';
import type { GcsDialect } from './dialect.ts';
import { GcsError } from './gcs-error.ts';

export interface GcsObject {
  readonly name: string;
  readonly bytes: Buffer;
  readonly generation: string;
  readonly contentType: string;
  readonly cacheControl: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly timeCreatedMs: number;
}

/** Parts of an object that its writer chooses. */
export type GcsContent = Omit<GcsObject, 'generation' | 'timeCreatedMs'>;

export type Query = Readonly<Record<string, string>>;

/** A resumable session. */
export interface GcsSession {
  readonly name: string;
  readonly query: Query;
  readonly contentType: string;
  readonly cacheControl: string | undefined;
  readonly metadata: GcsObject['metadata'];
  bytes: Buffer;
  /** The object, once the upload is complete. */
  object: GcsObject | undefined;
}

export function md5Of(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('base64');
}

/** Names that Cloud Storage has no objects of. */
export function checkName(name: string): void {
  const isRefused =
    name === '.' || name === '..' || /[\r\n]/.test(name) || name.startsWith('.well-known/acme-challenge/');
  if (name === '' || isRefused || Buffer.byteLength(name) > 1024) throw new GcsError(400, 'Invalid object name');
}

function isMet(query: Query, source: string, object: GcsObject | undefined): boolean {
  const generation = object?.generation ?? '0';
  const [match, notMatch] = [query[`if${source}GenerationMatch`], query[`if${source}GenerationNotMatch`]];
  return (match === undefined || match === generation) && (notMatch === undefined || notMatch !== generation);
}

export class GcsBucket {
  readonly name: string;
  readonly dialect: Readonly<GcsDialect>;
  readonly objects = new Map<string, GcsObject>();
  readonly sessions = new Map<string, GcsSession>();
  /** Bytes copied, by the tokens of copies that are under way. */
  readonly rewrites = new Map<string, number>();
  readonly #now: () => number;
  readonly #lastWriteMs = new Map<string, number>();
  #lastGeneration = 0n;

  constructor(name: string, dialect: Readonly<GcsDialect>, now: () => number) {
    this.name = name;
    this.dialect = dialect;
    this.#now = now;
  }

  /** The names in the order of their UTF-8 bytes. */
  names(): string[] {
    return [...this.objects.keys()].toSorted(compareStrings);
  }

  get(name: string): GcsObject {
    const object = this.objects.get(name);
    if (object === undefined) throw new GcsError(404, `No such object: ${this.name}/${name}`);
    return object;
  }

  /** Checks the conditions of a write. */
  checkWrite(name: string, query: Query): void {
    const object = this.objects.get(name);
    if (this.dialect.ignoreConditions || isMet(query, '', object)) return;
    if (object === undefined && this.dialect.missingIs404) this.get(name);
    throw new GcsError(412);
  }

  /** Checks the conditions of a read, or of the source of a copy. */
  checkRead(object: GcsObject, query: Query, source: '' | 'Source' = ''): void {
    if (isMet(query, source, object)) return;
    throw new GcsError(query[`if${source}GenerationNotMatch`] === object.generation ? 304 : 412);
  }

  /** Checks the conditions and writes, in one step unless the dialect says otherwise. */
  async write(content: GcsContent, query: Query): Promise<GcsObject> {
    const { dialect } = this;
    this.#checkRate(content.name);
    this.checkWrite(content.name, query);
    if (dialect.checkThenWriteMs > 0) await sleep(dialect.checkThenWriteMs);
    const generation = this.#nextGeneration();
    const object = { ...content, generation, timeCreatedMs: this.#now() };
    this.objects.set(content.name, object);
    return object;
  }

  delete(name: string, query: Query): void {
    this.get(name);
    this.checkWrite(name, query);
    this.objects.delete(name);
  }

  #checkRate(name: string): void {
    const nowMs = this.#now();
    const last = this.#lastWriteMs.get(name);
    if (last !== undefined && nowMs - last < this.dialect.writeIntervalMs) throw new GcsError(429);
    this.#lastWriteMs.set(name, nowMs);
  }

  /** Generations grow, as they do at Google, where they are close to a time in microseconds. */
  #nextGeneration(): string {
    const now = BigInt(this.#now()) * 1000n;
    this.#lastGeneration = now > this.#lastGeneration ? now : this.#lastGeneration + 1n;
    return String(this.#lastGeneration);
  }
}
