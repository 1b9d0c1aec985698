/**
 * Collects blobs. A blob whose row is gone is listed in `_deleted_blobs`, and is deleted unless a kept state shows it. A blob
 * that no commit ever named belongs to an upload that is under way or was left behind. It is condemned first: a commit lists it,
 * validated like any other on exactly the state before it. A flush that finds its blob listed does not commit.
 *
 * Invariant: a row of `_deleted_blobs` is removed only after its object was deleted for certain. So an object that exists and is
 * not listed is not about to be deleted.
 */
import type { Environment } from '../../base/env.ts';
import { compareStrings } from '../../base/bytes.ts';
import { Operation, TableOperations } from '../../batch/table-operations.ts';
import { deletedBlobsSchema } from '../../blob/blob-tables.ts';
import { blobName, folders, parseBlobName } from '../../format/object-names.ts';
import { isListed } from '../../catalog/blob-lists.ts';
import { TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { View } from '../../view/view.ts';
import type { GarbageStore } from './gc-store.ts';

const deletedShape = new TableShape(deletedBlobsSchema);
/** Most rows of each kind that one run changes; the next run continues. */
const maxRows = 50_000;

/** The changes to make in `_deleted_blobs`. */
export interface BlobVerdicts {
  /** Blobs that were deleted for certain: their rows are removed. */
  readonly deleted: string[];
  /** Blobs that nothing names: they are listed, for the next run to delete. */
  readonly condemned: string[];
}

export interface BlobCollection {
  readonly store: GarbageStore;
  /** The state that garbage is collected from. */
  readonly view: View;
  /** Whether a kept state may show a blob that the view lists as deleted. */
  readonly isKept: (blob: string) => Promise<boolean>;
  /** Whether a blob written at that time, by the store's clock, is condemned if nothing names it. Younger blobs are left alone. */
  readonly isOld: (writtenMs: number) => Promise<boolean>;
  readonly signal: AbortSignal | undefined;
}

/** Yields the blobs that a table lists, ascending. */
async function* blobsIn(state: TableState | undefined): AsyncGenerator<string, void, undefined> {
  if (state === undefined) return;
  const { shape } = state;
  const cursor = state.scan();
  cursor.expect?.(Number.POSITIVE_INFINITY);
  while (await cursor.next()) {
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) yield shape.rowKey(node, node.rowBase(i)) as string;
  }
}

/** Tests for blobs in an ascending sequence; the blobs asked for must ascend too. */
class Ascending {
  readonly #blobs: AsyncIterator<string, void>;
  readonly #passed: (blob: string) => void;
  #next: string | undefined;
  #started = false;

  constructor(blobs: AsyncIterable<string>, passed: (blob: string) => void = () => {}) {
    this.#blobs = blobs[Symbol.asyncIterator]() as AsyncIterator<string, void>;
    this.#passed = passed;
  }

  async has(blob: string): Promise<boolean> {
    if (!this.#started) await this.#advance();
    while (this.#next !== undefined && compareStrings(this.#next, blob) < 0) await this.#pass();
    return this.#next === blob;
  }

  /** Passes the remaining blobs. */
  async finish(): Promise<void> {
    if (!this.#started) await this.#advance();
    while (this.#next !== undefined) await this.#pass();
  }

  async #pass(): Promise<void> {
    this.#passed(this.#next as string);
    await this.#advance();
  }

  async #advance(): Promise<void> {
    this.#started = true;
    const { value, done } = await this.#blobs.next();
    this.#next = done === true ? undefined : value;
  }
}

/** Deletes the blobs that may be deleted now, and returns the changes to make in `_deleted_blobs`. */
export async function collectBlobs(options: BlobCollection): Promise<BlobVerdicts> {
  const { store, view, isKept, isOld, signal } = options;
  const verdicts: BlobVerdicts = { deleted: [], condemned: [] };
  const found = new Set<string>();
  const listed = new Ascending(blobsIn(view.table('_blobs')));
  const deleted = new Ascending(blobsIn(view.table('_deleted_blobs')), (blob) => {
    // Its object is gone: an earlier run was interrupted before it could remove the row.
    if (!found.has(blob) && verdicts.deleted.length < maxRows) verdicts.deleted.push(blob);
  });
  const wanted: string[] = [];
  for await (const { name, sizeBytes, lastModifiedMs } of store.list(folders.blobs)) {
    signal?.throwIfAborted();
    const blob = parseBlobName(name);
    if (blob === undefined) continue;
    const isDeleted = await deleted.has(blob);
    if (isDeleted) found.add(blob);
    if (await listed.has(blob)) continue;
    if (isDeleted) {
      if (wanted.length >= maxRows || (await isKept(blob))) continue;
      wanted.push(blob);
      await store.delete({ kind: 'blob', name, sizeBytes, reason: 'its row is gone, and no snapshot shows it' });
    } else if (verdicts.condemned.length < maxRows && (await isOld(lastModifiedMs))) {
      verdicts.condemned.push(blob);
    }
  }
  await deleted.finish();
  await store.finish();
  const failed = new Set(store.failed.map(({ name }) => name));
  verdicts.deleted.push(...wanted.filter((blob) => !failed.has(blobName(blob))));
  return verdicts;
}

/** The operations that write the verdicts, made on exactly the state that they will be applied to, and how many condemn a blob. */
export async function blobOperations(
  verdicts: BlobVerdicts,
  view: View,
  environment: Environment,
): Promise<{ readonly operations: TableOperations[]; readonly condemned: number }> {
  const rows = new TableOperations(deletedShape, environment);
  for (const blob of verdicts.deleted) if (await isListed(view, '_deleted_blobs', blob)) rows.addDelete(blob);
  const deletedAt = new Date(environment.now());
  let condemned = 0;
  for (const blob of verdicts.condemned) {
    // A row that names the blob may have been committed since.
    if ((await isListed(view, '_blobs', blob)) || (await isListed(view, '_deleted_blobs', blob))) continue;
    rows.addDocument(Operation.upsert, { id: blob, deletedAt });
    condemned++;
  }
  return { operations: rows.count === 0 ? [] : [rows], condemned };
}
