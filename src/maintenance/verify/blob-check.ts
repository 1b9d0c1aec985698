/**
 * Checks blobs: every reference in a row is listed in `_blobs` with that row as its owner, the owner in every record refers back,
 * no listed blob is also listed as deleted, and every object is there, with the size and checksums of its record.
 */
import { isBytes } from '../../base/brands.ts';
import { BlobNotFoundError, isUnreadable } from '../../base/errors.ts';
import type { BlobStore } from '../../blob/blob-store.ts';
import { checkBlobRecord } from '../../blob/blob-rows.ts';
import { blobsSchema, deletedBlobsSchema } from '../../blob/blob-tables.ts';
import type { BlobRecord } from '../../blob/blob-rows.ts';
import { blobName } from '../../format/object-names.ts';
import type { Node } from '../../format/node.ts';
import { decodeRow, readField } from '../../format/row-decode.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { compareBytes } from '../../base/bytes.ts';
import { isListed, lookupBlob } from '../../catalog/blob-lists.ts';
import { TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { View } from '../../view/view.ts';
import { rowText } from './check-run.ts';
import type { CheckRun, Subject } from './check-run.ts';

/** Blobs that are read at the same time, and their bytes in memory at the same time. */
const maxReads = 16;
const maxReadBytes = 16 * 1024 * 1024;
/** Most bytes of one blob in memory. */
const pieceBytes = 4 * 1024 * 1024;

const blobsShape = new TableShape(blobsSchema);

/** The owner of a blob, as its record names it. */
interface Owner {
  readonly table: unknown;
  readonly key: unknown;
  readonly field: unknown;
}

export class BlobCheck {
  readonly #run: CheckRun;
  readonly #store: BlobStore;
  readonly #reads = new Set<Promise<void>>();
  /** Blobs of earlier states that were checked already: several states may list the same blob. */
  readonly #earlier = new Set<string>();
  #expected = 0;
  #bytes = 0;
  #failure: unknown;
  /** Number of objects that were read, and their bytes. */
  readonly counts = { objects: 0, bytes: 0 };

  constructor(run: CheckRun, store: BlobStore) {
    this.#run = run;
    this.#store = store;
  }

  /** Adds to the number of blobs that will be read. */
  expect(count: number): void {
    this.#expected += count;
    this.#run.expect(count);
  }

  /** Whether rows of a table refer to blobs or list them. */
  concerns({ name, blobFields }: TableShape): boolean {
    return blobFields.length > 0 || name === blobsSchema.name || name === deletedBlobsSchema.name;
  }

  /** Checks one row of a view, of a table that {@link concerns} blobs. */
  async checkRow(view: View, { shape }: TableState, leaf: Node, i: number): Promise<void> {
    const paused = this.#run.pause();
    if (paused !== undefined) await paused;
    try {
      if (shape.name === blobsSchema.name) await this.#checkRecord(view, shape, leaf, i);
      else if (shape.name === deletedBlobsSchema.name) await this.#checkDeleted(view, shape, leaf, i);
      else for (const field of shape.blobFields) await this.#checkReference(view, shape, field, leaf, i);
    } catch (error) {
      this.#run.findings.addError({ table: shape.name }, error, leaf.name);
    }
  }

  async #checkReference(view: View, shape: TableShape, field: LayoutField, leaf: Node, i: number): Promise<void> {
    const blob = readField(leaf, leaf.rowBase(i), field) as string | null;
    if (blob === null) return;
    const key = leaf.key(i);
    const found = await this.#lookup('_blobs', () => lookupBlob(view, '_blobs', blob));
    if (found === 'unreadable') return;
    const add = (what: string): void => {
      const message = `Field '${field.name}' of ${rowText(shape, key)} refers to blob ${blob}, which ${what}`;
      this.#run.findings.add({ table: shape.name }, leaf.name, message);
    };
    if (found === undefined) add('is not listed');
    else {
      const record = decodeRow(blobsShape.layout, found.source, found.base);
      const { table, key: ownerKey, field: ownerField } = record as unknown as Owner;
      const isOwn = table === shape.name && ownerField === field.name && isKey(ownerKey, key);
      if (!isOwn) add('belongs to another row or field');
    }
  }

  /** Looks something up in a table that may be damaged itself. */
  async #lookup<T>(table: string, look: () => T | Promise<T>): Promise<T | 'unreadable'> {
    try {
      return await look();
    } catch (error) {
      this.#run.findings.addError({ table }, error, `data/${table}`);
      return 'unreadable';
    }
  }

  async #checkRecord(view: View, shape: TableShape, leaf: Node, i: number): Promise<void> {
    const row = decodeRow(shape.layout, leaf, leaf.rowBase(i));
    const blob = row['id'] as string;
    const owner = row as unknown as Owner;
    if (!(await this.#refersBack(view, blob, owner))) {
      const message = `Blob ${blob} is listed as that of ${ownerText(view, owner)}, which does not refer to it`;
      this.#run.findings.add({ table: shape.name }, leaf.name, message);
    }
    await this.#checkObject({ table: shape.name }, blob, checkBlobRecord(blob, row), ownerText(view, owner));
  }

  /** Whether the owner's field holds the blob, or cannot be read. */
  async #refersBack(view: View, blob: string, { table, key, field }: Owner): Promise<boolean> {
    const state = typeof table === 'string' ? view.table(table) : undefined;
    const own = state?.shape.blobFields.find(({ name }) => name === field);
    if (state === undefined || own === undefined || !isBytes(key)) return false;
    const row = await this.#lookup(state.shape.name, () => state.lookup(key));
    if (row === 'unreadable') return true;
    return row !== undefined && readField(row.source, row.base, own) === blob;
  }

  async #checkDeleted(view: View, shape: TableShape, leaf: Node, i: number): Promise<void> {
    const blob = shape.rowKey(leaf, leaf.rowBase(i)) as string;
    if ((await this.#lookup('_blobs', () => isListed(view, '_blobs', blob))) !== true) return;
    const message = `Blob ${blob} is listed as deleted, and as one that a row refers to`;
    this.#run.findings.add({ table: shape.name }, leaf.name, message);
  }

  /** Checks that the blob of a record in an earlier state is still there. `present`: the state whose blobs are all checked. */
  async checkEarlier(subject: Subject, present: View, leaf: Node, i: number): Promise<void> {
    try {
      const row = decodeRow(blobsShape.layout, leaf, leaf.rowBase(i));
      const blob = row['id'] as string;
      if (this.#earlier.has(blob) || (await isListed(present, '_blobs', blob))) return;
      this.#earlier.add(blob);
      const owner = `a row of generation ${subject.generation}`;
      await this.#checkObject(subject, blob, checkBlobRecord(blob, row), owner);
    } catch (error) {
      this.#run.findings.addError(subject, error, leaf.name);
    }
  }

  /** Begins to read an object. Resolves once there is room for the next. */
  async #checkObject(subject: Subject, blob: string, record: BlobRecord, owner: string): Promise<void> {
    const bytes = Math.min(record.sizeBytes, pieceBytes);
    while (this.#reads.size >= maxReads || (this.#reads.size > 0 && this.#bytes + bytes > maxReadBytes)) {
      await Promise.race(this.#reads);
    }
    this.#throwFailure();
    // Blobs of pending commits and of earlier states were not counted in advance.
    if (this.#expected > 0) this.#expected--;
    else this.#run.expect(1);
    this.#bytes += bytes;
    const read = this.#readObject(subject, blob, record, owner)
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#reads.delete(read);
        this.#bytes -= bytes;
      });
    this.#reads.add(read);
  }

  async #readObject(subject: Subject, blob: string, record: BlobRecord, owner: string): Promise<void> {
    const { findings, signal } = this.#run;
    const name = blobName(blob);
    try {
      await this.#store.check(blob, record, signal);
      this.counts.objects++;
      this.counts.bytes += record.sizeBytes;
    } catch (error) {
      if (error instanceof BlobNotFoundError) findings.add(subject, name, `The blob of ${owner} is missing`);
      else if (isUnreadable(error)) findings.add(subject, name, `${error.message}: that of ${owner}`);
      else throw error;
    }
    this.#run.done(1);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure as Error;
  }

  /** Resolves once all reads that were begun have ended. */
  async finish(): Promise<void> {
    await Promise.all(this.#reads);
    this.#throwFailure();
  }
}

function isKey(value: unknown, key: Uint8Array): boolean {
  return isBytes(value) && compareBytes(value, key) === 0;
}

function ownerText(view: View, { table, key, field }: Owner): string {
  const shape = typeof table === 'string' ? view.table(table)?.shape : undefined;
  if (shape === undefined || !isBytes(key)) return `a row of table '${String(table)}'`;
  return `field '${String(field)}' of ${rowText(shape, key)}`;
}
