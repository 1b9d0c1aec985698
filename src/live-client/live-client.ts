/** The client of `liveHandler()`: a store for each query, and the data that a server has rendered a page with. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import type { Environment } from '../base/env.ts';
import { kinds, OptionTable } from '../base/options.ts';
import { queryPath } from '../live-wire/messages.ts';
import type { WireResult } from '../live-wire/messages.ts';
import { encodeRow, joinedTypes } from '../live-wire/wire-values.ts';
import { FedStore } from './live-store.ts';
import type { LiveSnapshot, LiveQueryStore } from './live-store.ts';
import { dataOf, RemoteFeed } from './remote-feed.ts';
import type { LiveFetch, LiveHeaders } from './remote-feed.ts';

/** Parameters of a live query: what JSON can say. */
export type LiveParams = Readonly<Record<string, unknown>>;

/** Options of `liveClient()`. */
export interface LiveClientOptions {
  /** Headers of each request, or a function that returns them: `() => ({ authorization: token() })`. */
  readonly headers?: LiveHeaders;
  /** Makes the requests. Default: the `fetch` of the runtime. On a server, that of the handler: no request leaves the process. */
  readonly fetch?: LiveFetch;
  /** The text that `dehydrate()` has returned on the server that rendered the page. */
  readonly hydrate?: string;
  /** Milliseconds for which a query is watched after the last listener has left. Default 5000. */
  readonly keepMs?: number;
}

const clientOptions: OptionTable<LiveClientOptions> = new OptionTable({
  headers: {
    allowed: 'an object of headers, or a function that returns them',
    accepts: (value) => typeof value === 'function' || (typeof value === 'object' && value !== null),
  },
  fetch: kinds.callback,
  hydrate: kinds.text('the text that dehydrate() has returned', isHydration),
  keepMs: kinds.milliseconds(0),
});

/** The data of a query, as one process hands it to another. */
interface Dehydrated extends WireResult {
  readonly id: string;
}

function isHydration(text: string): boolean {
  try {
    return text.startsWith('{') && typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
}

/** Returns parameters as JSON that is the same for the same parameters. */
function textOf(params: LiveParams | undefined): string | undefined {
  const sorted = (_: string, value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  };
  return params === undefined ? undefined : JSON.stringify(params, sorted);
}

/** A store, and the feed that it has its data from. */
interface Opened {
  readonly store: FedStore<unknown>;
  readonly feed: RemoteFeed<unknown>;
}

/** The live queries of a server, as returned by `liveClient()`. `Api`: the data of each by its name. */
export class LiveQueryClient<Api = Record<string, unknown>> {
  readonly #environment: Environment;
  readonly #url: string;
  readonly #options: LiveClientOptions;
  readonly #opened = new Map<string, Opened>();
  readonly #hydrated: ReadonlyMap<string, Dehydrated>;

  /** @internal Use `liveClient()`. */
  constructor(environment: Environment, url: string, options: LiveClientOptions) {
    if (typeof url !== 'string' || url === '') {
      throw new InvalidOptionError(
        'url',
        `liveClient() takes the URL of a handler, such as /live; it is ${describeValue(url)}.`,
      );
    }
    this.#environment = environment;
    this.#url = url.endsWith('/') ? url : `${url}/`;
    this.#options = clientOptions.check('liveClient()', options);
    this.#hydrated = new Map(Object.entries(JSON.parse(options.hydrate ?? '{}') as Record<string, Dehydrated>));
  }

  /** Returns the store of a query: the same one for the same name and parameters, so that it may be called at each rendering. */
  query<N extends keyof Api & string>(name: N, params?: LiveParams): LiveQueryStore<Api[N]> {
    const path = queryPath(name, textOf(params));
    const { store } = this.#opened.get(path) ?? this.#open(path);
    return store as LiveQueryStore<unknown> as LiveQueryStore<Api[N]>;
  }

  /**
   * Returns the data of all queries as a text, for `hydrate` of the client in the page. It is JSON without `<`, so it may stand in a
   * script element of type `application/json`.
   */
  dehydrate(): string {
    const all: Record<string, Dehydrated> = {};
    for (const [path, { store, feed }] of this.#opened) {
      const { data, position } = store.getSnapshot();
      if (data !== undefined && position !== undefined) all[path] = { id: feed.lastId, position, ...wireOf(data) };
    }
    return JSON.stringify(all).replaceAll('<', String.raw`\u003c`);
  }

  /** Ends all connections. Stores keep the data that they have. */
  close(): void {
    for (const { store } of this.#opened.values()) store.close();
  }

  #open(path: string): Opened {
    const { headers, fetch = (url, init) => globalThis.fetch(url, init), keepMs = 5000 } = this.#options;
    const environment = this.#environment;
    const hydrated = this.#hydrated.get(path);
    const feed = new RemoteFeed({ environment, url: `${this.#url}${path}`, fetch, headers }, hydrated?.id);
    const initial = hydrated && initialOf(hydrated);
    const onUse = (isUsed: boolean): void => {
      // What nobody uses any more is forgotten, unless a page may still be hydrated with it.
      if (isUsed) this.#opened.set(path, opened);
      else if (hydrated === undefined && this.#opened.get(path) === opened) this.#opened.delete(path);
    };
    const opened: Opened = { feed, store: new FedStore<unknown>({ environment, feed, keepMs, initial, onUse }) };
    this.#opened.set(path, opened);
    return opened;
  }
}

function initialOf(hydrated: Dehydrated): LiveSnapshot<unknown> {
  return { status: 'live', data: dataOf(hydrated), position: hydrated.position, error: undefined };
}

function wireOf(data: unknown): Omit<WireResult, 'position'> {
  const parsed = ({ text }: { readonly text: string }): Record<string, unknown> =>
    JSON.parse(text) as Record<string, unknown>;
  if (Array.isArray(data)) {
    const rows = (data as readonly object[]).map(encodeRow);
    return { rows: rows.map(parsed), types: joinedTypes(rows) };
  }
  const isObject = typeof data === 'object' && data !== null;
  const encoded = encodeRow(isObject ? data : { value: data });
  return { value: isObject ? parsed(encoded) : parsed(encoded)['value'], types: encoded.types };
}
