/** A place for bundles in memory, and a server that answers plain GETs from it. */
import { openReader } from '../../../src/reader.ts';
import type { Fetch, FetchResponse, Reader, ReaderOptions } from '../../../src/reader.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { listAll } from '../../../src/storage/contract/driver.ts';
import type { DeleteResult, PutBody, PutOptions, PutResult } from '../../../src/storage/contract/driver.ts';
import { WrappedDriver } from '../../../src/storage/wrap/wrapped-driver.ts';
import { isEnvelope } from '../../../src/format/envelope.ts';
import { decodeContents, decodePointer, pointerName, unpackBundleObject } from '../../../src/format/bundle.ts';

export const prefix = 'site';
const origin = 'https://example.test';

/** What a server was asked for. */
export interface ServedRequest {
  readonly name: string;
  readonly range: string | undefined;
}

/** A driver whose writes are noted, and can be stopped before and after they take effect. */
export class HookedDriver extends WrappedDriver {
  readonly #driver: MemoryDriver;
  /** Names of the objects that were put. */
  readonly puts: string[] = [];
  readonly deleted: string[] = [];
  before: (name: string) => void | Promise<void> = () => undefined;
  after: (name: string) => void | Promise<void> = () => undefined;

  constructor(driver: MemoryDriver) {
    super(driver);
    this.#driver = driver;
  }

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const name = key.slice(prefix.length + 1);
    await this.before(name);
    const result = await this.#driver.put(key, body, options);
    if (result.status === 'written') this.puts.push(name);
    await this.after(name);
    return result;
  }

  override async delete(keys: readonly string[]): Promise<DeleteResult> {
    await this.before('delete');
    this.deleted.push(...keys.map((key) => key.slice(prefix.length + 1)));
    return this.#driver.delete(keys);
  }
}

export class BundleServer {
  readonly store = new MemoryDriver();
  /** The driver that publishes. */
  readonly driver = new HookedDriver(this.store);
  readonly place = { driver: this.driver, prefix };
  readonly requests: ServedRequest[] = [];
  sentBytes = 0;
  /** Changes answers; undefined leaves an answer as it is. */
  alter: ((name: string, bytes: Uint8Array) => Uint8Array | number | undefined) | undefined;
  /** Whether ranges are answered with the whole object, as some servers do. */
  ignoresRanges = false;

  readonly url = `${origin}/${prefix}`;

  fetch: Fetch = async (url, { headers, signal }): Promise<FetchResponse> => {
    signal.throwIfAborted();
    await Promise.resolve();
    const key = decodeURIComponent(new URL(url).pathname.slice(1));
    const name = key.slice(prefix.length + 1);
    const range = headers?.['range'];
    this.requests.push({ name, range });
    const found = await this.store.get(key);
    const answer = found.status === 'found' ? (this.alter?.(name, found.bytes) ?? found.bytes) : 404;
    if (typeof answer === 'number') return responseOf(answer, new Uint8Array(0), {});
    const [, from = '', to = ''] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
    if (range === undefined || this.ignoresRanges) {
      this.sentBytes += answer.length;
      return responseOf(200, answer, {});
    }
    if (Number(from) >= answer.length)
      return responseOf(416, new Uint8Array(0), { 'content-range': `bytes */${answer.length}` });
    const part = answer.slice(Number(from), Number(to) + 1);
    this.sentBytes += part.length;
    return responseOf(206, part, { 'content-range': `bytes ${from}-${to}/${answer.length}` });
  };

  open(options: ReaderOptions = {}): Promise<Reader> {
    return openReader(this.url, { fetch: this.fetch, ...options });
  }

  /** Returns what was asked for since the last call. */
  take(): string[] {
    return this.requests.splice(0).map(({ name }) => name);
  }

  /** The names of all objects. */
  async names(): Promise<string[]> {
    const names: string[] = [];
    for await (const { key } of listAll(this.store, `${prefix}/`)) names.push(key.slice(prefix.length + 1));
    return names;
  }

  async #content(name: string): Promise<Uint8Array> {
    const found = await this.store.get(`${prefix}/${name}`);
    if (found.status !== 'found') throw new Error(`${name} is missing`);
    return isEnvelope(found.bytes) ? unpackBundleObject(name, found.bytes, 1e9) : found.bytes;
  }

  /** The names of the objects that the bundles in the pointer have, sorted. */
  async needed(): Promise<string[]> {
    const { bundles } = decodePointer(await this.#content(pointerName));
    const names = new Set([pointerName]);
    for (const { manifest, contents } of bundles) {
      const { blocks, blobs } = decodeContents(contents, await this.#content(contents));
      for (const name of [manifest, contents, ...blocks, ...blobs]) names.add(name);
    }
    return [...names].toSorted();
  }

  /** The content of every object, with names, as text of one character per byte. */
  async texts(): Promise<Map<string, string>> {
    const texts = new Map<string, string>();
    for (const name of await this.names()) {
      texts.set(name, Buffer.from(await this.#content(name)).toString('latin1'));
    }
    return texts;
  }
}

function responseOf(status: number, bytes: Uint8Array, headers: Readonly<Record<string, string>>): FetchResponse {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 10_000) controller.enqueue(bytes.slice(at, at + 10_000));
      controller.close();
    },
  });
  return { status, headers: { get: (name) => headers[name] ?? null }, body };
}
