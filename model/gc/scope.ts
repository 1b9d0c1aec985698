/** What takes part in one run of the model of collecting garbage, and the rules that can be broken in it. */
export interface GcScope {
  /** Generations after the first. */
  readonly generations: number;
  /** Merges that may write blocks of one birth. */
  readonly attempts: number;
  /** Merges, pins and runs of gc at the same time. */
  readonly merges: number;
  readonly pins: number;
  readonly runs: number;
  /** Whether earlier generations are kept as history. */
  readonly history?: boolean;
}

export const gcMutants = {
  'no-birth-rule': 'blocks are deleted without regard to their birth',
  'births-one-later': 'blocks of the next generation are deleted as well',
  'births-below': 'blocks of the present generation are never deleted',
  'pins-ignored': 'what snapshots show is not kept',
  'later-bound': 'births are compared with a later Block 0 than the one whose blocks are kept',
  'expiry-by-clock': 'a snapshot that seems abandoned is not kept, although Block 0 lists it',
  'pin-not-checked': 'an earlier state is pinned without looking whether it is retained',
  'pin-checked-early': 'whether a state is retained is looked at only before the write',
  'blocks-carried-over': 'a merge that has lost offers its blocks in the next generation',
  'own-blocks-deleted': 'a merge whose write had no answer deletes its blocks',
  'deterministic-names': 'names of blocks are not random, and what is there is believed',
  'not-announced': 'gc does not say in Block 0 what it collects',
  'announced-afterwards': 'gc says so only when it has deleted',
  'copies-deleted-early': 'copies of the present generation are deleted although a pin may come',
  'pinned-before-copied': 'the copy is stored after the pin',
  'copy-deleted-first': 'a released snapshot loses its copy before its pin',
  'abandoned-pins-stay': 'nobody ends the pins of processes that have crashed',
  'history-ignored': 'what the history shows is not kept',
  'history-floor-not-written': 'history goes before Block 0 says so',
  'history-not-stored': 'a merge does not store the state that it replaces',
  'merge-carries-bookkeeping': 'a merge writes pins and bounds as they were when it began',
} as const;

export type GcMutant = keyof typeof gcMutants;
