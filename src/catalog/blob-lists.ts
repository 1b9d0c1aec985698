/** Looks blobs up in the system tables of a state. */
import { ByteWriter } from '../base/bytes.ts';
import { blobsSchema, deletedBlobsSchema } from '../blob/blob-tables.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { RowRef } from '../tree/tree.ts';
import type { View } from '../view/view.ts';

/** The tables that list blobs. */
type BlobList = '_blobs' | '_deleted_blobs';

const shapes: Readonly<Record<BlobList, TableShape>> = {
  _blobs: new TableShape(blobsSchema),
  _deleted_blobs: new TableShape(deletedBlobsSchema),
};

/** Looks up a blob in the list of blobs that rows refer to, or of blobs that no row refers to any more. */
export async function lookupBlob(view: View, list: BlobList, blob: string): Promise<RowRef | undefined> {
  const key = new ByteWriter(32);
  shapes[list].writeKey(key, blob);
  return view.table(list)?.lookup(key.finish());
}

/** Whether the list has the blob. */
export async function isListed(view: View, list: BlobList, blob: string): Promise<boolean> {
  return (await lookupBlob(view, list, blob)) !== undefined;
}
