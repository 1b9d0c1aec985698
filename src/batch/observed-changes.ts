/** Folded rows that are shown to the blobs' bookkeeping as they pass. */
import { isPromise } from '../base/brands.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { ChangeStream } from '../tree/write.ts';
import type { BlobChanges } from './blob-changes.ts';
import type { FoldedChanges } from './fold.ts';
import type { TableOperations } from './operations.ts';

export class ObservedChanges implements ChangeStream {
  readonly #folded: FoldedChanges;
  readonly #list: TableOperations;
  readonly #blobs: BlobChanges;

  /** The first row is shown at once. Throws `BlobReferenceError`. */
  constructor(folded: FoldedChanges, list: TableOperations, blobs: BlobChanges) {
    this.#folded = folded;
    this.#list = list;
    this.#blobs = blobs;
    this.#observe();
  }

  get done(): boolean {
    return this.#folded.done;
  }

  get key(): Uint8Array {
    return this.#folded.key;
  }

  get keyStart(): number {
    return this.#folded.keyStart;
  }

  get keyEnd(): number {
    return this.#folded.keyEnd;
  }

  get remove(): boolean {
    return this.#folded.remove;
  }

  get source(): RowSource | undefined {
    return this.#folded.source;
  }

  get base(): number {
    return this.#folded.base;
  }

  advance(): void | Promise<void> {
    const advanced = this.#folded.advance();
    if (isPromise(advanced)) return advanced.then(() => this.#observe());
    this.#observe();
    return undefined;
  }

  #observe(): void {
    const { done, key, keyStart, keyEnd, stored, source, base } = this.#folded;
    if (done || source === undefined) return;
    this.#blobs.observe(this.#list.shape, key.slice(keyStart, keyEnd), stored, { source, base });
  }
}
