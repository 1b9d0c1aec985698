/** Follows a query that `liveHandler()` serves: reads its events, and connects again when the connection is lost. */
import { anySignal, newAbortController } from '../base/abort.ts';
import { isError, messageOf } from '../base/brands.ts';
import { sleep } from '../base/env.ts';
import type { Environment, Timer } from '../base/env.ts';
import type { WireChange, WireCurrent, WireFailure, WireResult } from '../live-wire/messages.ts';
import { decodeRow } from '../live-wire/wire-values.ts';
import type { WireRow } from '../live-wire/wire-values.ts';
import { EventReader } from './event-reader.ts';
import type { StreamEvent } from './event-reader.ts';
import { LiveQueryError, mayMend } from './live-query-error.ts';
import type { Feed, Sink } from './live-store.ts';

/** Three heartbeats of the server. */
const silenceMs = 45_000;
const leastPauseMs = 500;
const mostPauseMs = 30_000;

/** Makes a request: `fetch`, or what stands for it. */
export type LiveFetch = (url: string, init: RequestInit) => Promise<Response>;

/** Headers of requests, or a function that returns them for each. */
export type LiveHeaders =
  | Readonly<Record<string, string>>
  | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);

export interface RemoteFeedOptions {
  readonly environment: Environment;
  readonly url: string;
  readonly fetch: LiveFetch;
  readonly headers: LiveHeaders | undefined;
}

/** Ends an attempt on which nothing has come for too long. */
class Watchdog {
  readonly #environment: Environment;
  readonly #controller = newAbortController();
  #timer: Timer | undefined;

  constructor(environment: Environment) {
    this.#environment = environment;
    this.fed();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  fed(): void {
    this.end();
    this.#timer = this.#environment.setTimer(() => this.#controller.abort(), silenceMs, { background: true });
  }

  end(): void {
    this.#timer?.cancel();
  }
}

async function refusalOf(answer: Response): Promise<LiveQueryError> {
  let error: Partial<WireFailure> | undefined;
  try {
    ({ error } = (await answer.json()) as { readonly error?: Partial<WireFailure> });
  } catch {
    // An answer of something in between.
  }
  const message = error?.message ?? `The server has answered a live query with the status ${answer.status}.`;
  return new LiveQueryError(error?.code ?? 'LIVE_CONNECTION', message, answer.status);
}

/** Refuses an answer that is no stream, such as a page of the application for paths that it does not know. Throws `LiveQueryError`. */
function requireEvents({ headers, status }: Response, hasData: boolean): void {
  const type = headers.get('content-type') ?? 'text/event-stream';
  if (type.startsWith('text/event-stream')) return;
  const message = `A live query was answered with ${type}, and not with a stream of events: look whether liveHandler() is mounted at this URL.`;
  // Whoever has got data knows that the URL is right: something in between has answered.
  throw new LiveQueryError('LIVE_CONNECTION', message, hasData ? undefined : status);
}

export class RemoteFeed<T> implements Feed<T> {
  readonly #options: RemoteFeedOptions;
  /** The last event; empty: the next request gets the whole result. */
  #lastId: string;

  constructor(options: RemoteFeedOptions, lastId = '') {
    this.#options = options;
    this.#lastId = lastId;
  }

  /** The event that the data of the store is from. */
  get lastId(): string {
    return this.#lastId;
  }

  async follow(sink: Sink<T>, signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (await this.#attempt(sink, signal)) failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (!mayMend(error)) throw error;
        failures++;
        sink.reconnecting(isError(error) ? error : new LiveQueryError('LIVE_CONNECTION', messageOf(error)));
      }
      const { environment } = this.#options;
      const mostMs = Math.min(mostPauseMs, leastPauseMs * 2 ** failures);
      // Clients that lost a server together come back one after the other.
      await sleep(environment, Math.ceil(mostMs * (0.5 + environment.random() / 2)), signal).catch(() => undefined);
    }
  }

  /** Follows one connection to its end. Resolves to whether anything came. */
  async #attempt(sink: Sink<T>, outer: AbortSignal): Promise<boolean> {
    const { environment, url, fetch, headers } = this.#options;
    const watchdog = new Watchdog(environment);
    const signal = anySignal(outer, watchdog.signal);
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      const given = typeof headers === 'function' ? await headers() : headers;
      const resumed = this.#lastId === '' || sink.snapshot.data === undefined ? {} : { 'last-event-id': this.#lastId };
      const init = {
        headers: { accept: 'text/event-stream', ...given, ...resumed },
        cache: 'no-store',
        signal,
      } as const;
      const answer = await fetch(url, init);
      if (!answer.ok || answer.body === null) throw await refusalOf(answer);
      requireEvents(answer, sink.snapshot.data !== undefined);
      reader = (answer.body as ReadableStream<Uint8Array>).getReader();
      return await this.#read(reader, sink, signal, watchdog);
    } catch (error) {
      if (!watchdog.signal.aborted) throw error;
      throw new LiveQueryError('LIVE_CONNECTION', `Nothing has come for ${silenceMs / 1000} s.`, undefined, {
        cause: error,
      });
    } finally {
      watchdog.end();
      reader?.cancel().catch(() => undefined);
    }
  }

  async #read(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    sink: Sink<T>,
    signal: AbortSignal,
    watchdog: Watchdog,
  ): Promise<boolean> {
    const events = new EventReader();
    let hasCome = false;
    const onAbort = (): void => void reader.cancel().catch(() => undefined);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        const { value, done } = await reader.read();
        signal.throwIfAborted();
        if (done) return hasCome;
        watchdog.fed();
        for (const event of events.take(value)) {
          this.#apply(event, sink);
          hasCome = true;
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #apply({ name, id, data }: StreamEvent, sink: Sink<T>): void {
    const message: unknown = JSON.parse(data);
    if (name === 'failure') {
      const { code, message: text } = message as WireFailure;
      throw new LiveQueryError(code, text);
    }
    const { position } = message as WireCurrent;
    const shown = sink.snapshot.data;
    if (name === 'result') sink.show(dataOf(message as WireResult) as T, position);
    else if (name === 'change') sink.show(this.#changed(shown, message as WireChange) as T, position);
    else if (name === 'current' && shown !== undefined) sink.show(shown, position);
    // A later version of the server may send other events.
    else return;
    this.#lastId = id;
  }

  #changed(before: unknown, { kept, rows, types }: WireChange): readonly WireRow[] {
    const shown = Array.isArray(before) ? (before as readonly WireRow[]) : [];
    const old = kept.flatMap(([from, count]) => shown.slice(from, from + count));
    if (old.length !== kept.reduce((sum, [, count]) => sum + count, 0)) {
      // The next attempt gets the whole result.
      this.#lastId = '';
      throw new LiveQueryError('LIVE_CONNECTION', 'The server has sent a change of another result.');
    }
    const next: WireRow[] = [];
    let taken = 0;
    for (const [place, row] of rows) {
      while (next.length < place && taken < old.length) next.push(old[taken++] as WireRow);
      next.push(decodeRow(row, types));
    }
    return [...next, ...old.slice(taken)];
  }
}

/** Returns the data of a whole result. */
export function dataOf({ rows, value, types }: WireResult): unknown {
  if (rows !== undefined) return rows.map((row) => decodeRow(row, types));
  const isObject = typeof value === 'object' && value !== null;
  return isObject ? decodeRow(value as WireRow, types) : decodeRow({ value }, types)['value'];
}
