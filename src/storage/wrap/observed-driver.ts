/** A driver around another one that counts requests and bytes, for tests, statistics and metrics hooks. */
import { isBytes, isThenable } from '../../base/brands.ts';
import { realEnvironment } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import type { Logger } from '../../base/logger.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import { WrappedDriver } from './wrapped-driver.ts';

/** The number of requests of each kind, and the bytes that they moved. */
export interface RequestCounts {
  /** Reads that returned bytes. */
  get: number;
  /** Reads with the result `unchanged`. */
  getUnchanged: number;
  /** Reads of a key that does not exist. */
  getMissing: number;
  /** Writes that were made. */
  put: number;
  /** Writes whose condition did not hold. */
  putLost: number;
  /** Delete requests, for any number of keys each. */
  delete: number;
  /** Keys named by delete requests. */
  deletedKeys: number;
  /** Copies that were made within the store. */
  copy: number;
  /** List requests: pages. */
  list: number;
  /** URLs that were made. */
  presign: number;
  /** Failed requests of any kind. The counts above do not include them. */
  errors: number;
  /** Failed reads. */
  getErrors: number;
  /** Failed writes. */
  putErrors: number;
  /** Copies that failed or were refused. */
  copyErrors: number;
  /** Failed delete requests. */
  deleteErrors: number;
  /** Failed list requests. */
  listErrors: number;
  /** Requests of reads beyond one each, as the driver reports them: further attempts. */
  extraGets: number;
  /** Requests of lists beyond one each, as the driver reports them. */
  extraLists: number;
  /** Requests of writes beyond one each, as the driver reports them: parts of an upload, further attempts. */
  extraPuts: number;
  /** Requests of copies beyond one each, as the driver reports them: parts, further attempts. */
  extraCopies: number;
  /** Requests of deletions beyond one each, as the driver reports them. */
  extraDeletes: number;
  /** Bytes of content that were read. */
  bytesRead: number;
  /** Bytes of content that were written. */
  bytesWritten: number;
}

/** A finished request, as a hook receives it. */
export interface ObservedRequest {
  /** The call. */
  readonly kind: 'get' | 'put' | 'copy' | 'delete' | 'list' | 'presign';
  /** The key; for `list` the prefix, for `delete` the first key, for `copy` the key of the copy. */
  readonly key: string;
  /** The outcome. */
  readonly status: 'found' | 'missing' | 'unchanged' | 'written' | 'lost' | 'refused' | 'done' | 'error';
  /** Bytes of content read or written; 0 for everything else. */
  readonly bytes: number;
  /** Duration in milliseconds. */
  readonly durationMs: number;
  /** The error of a request that was rejected. */
  readonly error?: unknown;
}

/** Options of `ObservedDriver`. */
export interface ObservedDriverOptions {
  /** Clock for durations. Default: the runtime's own. */
  readonly environment?: Environment;
  /** Called after every request. It should not throw: an error that it throws rejects the request. */
  readonly onRequest?: (request: ObservedRequest) => void;
}

const driverOptions = new OptionTable<ObservedDriverOptions>({
  environment: kinds.environment,
  onRequest: kinds.callback,
});

type Outcome = Pick<ObservedRequest, 'status' | 'bytes'>;

function zero(): RequestCounts {
  return {
    get: 0,
    getUnchanged: 0,
    getMissing: 0,
    put: 0,
    putLost: 0,
    delete: 0,
    deletedKeys: 0,
    copy: 0,
    list: 0,
    presign: 0,
    errors: 0,
    getErrors: 0,
    putErrors: 0,
    copyErrors: 0,
    deleteErrors: 0,
    listErrors: 0,
    extraGets: 0,
    extraLists: 0,
    extraPuts: 0,
    extraCopies: 0,
    extraDeletes: 0,
    bytesRead: 0,
    bytesWritten: 0,
  };
}

/** Passes every request on to `inner` and counts it. */
export class ObservedDriver extends WrappedDriver implements StorageDriver {
  readonly #inner: StorageDriver;
  readonly #environment: Environment;
  readonly #onRequest: ((request: ObservedRequest) => void) | undefined;
  #counts = zero();

  /** Wraps `inner`. Throws `InvalidOptionError`. */
  constructor(inner: StorageDriver, options: ObservedDriverOptions = {}) {
    const { environment = realEnvironment, onRequest } = driverOptions.check('new ObservedDriver()', options);
    super(inner);
    this.#inner = inner;
    this.#environment = environment;
    this.#onRequest = onRequest;
    const { presign } = this;
    if (presign !== undefined) {
      this.presign = (key, presignOptions) =>
        this.#observe(
          'presign',
          key,
          () => presign(key, presignOptions),
          () => {
            this.#counts.presign++;
            return { status: 'done', bytes: 0 };
          },
        );
    }
    const { copy } = this;
    if (copy !== undefined) {
      this.copy = (from, to, copyOptions) =>
        this.#observe(
          'copy',
          to,
          () => copy(from, to, copyOptions),
          ({ status, requests = 1 }) => {
            this.#counts.extraCopies += requests - 1;
            this.#counts[status === 'copied' ? 'copy' : 'copyErrors']++;
            return { status: status === 'copied' ? 'done' : 'refused', bytes: 0 };
          },
        );
    }
  }

  /** Returns a copy of the counts since construction or the last {@link reset}. */
  snapshot(): Readonly<RequestCounts> {
    return { ...this.#counts };
  }

  /** Sets every count to zero. */
  reset(): void {
    this.#counts = zero();
  }

  override get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#observe(
      'get',
      key,
      () => this.#inner.get(key, options),
      (result) => {
        this.#counts.extraGets += (result.requests ?? 1) - 1;
        if (result.status === 'found') this.#counts.get++;
        else if (result.status === 'missing') this.#counts.getMissing++;
        else this.#counts.getUnchanged++;
        const bytes = result.status === 'found' ? result.bytes.length : 0;
        this.#counts.bytesRead += bytes;
        return { status: result.status, bytes };
      },
    );
  }

  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    let streamed = 0;
    async function* countChunks(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of stream) {
        streamed += chunk.length;
        yield chunk;
      }
    }
    const counted = isBytes(body) ? body : countChunks(body);
    return this.#observe(
      'put',
      key,
      () => this.#inner.put(key, counted, options),
      (result) => {
        this.#counts.extraPuts += (result.requests ?? 1) - 1;
        if (result.status === 'lost') {
          this.#counts.putLost++;
          return { status: 'lost', bytes: 0 };
        }
        const bytes = isBytes(body) ? body.length : streamed;
        this.#counts.put++;
        this.#counts.bytesWritten += bytes;
        return { status: 'written', bytes };
      },
    );
  }

  override delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return this.#observe(
      'delete',
      keys[0] ?? '',
      () => this.#inner.delete(keys, options),
      (result) => {
        this.#counts.extraDeletes += (result.requests ?? 1) - 1;
        this.#counts.delete++;
        this.#counts.deletedKeys += keys.length;
        return { status: 'done', bytes: 0 };
      },
    );
  }

  override list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#observe(
      'list',
      prefix,
      () => this.#inner.list(prefix, options),
      ({ requests = 1 }) => {
        this.#counts.extraLists += requests - 1;
        this.#counts.list++;
        return { status: 'done', bytes: 0 };
      },
    );
  }

  async #observe<T>(
    kind: ObservedRequest['kind'],
    key: string,
    request: () => Promise<T>,
    count: (result: T) => Outcome,
  ): Promise<T> {
    const startedMs = this.#environment.monotonicMs();
    let result: T;
    try {
      result = await request();
    } catch (error) {
      this.#counts.errors++;
      if (kind !== 'presign') this.#counts[`${kind}Errors`]++;
      const durationMs = this.#environment.monotonicMs() - startedMs;
      this.#onRequest?.({ kind, key, status: 'error', bytes: 0, durationMs, error });
      throw error;
    }
    const outcome = count(result);
    this.#onRequest?.({ kind, key, ...outcome, durationMs: this.#environment.monotonicMs() - startedMs });
    return result;
  }
}

/** A hook of the user, called after every request. */
export type RequestHook = (request: ObservedRequest) => unknown;

/** Wraps a hook so that it never fails, and cannot change the result of a request. Its first error or rejection is logged. */
export function harmlessHook(hook: RequestHook, logger: Logger): (request: ObservedRequest) => void {
  let warned = false;
  const warn = (error: unknown): void => {
    if (warned) return;
    warned = true;
    logger.warn('The onRequest hook failed. Requests go on; further failures are not logged.', { error });
  };
  return (request) => {
    try {
      const result = hook(request);
      if (isThenable(result)) result.then(undefined, warn);
    } catch (error) {
      warn(error);
    }
  };
}
