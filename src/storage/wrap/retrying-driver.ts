/**
 * Repeats what may be repeated. Reads, lists, copies and deletions have no effect the second time, so a failure is tried again
 * after a pause that grows and is jittered. Conditional puts pass through untouched, and once: repeating one here would
 * turn its own success into a lost race, so those who make them decide (docs/protocol.md). Only where the store was away and a
 * put certainly had no effect, it is made again, until the store is back.
 */
import { setMaxListeners } from 'node:events';
import { isBytes } from '../../base/brands.ts';
import type { Environment, Timer } from '../../base/env.ts';
import { Deadline, SignalPool, newAbortController, ownSignal, untilAborted } from '../../base/abort.ts';
import { StorageError } from '../../base/errors.ts';
import { Patience } from '../contract/put-repeatedly.ts';
import type { OwnWrites } from '../contract/put-repeatedly.ts';
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
  /** How often a request is tried in all. Default 4. */
  readonly attempts?: number;
  /** Time for one attempt in milliseconds. Default 15,000. */
  readonly requestTimeoutMs?: number;
  /** First pause in milliseconds; it doubles with every attempt, up to a second. Default 50. */
  readonly pauseMs?: number;
  /**
   * How long a store that has answered before may be away, in milliseconds: for so long requests are repeated, however many
   * attempts that takes. Default 10,000.
   */
  readonly patienceMs?: number;
  /** Notes every object that is about to be written, and again once it was. */
  readonly writes?: OwnWrites;
}

/** A body may take a millisecond more for every so many bytes: 0.5 MB a second. */
const slowBytesPerMs = 500;
/** How long a driver may take to end an upload that is given up, in milliseconds. */
const clearingUpMs = 5000;

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
    // A stream takes as long as its source does; a large body, as long as a slow line needs.
    if (!isBytes(body)) return this.#putStream(key, body, options);
    const timeoutMs = this.#requestTimeoutMs + body.length / slowBytesPerMs;
    const send = (signal: AbortSignal): Promise<PutResult> => this.#driver.put(key, body, { ...options, signal });
    const hadNoEffect = ({ outcome }: StorageError): boolean => outcome === 'none';
    return this.#untilDone(() => this.#once(`put ${key}`, options, send, timeoutMs), options, hadNoEffect, 1);
  }

  /** A driver that is told to give up may remove what it has sent, and is not waited for if that takes long. */
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

  /** One attempt under a deadline; a driver that ignores the signal is not waited for. */
  async #once<T>(
    what: string,
    options: RequestOptions,
    request: (signal: AbortSignal) => Promise<T>,
    timeoutMs: number = this.#requestTimeoutMs,
  ): Promise<T> {
    const deadline = new Deadline(this.#environment, what, timeoutMs, options.signal, this.#signals);
    // Drivers may send many requests for one, and each listens: no leak that anyone need be warned of.
    setMaxListeners(0, deadline.signal);
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

  /** Sends a request until it succeeds, or fails as it may not be sent again, or for so many times and for longer than a store may be away. */
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
