/** The faults of requests to a store, and the random choice of one. */
import { kinds, OptionTable } from '../base/options.ts';
import type { SeededRandom } from './seeded-random.ts';

/**
 * The probability of each fault, from 0 to 1, for every request that it can happen to. At most one happens to a request, so
 * their sum should stay below 1. A fault that is left out never happens.
 */
export interface Faults {
  /** The request never reaches the store. The caller gets an error with outcome `unknown`. */
  readonly lostRequest?: number;
  /** The request takes effect, but its answer is lost: `unknown`. */
  readonly lostAnswer?: number;
  /** A put: the caller gets an error (`unknown`), and the put reaches the store `lateMs` later. */
  readonly lateEffect?: number;
  /** There is no answer until the caller gives up. With probability 0.5 the request takes effect, after `lateMs`. */
  readonly noAnswer?: number;
  /** A conditional put: "look again" (409), `unknown`, without effect. */
  readonly lookAgain?: number;
  /** A conditional put: it takes effect and is then reported as lost, as by a client that repeats puts itself. */
  readonly falseLoss?: number;
  /** Access denied (403): an error with outcome `none`. */
  readonly refused?: number;
  /** Too many requests (429, 503): `unknown`, without effect. */
  readonly throttled?: number;
  /** A get: the bytes have one bit flipped, or their end is cut off. */
  readonly damaged?: number;
  /** A delete: some keys are left, and reported. */
  readonly partialDelete?: number;
  /** A list: it fails. */
  readonly failedList?: number;
  /** The time for a request to reach the store, and for its answer to come back, each. Default none. */
  readonly latencyMs?: readonly [least: number, most: number];
  /** The probability that one of these takes `slowMs` instead. */
  readonly slow?: number;
  /** Default [1000, 10000]. */
  readonly slowMs?: readonly [least: number, most: number];
  /** The delay after which a request takes effect whose caller got an error or gave up. Default [1000, 60000]. */
  readonly lateMs?: readonly [least: number, most: number];
}

const likelihood = kinds.number(0, 1);
const span = {
  allowed: 'two numbers of milliseconds: the least, and the most',
  accepts: (value: unknown): boolean =>
    Array.isArray(value) && value.length === 2 && value.every((ms) => typeof ms === 'number' && ms >= 0),
};

export const faultOptions: OptionTable<Faults> = new OptionTable({
  lostRequest: likelihood,
  lostAnswer: likelihood,
  lateEffect: likelihood,
  noAnswer: likelihood,
  lookAgain: likelihood,
  falseLoss: likelihood,
  refused: likelihood,
  throttled: likelihood,
  damaged: likelihood,
  partialDelete: likelihood,
  failedList: likelihood,
  latencyMs: span,
  slow: likelihood,
  slowMs: span,
  lateMs: span,
});

/** The name of a fault. */
export type FaultKind = Exclude<keyof Faults, 'latencyMs' | 'slow' | 'slowMs' | 'lateMs'>;
/** The number of requests that had each fault. */
export type FaultCounts = Record<FaultKind, number>;
export type RequestKind = 'get' | 'put' | 'conditionalPut' | 'delete' | 'list';

const everywhere: readonly FaultKind[] = ['lostRequest', 'lostAnswer', 'noAnswer', 'refused', 'throttled'];

const faultsOf: Readonly<Record<RequestKind, readonly FaultKind[]>> = {
  get: [...everywhere, 'damaged'],
  put: [...everywhere, 'lateEffect'],
  conditionalPut: [...everywhere, 'lateEffect', 'lookAgain', 'falseLoss'],
  delete: [...everywhere, 'partialDelete'],
  list: [...everywhere, 'failedList'],
};

/** Chooses the fault of a request; undefined for none. */
export function faultFor(kind: RequestKind, faults: Faults, random: SeededRandom): FaultKind | undefined {
  let left = random.next();
  for (const fault of faultsOf[kind]) {
    left -= faults[fault] ?? 0;
    if (left < 0) return fault;
  }
  return undefined;
}

export function noFaultCounts(): FaultCounts {
  return {
    lostRequest: 0,
    lostAnswer: 0,
    lateEffect: 0,
    noAnswer: 0,
    lookAgain: 0,
    falseLoss: 0,
    refused: 0,
    throttled: 0,
    damaged: 0,
    partialDelete: 0,
    failedList: 0,
  };
}
