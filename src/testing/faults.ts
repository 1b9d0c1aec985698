/** The ways in which a request to a store can go wrong, and how one is chosen. */
import { kinds, OptionTable } from '../base/options.ts';
import type { SeededRandom } from './seeded-random.ts';

/**
 * How likely each fault is, from 0 to 1 for every request that it can happen to; at most one happens to a request, so
 * together they should stay below 1. What is left out never happens.
 */
export interface Faults {
  /** The request never reaches the store; the caller gets an error with outcome `unknown`. */
  readonly lostRequest?: number;
  /** The request is done, and its answer is lost: `unknown`. */
  readonly lostAnswer?: number;
  /** A put: the caller gets an error (`unknown`), and the put reaches the store `lateMs` later. */
  readonly lateEffect?: number;
  /** There is never an answer, until the caller gives up. Whether the request is done, after `lateMs`, is even odds. */
  readonly noAnswer?: number;
  /** A conditional put: "look again" (409), `unknown`, without effect. */
  readonly lookAgain?: number;
  /** A conditional put: it is made, and then called lost, as by a client that repeats puts by itself. */
  readonly falseLoss?: number;
  /** Access denied (403): an error with outcome `none`. */
  readonly refused?: number;
  /** Too many requests (429, 503): `unknown`, without effect. */
  readonly throttled?: number;
  /** A get: the bytes come with one bit flipped, or cut off. */
  readonly damaged?: number;
  /** A delete: some keys are left, and reported. */
  readonly partialDelete?: number;
  /** A list: it fails. */
  readonly failedList?: number;
  /** Time that a request takes to reach the store, and the answer to come back, each. Default none. */
  readonly latencyMs?: readonly [least: number, most: number];
  /** How likely it is that one of these ways takes `slowMs` instead. */
  readonly slow?: number;
  /** Default [1000, 10000]. */
  readonly slowMs?: readonly [least: number, most: number];
  /** How much later a put lands whose caller was told that it failed. Default [1000, 60000]. */
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

/** A way in which a request can fail. */
export type FaultKind = Exclude<keyof Faults, 'latencyMs' | 'slow' | 'slowMs' | 'lateMs'>;
/** How many requests met each fault. */
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

/** The fault that happens to a request, if one does. */
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
