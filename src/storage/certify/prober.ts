/**
 * The requests of the checks of a store: under keys that nobody else uses, and repeated if they fail.
 *
 * Requests fail on safe stores too, and may take effect late, so a failure proves nothing. Proof is a response or a state that no
 * order of the requests explains on a store that keeps the rules:
 * - a put is reported as written although its condition cannot have held;
 * - a read returns the bytes of such a put, or an older version than the one acknowledged before the read began.
 *
 * So every put has different bytes. They are random, so that damage in transit never turns one into another.
 */
import { isError } from '../../base/brands.ts';
import { encodeUtf8, toHex } from '../../base/bytes.ts';
import { Deadline, ownSignal, untilAborted } from '../../base/abort.ts';
import { defined } from '../../base/options.ts';
import { sleep, pauseMs } from '../../base/env.ts';
import type { Environment, Backoff } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { probePrefix } from '../../format/object-names.ts';
import type { Certification, CheckName, LatencyFigures, PermissionStatus } from './certification.ts';
import type { FoundObject, GetOptions, ListPage, PutCondition, PutResult, StorageDriver } from '../contract/driver.ts';

/** A rule was certainly broken. */
export class Violation extends Error {
  readonly check: CheckName;
  constructor(check: CheckName, message: string) {
    super(message);
    this.check = check;
  }
}

/** A check has no result, because requests were forbidden, timed out or failed too often. */
export class Inconclusive extends Error {}

/** The bytes of one put. */
export interface Probe {
  readonly bytes: Uint8Array;
  /** For bytes that must never be read: the rule that reading them proves broken, and the finding. */
  readonly intruder?: { readonly check: CheckName; readonly finding: string };
}

/** An object that was read, with the bytes of a probe. */
export interface FoundProbe {
  readonly status: 'found';
  readonly probe: Probe;
  readonly etag: string;
  readonly lastModifiedMs: number;
}

export type ReadProbe = FoundProbe | { readonly status: 'missing' } | { readonly status: 'unchanged' };

/** Never `any`: a store may be configured to refuse unconditional puts, because StoreDb makes only conditional ones. */
export type ProbeCondition = Exclude<PutCondition, 'any'>;

/** How a put is sent. */
export interface PutManner {
  /** As a stream of two chunks. */
  readonly streamed?: boolean;
  /** At the same time as others, so its duration does not count as a latency. */
  readonly raced?: boolean;
}

type Permission = keyof Certification['permissions'];
type LatencyKind = keyof Certification['latency'];

export interface ProberOptions {
  readonly driver: StorageDriver;
  readonly environment: Environment;
  readonly prefix: string;
  /** Ends all checks. */
  readonly signal: AbortSignal;
}

/** Size of every probe in bytes. */
export const probeBytes = 96;
const maxAttempts = 6;
/** Probes are tiny: a response that takes longer will not come, or comes during the next attempt. */
const requestTimeoutMs = 5000;
const cleanUpTimeoutMs = 5000;
const betweenAttempts: Backoff = { firstMs: 100, maxMs: 2000, jitter: 'around' };
/** Damage in transit is never the same this often in a row. */
const timesNotByChance = 3;

/** Sends the requests of all checks, and keeps their probes, latencies and permissions. */
export class Prober {
  readonly environment: Environment;
  readonly permissions: Record<Permission, PermissionStatus> = {
    read: 'unknown',
    write: 'unknown',
    list: 'unknown',
    delete: 'unknown',
  };
  /** Requests so far. */
  requests = 0;
  readonly #driver: StorageDriver;
  readonly #signal: AbortSignal;
  readonly #folder: string;
  readonly #probes = new Map<string, Probe>();
  /** Keys that may exist. */
  readonly #keys = new Set<string>();
  /** Keys with a put of unknown outcome: it may take effect after they were deleted. */
  readonly #doubtful = new Set<string>();
  readonly #latenciesMs: Record<LatencyKind, number[]> = { read: [], create: [], replace: [] };

  constructor({ driver, environment, prefix, signal }: ProberOptions) {
    this.environment = environment;
    this.#driver = driver;
    this.#signal = ownSignal(signal);
    this.#folder = `${prefix}/${probePrefix}${newId(environment, 12)}/`;
  }

  /** Returns a key that only this run uses. */
  key(name: string): string {
    return this.#folder + name;
  }

  /** Makes the bytes for one put. `check` and `finding` are for a put that must be refused. */
  probe(check?: CheckName, finding = ''): Probe {
    const text = `store-db tries out this store; it may be deleted ${newId(this.environment, 16)}`;
    const bytes = encodeUtf8(text.padEnd(probeBytes, '.'));
    const probe: Probe = check === undefined ? { bytes } : { bytes, intruder: { check, finding } };
    this.#probes.set(toHex(bytes), probe);
    return probe;
  }

  /** Returns the latency of requests of a kind. */
  latency(kind: LatencyKind): LatencyFigures | undefined {
    const sorted = this.#latenciesMs[kind].toSorted((a, b) => a - b);
    const [medianMs, maxMs] = [sorted[sorted.length >>> 1], sorted.at(-1)];
    return medianMs === undefined || maxMs === undefined ? undefined : { medianMs, maxMs };
  }

  /** Waits, longer with every attempt, and at least `minMs`. */
  async pause(attempt: number, minMs = 0): Promise<void> {
    const delayMs = minMs + pauseMs(betweenAttempts, attempt, this.environment.random());
    try {
      await sleep(this.environment, delayMs, this.#signal);
    } catch {
      this.#checkTime();
    }
  }

  /** Repeats a step until it returns a result. Failures are retried a bounded number of times. */
  async repeat<T>(what: string, step: (attempt: number) => Promise<T | undefined>): Promise<T> {
    let failure: unknown;
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      if (attempt > 1) await this.pause(attempt - 1);
      try {
        const result = await step(attempt);
        if (result !== undefined) return result;
      } catch (error) {
        if (error instanceof Violation || error instanceof Inconclusive) throw error;
        failure = error;
      }
    }
    const why = isError(failure) ? `: ${failure.message}` : '.';
    throw new Inconclusive(`${what} did not work in ${maxAttempts} attempts${why}`, { cause: failure });
  }

  /** Sends one put. */
  async put(key: string, probe: Probe, condition: ProbeCondition, manner: PutManner = {}): Promise<PutResult> {
    this.#keys.add(key);
    const body = manner.streamed === true ? inTwoChunks(probe.bytes) : probe.bytes;
    const isTimed = manner.raced !== true && manner.streamed !== true;
    const kind = condition === 'absent' ? 'create' : 'replace';
    try {
      return await this.#send('write', isTimed ? kind : undefined, (signal) =>
        this.#driver.put(key, body, { if: condition, signal }),
      );
    } catch (error) {
      this.#doubtful.add(key);
      throw error;
    }
  }

  /** Puts a probe under a condition that holds. Returns the ETag. */
  async write(key: string, probe: Probe, condition: ProbeCondition, manner?: PutManner): Promise<string> {
    let refusals = 0;
    return this.repeat(`Writing ${key}`, async (attempt) => {
      if (attempt > 1) {
        // An earlier attempt without a response, or reported as lost, may have been carried out.
        const stored = await this.read(key);
        if (stored.status === 'found' && stored.probe === probe) return stored.etag;
      }
      const result = await this.put(key, probe, condition, manner);
      if (result.status === 'written') return result.etag;
      if (++refusals < maxAttempts) return undefined;
      throw new Violation(
        'condition that holds',
        `A put was refused ${refusals} times although its condition held (${describeCondition(condition)}).`,
      );
    });
  }

  /** Puts a probe under a condition that does not hold: if it is written, that is the violation of the intruder. */
  async refused(key: string, intruder: Probe, condition: ProbeCondition, manner?: PutManner): Promise<void> {
    await this.repeat(`Writing ${key}`, async () => {
      const result = await this.put(key, intruder, condition, manner);
      if (result.status === 'written') throw violationOf(intruder);
      return true;
    });
  }

  /** Reads an object and finds the probe with its bytes. */
  async read(key: string, options: GetOptions = {}): Promise<ReadProbe> {
    const strange = new StrangeBytes('reads', 'A read gave bytes that nobody had written.');
    return this.repeat(`Reading ${key}`, async () => {
      const result = await this.#get(key, options);
      if (result.status !== 'found') return result;
      const probe = this.#probes.get(toHex(result.bytes));
      if (probe === undefined) return strange.seen(result);
      const { etag, lastModifiedMs } = result;
      return { status: 'found', probe, etag, lastModifiedMs };
    });
  }

  /** Reads a range of an existing object until `accepts` returns true. */
  async readRange(
    key: string,
    range: { readonly start: number; readonly end: number },
    accepts: (found: FoundObject) => boolean,
  ): Promise<void> {
    const strange = new StrangeBytes('ranges', 'A range read of an object returned other bytes than the range has.');
    await this.repeat(`Reading ${key}`, async () => {
      const result = await this.#get(key, { range });
      if (result.status !== 'found') throw new Violation('reads', notFound);
      return accepts(result) ? true : strange.seen(result);
    });
  }

  #get(key: string, options: GetOptions): ReturnType<StorageDriver['get']> {
    return this.#send('read', 'read', (signal) => this.#driver.get(key, { ...options, signal }));
  }

  /** Reads an object that must be there, with exactly these bytes and this ETag. */
  async holds(key: string, probe: Probe, etag: string): Promise<FoundProbe> {
    return expectFound(await this.read(key), probe, etag);
  }

  async list(prefix: string, limit: number, after: string | undefined): Promise<ListPage> {
    return this.repeat(`Listing ${prefix}`, () =>
      this.#send('list', undefined, (signal) => this.#driver.list(prefix, { limit, signal, ...defined({ after }) })),
    );
  }

  /** Deletes all probes. Returns the keys that are certainly gone, and the message of a failure. */
  async deleteAll(): Promise<{ readonly gone: ReadonlySet<string>; readonly failure: string | undefined }> {
    const gone = new Set<string>();
    let failure: string | undefined;
    await this.repeat('Deleting the probes', async (attempt) => {
      const keys = [...this.#keys].filter((key) => !gone.has(key));
      const { failed } = await this.#send('delete', undefined, (signal) => this.#driver.delete(keys, { signal }));
      const left = new Set(failed.map(({ key }) => key));
      for (const key of keys) if (!left.has(key)) gone.add(key);
      failure = failed[0]?.message;
      // Some stores respond with success, and deny every key in the response.
      const isDenied = left.size === keys.length && /denied|forbidden/i.test(failure ?? '');
      if (isDenied) this.permissions.delete = 'forbidden';
      return left.size === 0 || isDenied || attempt >= maxAttempts ? true : undefined;
    });
    for (const key of this.#doubtful) gone.delete(key);
    for (const key of gone) this.#keys.delete(key);
    return { gone, failure };
  }

  /** Deletes the remaining probes, as far as the store allows it; also when the time is up. */
  async cleanUp(): Promise<void> {
    if (this.#keys.size === 0 || this.permissions.delete === 'forbidden') return;
    const deadline = new Deadline(this.environment, 'Cleaning up', cleanUpTimeoutMs);
    this.requests++;
    try {
      await untilAborted(this.#driver.delete([...this.#keys], { signal: deadline.signal }), deadline.signal);
    } catch {
      // Probes are small, and opening a database ignores them.
    } finally {
      deadline.clear();
    }
  }

  #checkTime(): void {
    if (!this.#signal.aborted) return;
    const reason = this.#signal.reason as Error;
    throw new Inconclusive(reason.message, { cause: reason });
  }

  /** Sends one request under a deadline, and does not wait for a driver that ignores the signal. */
  async #send<T>(
    permission: Permission,
    timed: LatencyKind | undefined,
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    this.#checkTime();
    const deadline = new Deadline(this.environment, 'A request', requestTimeoutMs, this.#signal);
    const startedMs = this.environment.monotonicMs();
    this.requests++;
    try {
      const result = await untilAborted(request(deadline.signal), deadline.signal);
      if (timed !== undefined) this.#latenciesMs[timed].push(this.environment.monotonicMs() - startedMs);
      this.requests += ((result as { readonly requests?: number }).requests ?? 1) - 1;
      this.permissions[permission] = 'ok';
      return result;
    } catch (error) {
      this.#checkTime();
      if (!(error instanceof StorageError) || error.reason !== 'forbidden') throw error;
      // A kind of request that was allowed once stays allowed: this refusal has another reason, such as a missing key.
      if (this.permissions[permission] === 'unknown') this.permissions[permission] = 'forbidden';
      throw new Inconclusive(error.message, { cause: error });
    } finally {
      deadline.clear();
    }
  }
}

const notFound = 'A read of an object that had been written found nothing.';

/** Checks the object read against the last write. */
export function expectFound(stored: ReadProbe, probe: Probe, etag: string): FoundProbe {
  if (stored.status === 'missing') throw new Violation('reads', notFound);
  if (stored.status === 'unchanged') {
    throw new Violation('reads', 'A conditional read called an object unchanged that had been replaced.');
  }
  if (stored.probe.intruder !== undefined) throw violationOf(stored.probe);
  if (stored.probe !== probe) {
    throw new Violation('reads', 'A read showed an older version of an object than the one written last.');
  }
  if (stored.etag === etag) return stored;
  throw new Violation('ETags', 'A read answered with another ETag than the put of that very version.');
}

function violationOf({ intruder }: Probe): Violation {
  return new Violation(intruder?.check ?? 'reads', intruder?.finding ?? 'A put was made that had to be refused.');
}

function describeCondition(condition: ProbeCondition): string {
  return condition === 'absent' ? 'there was no object' : 'the ETag was that of the object';
}

async function* inTwoChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  const middle = bytes.length >>> 1;
  yield await Promise.resolve(bytes.subarray(0, middle));
  yield bytes.subarray(middle);
}

/** Distinguishes damage in transit, which differs every time, from a store that returns the same wrong bytes repeatedly. */
class StrangeBytes {
  readonly #check: CheckName;
  readonly #finding: string;
  #last = '';
  #times = 0;

  constructor(check: CheckName, finding: string) {
    this.#check = check;
    this.#finding = finding;
  }

  /** Notes wrong bytes, and throws if they were the same several times. Returns undefined, so that the read is repeated. */
  seen({ bytes }: FoundObject): undefined {
    const text = toHex(bytes);
    this.#times = text === this.#last ? this.#times + 1 : 1;
    this.#last = text;
    if (this.#times >= timesNotByChance) throw new Violation(this.#check, this.#finding);
    return undefined;
  }
}
