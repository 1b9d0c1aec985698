/** The scopes of the log's model, and for each broken rule a scope in which it is found soon. */
import type { LogMutant, LogScope, Operation } from './scope.ts';

function flushes(...list: readonly string[]): LogScope['flushes'] {
  return list.map((text) => {
    const [node = 'A', operation] = text.split(' ');
    return { node: node.charCodeAt(0) - 65, operation: operation as Operation };
  });
}

const inserts = flushes('A insert', 'B insert');
const sets = flushes('A set', 'B set');
const increments = flushes('A increment', 'B increment');

/** Exhausted by the tests. */
export const logScopes = {
  inserts: { nodes: 2, slots: 2, flushes: inserts, delays: 1, crashes: 1 },
  unknown: {
    nodes: 2,
    slots: 2,
    flushes: flushes('A set', 'B insert'),
    delays: 1,
    timeouts: 1,
    retries: 1,
    refusals: 1,
  },
  group: { nodes: 2, slots: 2, flushes: flushes('A insert', 'A insert', 'B set'), delays: 1 },
  'given-up': { nodes: 2, slots: 2, flushes: flushes('A insert', 'A set'), delays: 1, timeouts: 1 },
  deletes: { nodes: 2, slots: 3, flushes: flushes('A insert', 'B delete', 'A insert') },
  transactions: { nodes: 2, slots: 2, flushes: increments, polling: 'useful' },
  jumps: { nodes: 2, slots: 3, flushes: flushes('A increment', 'B set', 'A set') },
  pairs: { nodes: 2, slots: 2, flushes: flushes('A increment', 'A increment', 'B increment') },
  refused: { nodes: 2, slots: 2, flushes: flushes('A insert', 'A insert'), refusals: 1, delays: 1 },
  aborted: { nodes: 2, slots: 2, flushes: sets, delays: 1, refusals: 1, aborts: 1 },
  trimmed: { nodes: 2, slots: 2, flushes: sets, delays: 2, timeouts: 1, listed: 1 },
  asked: { nodes: 2, slots: 2, flushes: sets, delays: 1, crashes: 1, timeouts: 1 },
  serial: { nodes: 2, slots: 3, flushes: flushes('A increment', 'B increment', 'A increment'), delays: 1, crashes: 1 },
  nodes: { nodes: 3, slots: 2, flushes: flushes('A insert', 'B set', 'C delete') },
  feed: { nodes: 2, slots: 2, flushes: sets, feed: true },
  followed: { nodes: 2, slots: 2, flushes: sets, polling: 'useful', oneByOne: true },
} satisfies Record<string, LogScope>;

/** Explored on request. */
export const largeLogScopes = {
  polling: { nodes: 2, slots: 2, flushes: inserts, delays: 1, polling: 'always', oneByOne: true },
  'late-puts': { nodes: 2, slots: 2, flushes: sets, delays: 2, crashes: 1, timeouts: 1 },
  restarts: { nodes: 2, slots: 2, flushes: sets, delays: 1, crashes: 2, timeouts: 1, retries: 1, polling: 'useful' },
  'three-slots': { nodes: 2, slots: 3, flushes: flushes('A set', 'B insert', 'A delete'), delays: 1, crashes: 1 },
  'three-nodes': { nodes: 3, slots: 3, flushes: flushes('A insert', 'B set', 'C delete'), delays: 1 },
  large: {
    nodes: 2,
    slots: 3,
    flushes: flushes('A insert', 'B set', 'A increment'),
    delays: 1,
    crashes: 1,
    timeouts: 1,
  },
} satisfies Record<string, LogScope>;

export const logMutantScopes: Readonly<Record<LogMutant, keyof typeof logScopes | keyof typeof largeLogScopes>> = {
  'no-check-after-put': 'inserts',
  'no-check-after-own': 'inserts',
  'check-before-put': 'inserts',
  'lost-without-check': 'inserts',
  'put-from-unconfirmed': 'polling',
  'reader-block0-first': 'polling',
  'refusal-is-loss': 'restarts',
  'new-slot-before-decided': 'restarts',
  'regrouped-at-undecided': 'group',
  'give-up-then-retry': 'unknown',
  'plain-error-on-ambiguity': 'unknown',
  'refusal-after-ambiguity': 'unknown',
  'ownership-by-node': 'given-up',
  'trim-before-floor': 'inserts',
  'trim-without-floor': 'inserts',
  'trim-past-applied': 'inserts',
  'not-listed-means-dead': 'trimmed',
  'dead-slot-means-lost': 'trimmed',
  'blind-block0': 'trimmed',
  'merge-carries-floor': 'trimmed',
  'slot-overwritten': 'inserts',
  'missing-means-no': 'asked',
  'resolve-without-floor': 'unknown',
  'resolved-twice': 'aborted',
  'not-validated-after-loss': 'inserts',
  'verdict-without-refresh': 'deletes',
  'verdict-on-group': 'group',
  'opening-without-check': 'asked',
  'acknowledged-early': 'inserts',
  'acknowledged-unseen': 'inserts',
  'reads-not-validated': 'transactions',
  'reads-validated-once': 'transactions',
  'reads-not-validated-in-group': 'pairs',
  'feed-without-floor': 'feed',
  'jump-not-noticed': 'jumps',
};
