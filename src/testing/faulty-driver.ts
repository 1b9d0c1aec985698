/**
 * A driver that fails as real stores and networks do, as often as its options say, and in the same way in every run with
 * the same seed. Put it between the database and any other driver:
 *
 *     const faulty = new FaultyDriver(new MemoryDriver(), { seed: 7, faults: { lostAnswer: 0.05, latencyMs: [1, 50] } });
 *     const db = StoreDb({ dbPrefix: 'test', nodeId: 0, driver: faulty });
 *     // ... run your application, then turn the faults off and check its results:
 *     faulty.faults = {};
 *
 * It never breaks the contract of drivers (docs/drivers.md): conditions hold, and an error says `none` only where the
 * request has no effect. The one exception is `falseLoss`, which is the behaviour of a client that repeats conditional puts
 * itself; the database handles it. An application must expect `CommitOutcomeUnknownError`: after a `lostAnswer` the outcome
 * cannot be known at once.
 */
import { isBytes } from '../base/brands.ts';
import { realEnvironment, sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { StorageError } from '../base/errors.ts';
import { kinds, OptionTable } from '../base/options.ts';
import { checkNotAborted } from '../storage/contract/requests.ts';
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
} from '../storage/contract/driver.ts';
import { WrappedDriver, optionalMembersBut } from '../storage/wrap/wrapped-driver.ts';
import { faultFor, faultOptions, noFaultCounts } from './faults.ts';
import type { FaultCounts, FaultKind, Faults, RequestKind } from './faults.ts';
import { SeededRandom, seedKind } from './seeded-random.ts';

/** Options of `FaultyDriver`. */
export interface FaultyDriverOptions {
  /** The seed of all random decisions. Default 1. */
  readonly seed?: number | string;
  /** Faults from the start; {@link FaultyDriver.faults} changes them later. Default: none. */
  readonly faults?: Faults;
  /** The environment whose timers make the delays. Default: the runtime's own timers. */
  readonly environment?: Environment;
}

const driverOptions = new OptionTable<FaultyDriverOptions>({
  seed: seedKind,
  faults: kinds.options(faultOptions),
  environment: kinds.environment,
});

interface Plan {
  readonly fault: FaultKind | undefined;
  readonly sendMs: number;
  readonly answerMs: number;
  readonly lateMs: number;
  readonly random: SeededRandom;
}

function unknownOutcome(key: string, message: string): StorageError {
  return new StorageError(key, 'unknown', message);
}

/** Returns the error of a fault that prevents any effect; undefined for other faults. */
function failureBefore(fault: FaultKind | undefined, key: string): StorageError | undefined {
  if (fault === 'refused') return new StorageError(key, 'none', 'Access was denied (403).');
  if (fault === 'throttled') return unknownOutcome(key, 'The store is busy (503): slow down.');
  if (fault === 'lookAgain') return unknownOutcome(key, 'Another write is under way (409): look again.');
  if (fault === 'failedList') return unknownOutcome(key, 'The listing broke off.');
  return undefined;
}

/** Passes requests on to another driver, with delays and faults. */
export class FaultyDriver extends WrappedDriver implements StorageDriver {
  readonly #driver: StorageDriver;
  #faults: Faults;
  readonly #environment: Environment;
  readonly #random: SeededRandom;
  readonly #counts = noFaultCounts();
  #underWay = 0;

  /** Wraps `driver`. Throws `InvalidOptionError`. */
  constructor(driver: StorageDriver, options: FaultyDriverOptions = {}) {
    const { seed = 1, faults = {}, environment = realEnvironment } = driverOptions.check('new FaultyDriver()', options);
    super(driver, optionalMembersBut('identity'));
    this.#faults = faults;
    this.#driver = driver;
    this.#environment = environment;
    this.#random = new SeededRandom(seed);
    const { copy } = this;
    if (copy !== undefined) {
      // A copy has the faults of a put without a condition.
      this.copy = (from, to, { signal, ...rest } = {}) => this.#request('put', to, signal, () => copy(from, to, rest));
    }
  }

  /** The probability of each fault. A change applies from the next request on. The setter throws `InvalidOptionError`. */
  get faults(): Faults {
    return this.#faults;
  }

  set faults(faults: Faults) {
    this.#faults = faultOptions.check('FaultyDriver.faults', faults);
  }

  /** The number of requests so far that had each fault. */
  get counts(): FaultCounts {
    return { ...this.#counts };
  }

  /** The number of requests that may still reach the store, including those whose callers have given up. */
  get underWay(): number {
    return this.#underWay;
  }

  override get(key: string, options: GetOptions = {}): Promise<GetResult> {
    const { signal, ...rest } = options;
    return this.#request('get', key, signal, async ({ fault, random }) => {
      const result = await this.#driver.get(key, rest);
      if (fault !== 'damaged' || result.status !== 'found') return result;
      return { ...result, bytes: damage(result.bytes, random) };
    });
  }

  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const { signal, ...rest } = options;
    // The caller may reuse its buffer after an error, but the request may take effect later.
    const kept = isBytes(body) ? new Uint8Array(body) : body;
    const request = options.if === 'any' ? 'put' : 'conditionalPut';
    return this.#request(request, key, signal, async ({ fault }) => {
      const result = await this.#driver.put(key, kept, rest);
      return fault === 'falseLoss' && result.status === 'written' ? { status: 'lost' } : result;
    });
  }

  override delete(keys: readonly string[], options: RequestOptions = {}): Promise<DeleteResult> {
    const { signal, ...rest } = options;
    return this.#request('delete', keys[0] ?? '', signal, async ({ fault, random }) => {
      if (fault !== 'partialDelete') return this.#driver.delete(keys, rest);
      const kept = keys.filter(() => random.chance(0.5));
      const result = await this.#driver.delete(
        keys.filter((key) => !kept.includes(key)),
        rest,
      );
      const failed = kept.map((key) => ({ key, message: 'The store could not delete this key just now.' }));
      return { failed: [...result.failed, ...failed] };
    });
  }

  override list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    const { signal, ...rest } = options;
    return this.#request('list', prefix, signal, () => this.#driver.list(prefix, rest));
  }

  #plan(request: RequestKind): Plan {
    // A random stream for each request, so that the decisions on one do not change those on the next.
    const random = this.#random.fork();
    const { latencyMs = [0, 0], slow = 0, slowMs = [1000, 10_000], lateMs = [1000, 60_000] } = this.#faults;
    const delay = (): number => random.between(...(random.chance(slow) ? slowMs : latencyMs));
    const fault = faultFor(request, this.#faults, random);
    if (fault !== undefined) this.#counts[fault]++;
    return { fault, sendMs: delay(), answerMs: delay(), lateMs: random.between(...lateMs), random };
  }

  /** Runs one request. The signal is not passed on: an aborted request may still reach the store. */
  async #request<T>(
    request: RequestKind,
    key: string,
    signal: AbortSignal | undefined,
    perform: (plan: Plan) => Promise<T>,
  ): Promise<T> {
    checkNotAborted(key, signal);
    const plan = this.#plan(request);
    const answer = this.#answer(plan, key, perform);
    if (signal === undefined) return answer;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        reject(new StorageError(key, 'unknown', 'The request was given up.', { cause: signal.reason }));
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const settle = (): void => signal.removeEventListener('abort', onAbort);
      answer.finally(settle).then(resolve, reject);
    });
  }

  async #answer<T>(plan: Plan, key: string, perform: (plan: Plan) => Promise<T>): Promise<T> {
    const { fault, sendMs, answerMs } = plan;
    if (fault === 'lateEffect' || (fault === 'noAnswer' && plan.random.chance(0.5))) this.#performLate(plan, perform);
    else if (fault === undefined || !isLost(fault)) return this.#performNow(plan, key, perform);
    await this.#wait(sendMs + answerMs);
    if (fault === 'noAnswer') return new Promise(noAnswer);
    throw unknownOutcome(key, 'The connection was reset before there was an answer.');
  }

  async #performNow<T>(plan: Plan, key: string, perform: (plan: Plan) => Promise<T>): Promise<T> {
    const { fault, sendMs, answerMs } = plan;
    let result: T | undefined;
    this.#underWay++;
    try {
      await this.#wait(sendMs);
      const failure = failureBefore(fault, key);
      if (failure === undefined) result = await perform(plan);
      await this.#wait(answerMs);
      if (failure !== undefined) throw failure;
    } finally {
      this.#underWay--;
    }
    if (fault === 'lostAnswer') throw unknownOutcome(key, 'The connection was reset before there was an answer.');
    return result as T;
  }

  /** Runs a request long after its sender got an error or gave up. */
  #performLate<T>(plan: Plan, perform: (plan: Plan) => Promise<T>): void {
    this.#underWay++;
    this.#environment.setTimer(() => void this.#performUnheard(plan, perform), plan.sendMs + plan.lateMs, {
      background: true,
    });
  }

  async #performUnheard<T>(plan: Plan, perform: (plan: Plan) => Promise<T>): Promise<void> {
    try {
      await perform(plan);
    } catch {
      // Its sender got an error long ago.
    } finally {
      this.#underWay--;
    }
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await sleep(this.#environment, ms);
  }
}

/** The executor of a promise that is never resolved. */
function noAnswer(): void {}

/** Whether a fault keeps the request from reaching the store, at least for a while. */
function isLost(fault: FaultKind): boolean {
  return fault === 'lostRequest' || fault === 'noAnswer';
}

/** Returns a copy with one bit flipped, or without its end. */
function damage(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  if (bytes.length === 0) return bytes;
  if (random.chance(0.3)) return bytes.slice(0, random.integer(0, bytes.length - 1));
  const damaged = new Uint8Array(bytes);
  const at = random.integer(0, bytes.length - 1);
  damaged[at] = (damaged[at] as number) ^ (1 << random.integer(0, 7));
  return damaged;
}
