/** Reads the records of blobs. */
import { BlobNotFoundError } from '../base/errors.ts';
import { checkBlobRecord } from '../blob/blob-rows.ts';
import { blobsSchema } from '../blob/blob-tables.ts';
import type { BlobRecord } from '../blob/blob-rows.ts';
import { decodeRow } from '../format/row-decode.ts';
import { isUuid } from '../format/values.ts';
import { Query } from '../query/query.ts';
import { lookupBlob } from '../catalog/blob-lists.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';
import type { QueryHost } from '../query/planner/query-host.ts';

/** Reads size, content type and checksums of a blob. Rejects with `BlobNotFoundError`. */
export async function readBlobRecord(host: QueryHost, reference: string): Promise<BlobRecord> {
  if (!isUuid(reference)) {
    throw new BlobNotFoundError(reference, `'${reference}' is no blob reference: those are UUIDs.`);
  }
  const row = await new Query<Record<string, unknown>>(host, blobsSchema.name).where('id', '=', reference).first();
  if (row !== undefined) return checkBlobRecord(reference, row);
  throw new BlobNotFoundError(
    reference,
    `There is no blob ${reference}: its row was deleted, its field was given another value, or the batch that adds it is not ` +
      'flushed yet.',
  );
}

const shape = new TableShape(blobsSchema);

/** Reads the media type of a blob that a view lists. */
export async function contentTypeOf(view: View, blob: string): Promise<string | undefined> {
  const rowRef = await lookupBlob(view, '_blobs', blob);
  return rowRef && checkBlobRecord(blob, decodeRow(shape.layout, rowRef.source, rowRef.base)).contentType;
}
