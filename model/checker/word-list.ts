/** Lists of words that grow without being copied: the states to expand, and the predecessors of states. */
const chunkBits = 18;

/** Records of a fixed number of words. */
export class RecordList {
  length = 0;
  readonly #width: number;
  readonly #perChunk: number;
  readonly #chunks: Int32Array[] = [];

  constructor(width: number) {
    this.#width = width;
    this.#perChunk = Math.max(1, Math.floor((1 << chunkBits) / width));
  }

  push(record: Int32Array): void {
    const width = this.#width;
    const within = this.length % this.#perChunk;
    if (within === 0) this.#chunks.push(new Int32Array(this.#perChunk * width));
    const chunk = this.#chunks[this.#chunks.length - 1] as Int32Array;
    const at = within * width;
    for (let i = 0; i < width; i++) chunk[at + i] = record[i] as number;
    this.length++;
  }

  /** Copies a record. */
  read(index: number, to: Int32Array): void {
    const width = this.#width;
    const chunk = this.#chunks[Math.floor(index / this.#perChunk)] as Int32Array;
    const at = (index % this.#perChunk) * width;
    for (let i = 0; i < width; i++) to[i] = chunk[at + i] as number;
  }

  /** Gives the memory of all records before one back; they must not be read any more. */
  forgetBefore(index: number): void {
    const chunk = Math.floor(index / this.#perChunk) - 1;
    if (chunk >= 0) this.#chunks[chunk] = emptyChunk;
  }
}

const emptyChunk = new Int32Array(0);

/** Single words. */
export class WordList {
  length = 0;
  readonly #chunks: Int32Array[] = [];

  push(word: number): void {
    const within = this.length & ((1 << chunkBits) - 1);
    if (within === 0) this.#chunks.push(new Int32Array(1 << chunkBits));
    (this.#chunks[this.#chunks.length - 1] as Int32Array)[within] = word;
    this.length++;
  }

  read(index: number): number {
    return (this.#chunks[index >>> chunkBits] as Int32Array)[index & ((1 << chunkBits) - 1)] as number;
  }
}
