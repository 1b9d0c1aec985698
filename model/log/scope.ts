/** The participants of one run of the log's model. */

/** The operation of a flush on the only key. */
export type Operation =
  /** Refused if the key exists. */
  | 'insert'
  /** Changes nothing if the key is absent: then nothing is written. */
  | 'delete'
  /** Never refused. */
  | 'set'
  /** A transaction: reads the key at one state, and writes what follows from it. */
  | 'increment';

export interface LogScope {
  readonly nodes: number;
  readonly slots: number;
  /** In the order in which the application of each node calls them. */
  readonly flushes: readonly { readonly node: number; readonly operation: Operation }[];
  /** Puts and answers that are lost, or arrive when nobody waits for them any more. */
  readonly delays?: number;
  /** Processes that end without notice. */
  readonly crashes?: number;
  /** Puts that fail for certain, or bounds of lost slots that are reached. */
  readonly refusals?: number;
  /** Flushes whose outcome is not known in time. */
  readonly timeouts?: number;
  /** Flushes that their callers give up. */
  readonly aborts?: number;
  /** Batches that are flushed again once their old commit is resolved. */
  readonly retries?: number;
  /** Slots that Block 0's list of applied commits covers; all of them if left out. */
  readonly listed?: number;
  /** When nodes catch up although no flush waits for it: never, if they would find something, or at any time. */
  readonly polling?: 'never' | 'useful' | 'always';
  /** Whether the first node also follows the log commit by commit, from its beginning. */
  readonly feed?: boolean;
  /** Whether slots are read one by one, with other steps in between, instead of all at one instant. */
  readonly oneByOne?: boolean;
}

export const logMutants = {
  'no-check-after-put': 'Block 0 is not read after a put that was written',
  'no-check-after-own': 'Block 0 is not read after one’s own commit was found in the slot',
  'check-before-put': 'the slot is confirmed by a Block 0 that was read before the put',
  'lost-without-check': 'another’s commit in the slot is believed without a read of Block 0',
  'put-from-unconfirmed': 'slots count as soon as they are read, and the next put follows them',
  'reader-block0-first': 'a reader reads Block 0 before the slots',
  'refusal-is-loss': 'a put that was not written counts as a loss without reading the slot',
  'new-slot-before-decided': 'after a lost answer the flush goes on to the slot that is next',
  'regrouped-at-undecided': 'a missing slot gets a different commit at the second try',
  'give-up-then-retry': 'a flush that was given up is flushed again without resolving the old commit',
  'plain-error-on-ambiguity': 'a flush whose outcome is not known in time fails as if it were not in the log',
  'refusal-after-ambiguity': 'a refusal of the second put counts as a definite failure',
  'ownership-by-node': 'any commit of the same node counts as one’s own',
  'trim-before-floor': 'slots are deleted before the floor is raised over them',
  'trim-without-floor': 'slots are deleted, and the floor is not raised at all',
  'trim-past-applied': 'the floor is raised past the applied slots',
  'not-listed-means-dead': 'a dead slot that the list does not cover is read as "not applied"',
  'dead-slot-means-lost': 'a dead slot is read as "not applied" without looking at the list',
  'blind-block0': 'a merge replaces Block 0 without a condition',
  'merge-carries-floor': 'a merge that reads Block 0 again writes the floor that it read first',
  'slot-overwritten': 'slots are put without a condition',
  'missing-means-no': 'when asked later, a missing slot means "not applied"',
  'resolve-without-floor': 'when asked later, a slot is believed without a read of Block 0',
  'resolved-twice': 'a commit is resolved a second time while its first put is under way',
  'not-validated-after-loss': 'after a lost slot the same commit goes to the next one',
  'verdict-without-refresh': 'a flush is rejected on a tail that was not refreshed since its call',
  'verdict-on-group': 'a flush is rejected because of another flush of its commit, before that commit is in the log',
  'opening-without-check': 'a node that opens believes the slots that it reads without a second look at Block 0',
  'acknowledged-early': 'a flush resolves when its put is sent',
  'acknowledged-unseen': 'a flush resolves before the node’s own view shows it',
  'reads-not-validated': 'the reads of a transaction are not compared with later commits',
  'reads-validated-once': 'the reads of a transaction are compared at its first attempt only',
  'reads-not-validated-in-group': 'a transaction is not compared with the flushes before it in the same commit',
  'feed-without-floor': 'a feed gives out slots that it reads again without a second look at the floor',
  'jump-not-noticed': 'a transaction does not learn of slots that its node never read',
} as const;

export type LogMutant = keyof typeof logMutants;
