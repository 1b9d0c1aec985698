/** The participants of one run of the model of collecting garbage, and the rules that can be broken in it. */
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
  /** Whether runs wait for loops before they announce. */
  readonly waits?: boolean;
  /** Generations that may pass while a merge writes ahead. Only without history. Default 0. */
  readonly ahead?: number;
}

export const gcMutants = {
  'no-birth-rule': 'blocks are deleted without regard to their birth',
  'births-one-later': 'blocks of the next generation are deleted as well',
  'births-below': 'blocks of the present generation are never deleted',
  'pins-ignored': 'blocks that snapshots show are deleted',
  'later-bound': 'births are compared with a later Block 0 than the one whose blocks are kept',
  'only-present-kept': 'a run that has waited does not keep the blocks of the generation that it collects from',
  'expiry-by-clock': 'a snapshot that seems abandoned is not kept, although Block 0 lists it',
  'pin-not-checked': 'an earlier state is pinned without checking whether it is retained',
  'pin-checked-early': 'whether a state is retained is checked only before the write',
  'blocks-carried-over': 'a merge that has lost offers its blocks in the next generation',
  'replaced-blocks-again': 'trees that were written ahead refer to a block that has been replaced since',
  'own-blocks-deleted': 'a merge whose write had no answer deletes its blocks',
  'deterministic-names': 'names of blocks are not random, and a block that exists is believed',
  'not-announced': 'gc does not announce in Block 0 up to which generation it collects',
  'announced-afterwards': 'gc announces it only after it has deleted',
  'copies-deleted-early': 'copies of the present generation are deleted although a pin may come',
  'pinned-before-copied': 'the copy is stored after the pin',
  'copy-deleted-first': 'a released snapshot loses its copy before its pin',
  'abandoned-pins-stay': 'nobody ends the pins of processes that have crashed',
  'history-ignored': 'blocks that the history shows are deleted',
  'history-floor-not-written': 'history is deleted before Block 0 says so',
  'history-not-stored': 'a merge does not store the state that it replaces',
  'merge-carries-bookkeeping': 'a merge writes pins and bounds as they were when it began',
} as const;

export type GcMutant = keyof typeof gcMutants;
