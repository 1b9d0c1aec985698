/** A blob on its way into a commit. */
import type { BlobRecord } from '../blob/blob-tables.ts';
import type { BlobValue } from '../blob/blob-value.ts';

/** A blob that is new: its record is known once it was uploaded, which a stream that failed never is. */
export interface NewBlob {
  reference: string;
  readonly value: BlobValue;
  record: BlobRecord | undefined;
  /** Last slot of a state that was current before the upload began, or in which the blob was still there; -1: none. */
  checkedTail: number;
}
