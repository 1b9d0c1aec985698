/**
 * Retries requests that are safe to repeat. Reads, lists, copies and deletions are idempotent, so a failed one is retried after a
 * pause that grows and is jittered. A conditional put is passed on once: a retry here would turn its own success into a lost
 * race, so its caller decides (docs/protocol.md). A put is only retried if the store was unavailable and the put certainly had no
 * effect, until the store is back.
 */
import { allowListeners } from '#platform';
import { isBytes } from '../../base/brands.ts';
import type { Environment, Timer } from '../../base/env.ts';
import { Deadline, SignalPool, newAbortController, ownSignal, untilAborted } from '../../base/abort.ts';
import { StorageError } from '../../base/errors.ts';
import { Patience } from '../contract/retries.ts';
import type { OwnWrites } from '../contract/own-writes.ts';
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

export interface RetryOptions {
  /** Attempts per request, the first included. Default 4. */
  readonly attempts?: number;
  /** Time limit of one attempt in milliseconds. Default 15,000. */
  readonly requestTimeoutMs?: number;
  /** First pause in milliseconds; it doubles with every attempt, up to a second. Default 50. */
  readonly pauseMs?: number;
  /**
   * How long requests are retried while a store that has answered before is unavailable, in milliseconds, however many attempts
   * that takes. Default 10,000.
   */
  readonly patienceMs?: number;
  /** Notes the key of every object before it is written, and again after it was written. */
  readonly writes?: OwnWrites;
}

/** The time limit grows by a millisecond per this many bytes of a body: 0.5 MB per second. */
const slowBytesPerMs = 500;
/** How long a driver may take to end an aborted upload, in milliseconds. */
const clearingUpMs = 5000;

/** Adds deadlines and retries to the requests of another driver. */
export class RetryingDriver extends WrappedDriver implements StorageDriver {
  readonly #driver: StorageDriver;
  readonly #environment: Environment;
  readonly #attempts: number;
  readonly #requestTimeoutMs: number;
  readonly #pauseMs: number;
  readonly #writes: OwnWrites | undefined;
  readonly #signals = new SignalPool();
  readonly #patience: Patience;

  constructor(driver: StorageDriver, environment: Environment, options: RetryOptions = {}) {
    super(driver);
    this.#driver = driver;
    this.#environment = environment;
    this.#attempts = options.attempts ?? 4;
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 15_000;
    this.#pauseMs = options.pauseMs ?? 50;
    this.#writes = options.writes;
    this.#patience = new Patience(environment, options.patienceMs);
    const { copy } = this;
    if (copy !== undefined) {
      this.copy = (from, to, given = {}) => {
        const timeoutMs = this.#requestTimeoutMs + (given.sizeBytes ?? 0) / slowBytesPerMs;
        return this.#repeat(`copy ${from}`, given, (signal) => copy(from, to, { ...given, signal }), timeoutMs);
      };
    }
  }

  override get(key: string, options: GetOptions = {}): Promise<GetResult> {
    return this.#repeat(`get ${key}`, options, (signal) => this.#driver.get(key, { ...options, signal }));
  }

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    this.#writes?.note(key);
    const result = await this.#put(key, body, options);
    if (result.status === 'written') this.#writes?.note(key);
    return result;
  }

  async #put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    // A stream has no time limit, because its source sets the pace; the limit of a large body allows for a slow connection.
    if (!isBytes(body)) return this.#putStream(key, body, options);
    const timeoutMs = this.#requestTimeoutMs + body.length / slowBytesPerMs;
    const send = (signal: AbortSignal): Promise<PutResult> => this.#driver.put(key, body, { ...options, signal });
    const hadNoEffect = ({ outcome }: StorageError): boolean => outcome === 'none';
    return this.#untilDone(() => this.#once(`put ${key}`, options, send, timeoutMs), options, hadNoEffect, 1);
  }

  /** Puts a stream. After an abort the driver may remove the parts that it has sent; if that takes long, it is not waited for. */
  async #putStream(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const put = this.#driver.put(key, body, options);
    if (options.signal === undefined) return put;
    const signal = ownSignal(options.signal);
    const late = newAbortController();
    let timer: Timer | undefined;
    const onAbort = (): void => {
      timer = this.#environment.setTimer(() => late.abort(signal.reason), clearingUpMs);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await untilAborted(put, late.signal);
    } catch (error) {
      if (!late.signal.aborted || error !== late.signal.reason) throw error;
      throw new StorageError(key, 'unknown', `Uploading ${key} did not end when it was given up.`, { cause: error });
    } finally {
      timer?.cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  override delete(keys: readonly string[], options: RequestOptions = {}): Promise<DeleteResult> {
    return this.#repeat('delete', options, (signal) => this.#driver.delete(keys, { ...options, signal }));
  }

  override list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    return this.#repeat(`list ${prefix}`, options, (signal) => this.#driver.list(prefix, { ...options, signal }));
  }

  /** Makes one attempt under a deadline, and does not wait for a driver that ignores the signal. */
  async #once<T>(
    what: string,
    options: RequestOptions,
    request: (signal: AbortSignal) => Promise<T>,
    timeoutMs: number = this.#requestTimeoutMs,
  ): Promise<T> {
    const deadline = new Deadline(this.#environment, what, timeoutMs, options.signal, this.#signals);
    // A driver may send many requests for one call, and each adds a listener: that is not a leak, and needs no warning.
    allowListeners(deadline.signal);
    try {
      deadline.check();
      const result = await untilAborted(request(deadline.signal), deadline.signal);
      this.#patience.answered();
      return result;
    } catch (error) {
      if (!deadline.signal.aborted || error !== deadline.signal.reason) throw error;
      throw new StorageError(what, 'unknown', (error as Error).message, { cause: error });
    } finally {
      deadline.clear();
    }
  }

  #repeat<T>(
    what: string,
    options: RequestOptions,
    request: (signal: AbortSignal) => Promise<T>,
    timeoutMs?: number,
  ): Promise<T> {
    const mayPass = ({ reason }: StorageError): boolean => reason !== 'forbidden';
    return this.#untilDone(() => this.#once(what, options, request, timeoutMs), options, mayPass, this.#attempts);
  }

  /**
   * Sends a request until it succeeds, or fails with an error that must not be retried, or has failed in all `attempts` and the
   * store has been unavailable for too long.
   */
  async #untilDone<T>(
    send: () => Promise<T>,
    { signal }: RequestOptions,
    mayRepeat: (error: StorageError) => boolean,
    attempts: number,
  ): Promise<T> {
    const firstSentMs = this.#environment.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof StorageError) || !mayRepeat(error) || signal?.aborted === true) throw error;
        if (attempt >= attempts && !this.#patience.isLeft(error, firstSentMs)) throw error;
        if (!(await this.#patience.pause(this.#pauseMs, attempt, signal))) throw error;
      }
    }
  }
}
