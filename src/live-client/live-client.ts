/** The client of `liveHandler()`: a store for each query, and the data that a server has rendered a page with. */
import { messageOf } from '../base/brands.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import type { Environment } from '../base/env.ts';
import { kinds, OptionTable } from '../base/options.ts';
import { queryPath } from '../live-wire/messages.ts';
import type { WireResult } from '../live-wire/messages.ts';
import { encodeRow, joinedTypes } from '../live-wire/wire-values.ts';
import { LiveQueryError } from './live-query-error.ts';
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

/** Returns parameters as JSON that is the same for the same parameters. Throws `InvalidOptionError`. */
function textOf(name: string, params: LiveParams | undefined): string | undefined {
  if (params === undefined) return undefined;
  if (typeof params !== 'object' || params === null || Array.isArray(params)) {
    const given = describeValue(params);
    throw new InvalidOptionError(
      'params',
      `The parameters of live query ${name} are ${given}; they must be an object, such as { list: 1 }.`,
    );
  }
  const sorted = (_: string, value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  };
  try {
    return JSON.stringify(params, sorted);
  } catch (error) {
    const message = `The parameters of live query ${name} are not JSON: ${messageOf(error)}. Pass texts and numbers.`;
    throw new InvalidOptionError('params', message);
  }
}

/** How long React may take to render after a component has waited. */
const keepReadyMs = 1000;

/** Requests by the `fetch` of the runtime. A path is one of the page; outside of pages there is nothing that would make it a URL. */
const fetchHere: LiveFetch = async (url, init) => {
  if (!/^[a-z][a-z\d+.-]*:/i.test(url) && !('location' in globalThis)) {
    throw new LiveQueryError(
      'LIVE_URL',
      `liveClient() was given the path ${url.slice(0, 60)}, and there is no page here that it is a path of. On a server, pass the whole URL and the fetch of the handler.`,
    );
  }
  return globalThis.fetch(url, init);
};

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

  /**
   * Returns the store of a query: the same one for the same name and parameters, so that it may be called at each rendering. Throws
   * `InvalidOptionError`, for instance for parameters that JSON cannot say.
   */
  query<N extends keyof Api & string>(name: N, params?: LiveParams): LiveQueryStore<Api[N]> {
    if (typeof name !== 'string' || name === '') {
      throw new InvalidOptionError('name', `query() takes the name of a live query; it is ${describeValue(name)}.`);
    }
    const path = queryPath(name, textOf(name, params));
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
    const { headers, fetch = fetchHere, keepMs = 5000 } = this.#options;
    const environment = this.#environment;
    const hydrated = this.#hydrated.get(path);
    const feed = new RemoteFeed({ environment, url: `${this.#url}${path}`, fetch, headers }, hydrated?.id);
    const initial = hydrated && initialOf(hydrated);
    const onUse = (isUsed: boolean): void => {
      // What nobody uses any more is forgotten, unless a page may still be hydrated with it.
      if (isUsed) this.#opened.set(path, opened);
      else if (hydrated === undefined && this.#opened.get(path) === opened) this.#opened.delete(path);
    };
    const opened: Opened = {
      feed,
      store: new FedStore<unknown>({ environment, feed, keepMs, keepReadyMs, initial, onUse }),
    };
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
