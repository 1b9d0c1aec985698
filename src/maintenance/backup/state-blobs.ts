/** The blobs of a state of a database: those that its rows refer to. */
import type { Pacer } from '../../base/pacer.ts';
import { blobsSchema, checkBlobRecord } from '../../blob/blob-tables.ts';
import type { BlobRecord } from '../../blob/blob-tables.ts';
import type { Block0 } from '../../format/block0.ts';
import { decodeRow } from '../../format/row-decode.ts';
import { View } from '../../view/view.ts';
import type { ViewContext } from '../../view/view.ts';
import { TreeCursor } from '../../tree/cursor.ts';

export interface StateBlob {
  readonly reference: string;
  readonly record: BlobRecord;
}

/** Rejects if any of the records cannot be read. */
export async function blobsOf(
  context: ViewContext,
  block0: Block0,
  pacer: Pacer,
  signal: AbortSignal | undefined,
): Promise<StateBlob[]> {
  const blobs: StateBlob[] = [];
  const table = View.ofBlock0(context, block0).table(blobsSchema.name);
  if (table === undefined) return blobs;
  const cursor = new TreeCursor(table.tree);
  cursor.expect(Number.POSITIVE_INFINITY);
  while (await cursor.next()) {
    signal?.throwIfAborted();
    if (pacer.due()) await pacer.pause();
    for (let i = cursor.from; i < cursor.to; i++) {
      const row = decodeRow(table.shape.layout, cursor.node, cursor.node.rowBase(i));
      const reference = row['id'] as string;
      blobs.push({ reference, record: checkBlobRecord(reference, row) });
    }
  }
  return blobs;
}
