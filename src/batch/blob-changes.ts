/**
 * The changes of a flush to the system tables of blobs, found by comparing each row as it was with the row as it will be:
 * new references get a record that names their owner, and references that go are listed as deleted.
 */
import type { Environment } from '../base/env.ts';
import { BatchStateError, BlobReferenceError } from '../base/errors.ts';
import { blobsSchema, deletedBlobsSchema } from '../blob/blob-tables.ts';
import type { BlobRecord } from '../blob/blob-rows.ts';
import type { BlobValue } from '../blob/blob-value.ts';
import { readField } from '../format/row-decode.ts';
import { rowDeletedFlag } from '../format/row-layout.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { RowRef } from '../tree/tree.ts';
import { Operation, TableOperations } from './table-operations.ts';

const blobsShape = new TableShape(blobsSchema);
const deletedBlobsShape = new TableShape(deletedBlobsSchema);

export class BlobChanges {
  readonly #newBlobs: ReadonlyMap<string, NewBlob>;
  readonly #now: Date;
  readonly #records: TableOperations;
  readonly #deleted: TableOperations;

  constructor(newBlobs: ReadonlyMap<string, NewBlob>, environment: Environment) {
    this.#newBlobs = newBlobs;
    this.#now = new Date(environment.now());
    this.#records = new TableOperations(blobsShape, environment);
    this.#deleted = new TableOperations(deletedBlobsShape, environment);
  }

  /** The operations on the system tables. */
  get lists(): TableOperations[] {
    return [this.#records, this.#deleted].filter(({ count }) => count > 0);
  }

  /** Takes in one row: as it is stored (if it is) and as it will be. Throws `BlobReferenceError`. */
  observe(shape: TableShape, key: Uint8Array, old: RowRef | undefined, next: RowRef): void {
    const gone = ((next.source.rows[next.base] as number) & rowDeletedFlag) !== 0;
    for (const field of shape.blobFields) {
      const before = old === undefined ? null : (readField(old.source, old.base, field) as string | null);
      const after = gone ? null : (readField(next.source, next.base, field) as string | null);
      if (before === after) continue;
      if (after !== null) this.#add(shape, key, field, after);
      if (before !== null) this.#remove(shape, key, field, before);
    }
  }

  #add(shape: TableShape, key: Uint8Array, field: LayoutField, reference: string): void {
    const blob = this.#newBlobs.get(reference);
    if (blob === undefined) {
      throw new BlobReferenceError(
        reference,
        `Field '${field.name}' of table '${shape.name}' was given the blob reference ${reference}, which is not this ` +
          "row's own. A reference cannot be shared: store the data again with db.Blob().",
      );
    }
    if (blob.record === undefined) {
      throw new BatchStateError(
        `The stream for field '${field.name}' of table '${shape.name}' was read already, and can be read only once. ` +
          'Give the field a new db.Blob(), or drop the batch with clear().',
      );
    }
    this.#records.addDocument(Operation.insert, {
      id: reference,
      table: shape.name,
      key,
      field: field.name,
      ...blob.record,
      createdAt: this.#now,
    });
  }

  #remove(shape: TableShape, key: Uint8Array, field: LayoutField, reference: string): void {
    this.#records.addDelete(reference);
    const row = { id: reference, table: shape.name, key, field: field.name, deletedAt: this.#now };
    this.#deleted.addDocument(Operation.upsert, row);
  }
}

/** A new blob on its way into a commit. Its record is known once it was uploaded, which never happens to a stream that failed. */
export interface NewBlob {
  reference: string;
  readonly table: string;
  readonly field: string;
  readonly value: BlobValue;
  record: BlobRecord | undefined;
  /** Last slot of a state that was current before the upload began, or in which the blob was still there; -1: none. */
  checkedTail: number;
}
