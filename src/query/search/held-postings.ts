/** The rows of several words together, such as all words that begin alike: read beforehand, and held in memory. */
import type { Pacer } from '../../base/pacer.ts';
import { KeyList } from '../../format/key-list.ts';
import { PostingRun, RunBuilder } from './posting-run.ts';
import type { Posting } from './postings.ts';

/** About the bytes that a row takes besides its key. */
const rowBytes = 20;

export class HeldPostings {
  readonly #keys = new KeyList();
  readonly #frequencies: number[] = [];
  readonly #lengths: number[] = [];

  /** The memory that it takes. */
  get sizeBytes(): number {
    return this.#keys.sizeBytes + this.#keys.count * rowBytes;
  }

  /** Adds a row with one of the words. */
  add({ bytes, keyStart, keyEnd, frequency, length }: Posting): void {
    this.#keys.writer.appendRange(bytes, keyStart, keyEnd);
    this.#keys.end();
    this.#frequencies.push(frequency);
    this.#lengths.push(length);
  }

  /** Returns the rows in order, and one for those that are the same. */
  async sorted(pacer: Pacer): Promise<PostingRun> {
    const keys = this.#keys;
    const order = await keys.sorted(pacer);
    const builder = new RunBuilder();
    for (let at = 0; at < order.length; ) {
      const position = order[at] as number;
      let frequency = this.#frequencies[position] as number;
      while (++at < order.length && keys.isSame(position, order[at] as number)) {
        frequency += this.#frequencies[order[at] as number] as number;
      }
      const length = this.#lengths[position] as number;
      builder.add(keys.bytes, keys.start(position), keys.endOf(position), frequency, length);
    }
    return new PostingRun(builder);
  }
}
