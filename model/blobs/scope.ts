/** What takes part in one run of the model of blobs, and the rules that can be broken in it. */
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
  'no-look-after-jump': 'a flush does not look whether its blob is still there',
  'condemnation-not-seen': 'a flush does not look whether its blob is condemned',
  'looked-once': 'a flush looks for its blob at its first attempt only',
  'looked-before-upload-ends': 'a blob counts as looked at on the tail that its upload has ended on',
  'condemned-blindly': 'blobs are condemned without looking who names them',
  'condemned-on-older-state': 'what is condemned was looked for on an older state than that before the commit',
  'deleted-before-it-counts': 'condemned blobs are deleted before their condemnation is in the log',
  'forgotten-first': 'the row of a deleted blob is removed before the object is',
  'same-name-again': 'what is uploaded again gets the same name',
  'snapshots-ignored': 'what a snapshot shows is deleted',
} as const;

export type BlobMutant = keyof typeof blobMutants;
