/** The participants of one run of the model of blobs, and the rules that can be broken in it. */
export interface BlobScope {
  /** Flushes that bring a blob, each by a node of its own. */
  readonly flushes: number;
  /** Names that uploads may take. */
  readonly names: number;
  /** Commits in the log at most. */
  readonly slots: number;
  /** Runs of gc at the same time. */
  readonly runs: number;
  /** Uploads whose outcome is not known, and that may arrive later. */
  readonly delays?: number;
  /** Whether somebody holds a snapshot. */
  readonly snapshot?: boolean;
}

export const blobMutants = {
  'grace-by-clock': 'uploads that no commit names are deleted without being condemned',
  'no-look-after-jump': 'a flush does not check whether its blob is still there',
  'condemnation-not-seen': 'a flush does not check whether its blob is condemned',
  'looked-once': 'a flush checks for its blob at its first attempt only',
  'looked-before-upload-ends': 'a blob counts as checked at the tail at which its upload ended',
  'condemned-blindly': 'blobs are condemned without checking which rows refer to them',
  'condemned-on-older-state':
    'references to condemned blobs were looked for in an older state than the one before the commit',
  'deleted-before-it-counts': 'condemned blobs are deleted before their condemnation is in the log',
  'forgotten-first': 'the row of a deleted blob is removed before the object is',
  'same-name-again': 'a blob that is uploaded again gets the same name',
  'snapshots-ignored': 'blobs that a snapshot shows are deleted',
} as const;

export type BlobMutant = keyof typeof blobMutants;
