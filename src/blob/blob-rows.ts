/** Rows of the system table of blobs, for whoever reads blobs: readers of bundles need no more of the table. */
import { isBytes } from '../base/brands.ts';
import { CorruptionError } from '../base/errors.ts';
import { blobName } from '../format/object-names.ts';

/** The name of the table of blobs that rows refer to. */
export const blobsTable = '_blobs';

/** A row of `_blobs`. */
export interface BlobRecord {
  readonly sizeBytes: number;
  readonly contentType: string;
  readonly checksums: Uint8Array;
}

/** Bytes that one checksum covers. Stored: never changes. */
export const blobChunkBytes = 65_536;

/** Checks a row of `_blobs`, because it decides how much is read and allocated. Throws `CorruptionError`. */
export function checkBlobRecord(reference: string, row: Readonly<Record<string, unknown>>): BlobRecord {
  const { sizeBytes, contentType, checksums } = row;
  const isRecord =
    Number.isSafeInteger(sizeBytes) &&
    (sizeBytes as number) >= 0 &&
    typeof contentType === 'string' &&
    isBytes(checksums) &&
    checksums.length === Math.ceil((sizeBytes as number) / blobChunkBytes) * 4;
  if (!isRecord) throw new CorruptionError(blobName(reference), 'The record of the blob is not valid');
  return { sizeBytes: sizeBytes as number, contentType, checksums };
}
