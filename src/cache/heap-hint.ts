/**
 * Tells the runtime of blocks that went from memory. V8 looks for memory outside its heap that nobody uses any more, as that of
 * blocks, once there are 64 MiB more of it, and while it looks as much may come again: more than a small budget leaves room for.
 * It counts buffers by their length, so that one of that length makes it look at once. The system gives such a buffer no memory
 * until something is written to it, and nothing ever is.
 */

const mebibyte = 1024 * 1024;
/** By how much V8 lets memory outside its heap grow before it looks (`kExternalAllocationSoftLimit`). */
const softLimitBytes = 64 * mebibyte;
/** Looking more often than that would cost more than the memory is worth. */
const leastBytes = 16 * mebibyte;
/** Part of the budget that unused blocks may take before they are looked for. */
const unusedShare = 1 / 4;

export class CollectionHint {
  readonly #everyBytes: number;
  readonly #give: (lengthBytes: number) => void;
  #unusedBytes = 0;

  /** `budgetBytes`: of what unused blocks take a part. `give`, which gives the hint, is replaced by tests. */
  constructor(budgetBytes: number, give: (lengthBytes: number) => void = allocate) {
    this.#everyBytes = Math.max(leastBytes, Math.floor(budgetBytes * unusedShare));
    this.#give = give;
  }

  /** So many bytes are not used any more. */
  add(bytes: number): void {
    this.#unusedBytes += bytes;
    if (this.#unusedBytes < this.#everyBytes) return;
    this.#unusedBytes = 0;
    // With a larger budget the runtime looks often enough by itself.
    if (this.#everyBytes < softLimitBytes) this.#give(softLimitBytes);
  }
}

function allocate(lengthBytes: number): void {
  try {
    void new ArrayBuffer(lengthBytes);
  } catch {
    // Where there is no room for it, the runtime has looked before it said so.
  }
}
