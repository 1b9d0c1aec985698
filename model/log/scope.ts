/** What takes part in one run of the log's model. */

/** What a flush does to the one key that there is. */
export type Operation =
  /** Refused where the key exists. */
  | 'insert'
  /** Changes nothing where the key is absent: then nothing is to be written. */
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
  /** Flushes that are not settled in time. */
  readonly timeouts?: number;
  /** Flushes that their callers give up. */
  readonly aborts?: number;
  /** Batches that are flushed again once their old commit is settled. */
  readonly retries?: number;
  /** Slots that Block 0's list of applied commits covers; all of them if left out. */
  readonly listed?: number;
  /** When nodes catch up although no flush waits for it: never, wherever they would find something, or at any time. */
  readonly polling?: 'never' | 'useful' | 'always';
  /** Whether the first node also follows the log commit by commit, from its beginning. */
  readonly feed?: boolean;
  /** Whether slots are read one by one, with anything in between, and not all that are there at one instant. */
  readonly oneByOne?: boolean;
}

export const logMutants = {
  'no-check-after-put': 'Block 0 is not read after a put that was written',
  'no-check-after-own': 'Block 0 is not read after one’s own commit was found in the slot',
  'check-before-put': 'the slot is confirmed by a Block 0 that was read before the put',
  'lost-without-check': 'another’s commit in the slot is believed without a read of Block 0',
  'put-from-unconfirmed': 'slots count as soon as they are read, and the next put follows them',
  'reader-block0-first': 'a reader reads Block 0 before the slots',
  'refusal-is-loss': 'a put that was not written is taken for a loss without reading the slot',
  'new-slot-before-decided': 'after a lost answer the flush goes on to the slot that is next',
  'regrouped-at-undecided': 'a missing slot gets another commit than the first time',
  'give-up-then-retry': 'a flush that was given up is flushed again without settling the old commit',
  'plain-error-on-ambiguity': 'a flush that is not settled in time fails as if it were not applied',
  'refusal-after-ambiguity': 'a refusal of the second put is taken for a definite one',
  'ownership-by-node': 'a commit of the same node is taken for one’s own',
  'trim-before-floor': 'slots are deleted before the floor is raised over them',
  'trim-without-floor': 'slots are deleted, and the floor is not raised at all',
  'trim-past-applied': 'the floor is raised past what is applied',
  'not-listed-means-dead': 'a dead slot that the list does not cover is read as "not applied"',
  'dead-slot-means-lost': 'a dead slot is read as "not applied" without looking at the list',
  'blind-block0': 'a merge replaces Block 0 without a condition',
  'merge-carries-floor': 'a merge that looks again writes the floor that it saw first',
  'slot-overwritten': 'slots are put without a condition',
  'missing-means-no': 'asked later, a missing slot means "not applied"',
  'resolve-without-floor': 'asked later, a slot is believed without a read of Block 0',
  'settled-twice': 'a commit is settled again while its first put is under way',
  'not-validated-after-loss': 'after a lost slot the same commit goes to the next one',
  'verdict-without-refresh': 'a flush is rejected on a tail that was not refreshed since its call',
  'verdict-on-group': 'a flush is rejected for one of the same commit before that is in the log',
  'opening-without-check': 'a node that opens believes the slots that it reads without a second look at Block 0',
  'acknowledged-early': 'a flush resolves when its put is sent',
  'acknowledged-unseen': 'a flush resolves before the node’s own view shows it',
  'reads-not-validated': 'what a transaction has read is not compared with later commits',
  'reads-validated-once': 'what a transaction has read is compared at its first attempt only',
  'reads-not-validated-in-group': 'a transaction is not compared with those before it in the same commit',
  'feed-without-floor': 'a feed gives out slots that it reads again without a second look at the floor',
  'jump-not-noticed': 'a transaction is not told of slots that its node never read',
} as const;

export type LogMutant = keyof typeof logMutants;
