/** The scopes that the log's model is run in, and for each broken rule one in which that is found soon. */
import type { LogMutant, LogScope, Operation } from './scope.ts';

function flushes(...list: readonly string[]): LogScope['flushes'] {
  return list.map((text) => {
    const [node = 'A', operation] = text.split(' ');
    return { node: node.charCodeAt(0) - 65, operation: operation as Operation };
  });
}

const inserts = flushes('A insert', 'B insert');

export const logScopes = {
  /** Both nodes insert the same key; a put is late, a node crashes. */
  inserts: { nodes: 2, slots: 2, flushes: inserts, delays: 1, crashes: 1 },
  /** Flushes that are not settled in time, asked about, and flushed again. */
  unknown: {
    nodes: 2,
    slots: 2,
    flushes: flushes('A set', 'B insert'),
    delays: 1,
    timeouts: 1,
    retries: 1,
    refusals: 1,
  },
  group: { nodes: 2, slots: 2, flushes: flushes('A insert', 'A insert', 'B set'), delays: 1, timeouts: 1, refusals: 1 },
  deletes: { nodes: 2, slots: 3, flushes: flushes('A insert', 'B delete', 'A insert') },
  transactions: { nodes: 2, slots: 2, flushes: flushes('A increment', 'B increment'), delays: 1, polling: 'useful' },
  group3: { nodes: 2, slots: 3, flushes: flushes('A increment', 'A increment', 'B set'), polling: 'useful' },
  jump: { nodes: 2, slots: 3, flushes: flushes('A increment', 'B set', 'A set') },
  aborted: { nodes: 2, slots: 2, flushes: flushes('A set', 'B set'), delays: 1, refusals: 1, aborts: 1 },
  trimmed: { nodes: 2, slots: 2, flushes: flushes('A set', 'B set'), delays: 2, timeouts: 1, listed: 1 },
  trimmed3: { nodes: 2, slots: 3, flushes: flushes('A set', 'B set', 'B set'), delays: 1, listed: 1 },
  asked: { nodes: 2, slots: 2, flushes: flushes('A set', 'B set'), delays: 1, crashes: 1, timeouts: 1 },
  followed: { nodes: 2, slots: 2, flushes: flushes('A set', 'B set'), delays: 1, polling: 'useful' },
  polling: { nodes: 2, slots: 2, flushes: inserts, delays: 1, polling: 'always', oneByOne: true },
} satisfies Record<string, LogScope>;

export const logMutantScopes: Readonly<Record<LogMutant, keyof typeof logScopes>> = {
  'no-check-after-put': 'inserts',
  'no-check-after-own': 'inserts',
  'check-before-put': 'inserts',
  'lost-without-check': 'inserts',
  'put-from-unconfirmed': 'polling',
  'reader-block0-first': 'polling',
  'refusal-is-loss': 'followed',
  'new-slot-before-decided': 'followed',
  'regrouped-at-undecided': 'group',
  'give-up-then-retry': 'unknown',
  'plain-error-on-ambiguity': 'unknown',
  'refusal-after-ambiguity': 'unknown',
  'ownership-by-node': 'group',
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
  'settled-twice': 'aborted',
  'not-validated-after-loss': 'inserts',
  'verdict-without-refresh': 'deletes',
  'verdict-on-group': 'group',
  'opening-without-check': 'asked',
  'acknowledged-early': 'inserts',
  'acknowledged-unseen': 'inserts',
  'reads-not-validated': 'transactions',
  'reads-validated-once': 'transactions',
  'reads-not-validated-in-group': 'group3',
  'jump-not-noticed': 'jump',
};
