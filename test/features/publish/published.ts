/** A place for bundles in memory, and a server that answers plain GETs from it. */
import type { Fetch, FetchResponse } from '../../../src/reader.ts';
import { openReader } from '../../../src/reader.ts';
import type { Reader, ReaderOptions } from '../../../src/reader.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { listAll } from '../../../src/storage/contract/driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { isEnvelope } from '../../../src/format/envelope.ts';
import { unpackBundleObject } from '../../../src/format/bundle.ts';

export const prefix = 'site';
const origin = 'https://example.test';

/** What a server was asked for. */
export interface ServedRequest {
  readonly name: string;
  readonly range: string | undefined;
}

export class BundleServer {
  readonly store = new MemoryDriver();
  /** The driver that publishes; faults can be set. */
  readonly driver: FaultyDriver = new FaultyDriver(this.store);
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
    if (Number(from) >= answer.length) return responseOf(416, new Uint8Array(0), { 'content-range': `bytes */${answer.length}` });
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

  /** The content of every object, with names, as text of one character per byte. */
  async texts(): Promise<Map<string, string>> {
    const texts = new Map<string, string>();
    for (const name of await this.names()) {
      const found = await this.store.get(`${prefix}/${name}`);
      if (found.status !== 'found') continue;
      const { bytes } = found;
      const content = isEnvelope(bytes) ? unpackBundleObject(name, bytes, 1e9) : bytes;
      texts.set(name, Buffer.from(content).toString('latin1'));
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
