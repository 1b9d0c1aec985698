/** Streams one after the other, whose first rows are read together: each would otherwise wait for its own way to them. */
import { isPromise } from '../../base/brands.ts';
import type { RowSource } from '../../format/row-layout.ts';
import { HitList } from './row-batch.ts';
import type { HitStream } from './row-batch.ts';

/** How many of the next streams are begun ahead: at first, and at most. */
const firstWindow = 2;
const widestWindow = 8;
/** Rows that are asked of each of them: they are held, with their blocks, until its turn comes. */
const rowsAhead = 8;

interface Part {
  readonly stream: HitStream;
  /** Rows that it gave before its turn. */
  readonly early: HitList;
  /** What it answered when it was begun, until that is taken. */
  moved: Promise<boolean> | undefined;
}

/** Whatever is wrong is told to whoever comes to the stream, also what it throws at once. */
function begin({ stream, early }: Part): Promise<boolean> {
  const moved = (async (): Promise<boolean> => stream.next(early))();
  moved.catch(() => undefined);
  return moved;
}

/** The next ones are begun once a second one must be waited for. */
export class UnionStream implements HitStream {
  readonly #parts: readonly Part[];
  #at = 0;
  /** Those before it were begun. */
  #begun = 0;
  #window = 0;

  constructor(streams: readonly HitStream[]) {
    this.#parts = streams.map((stream) => ({ stream, early: new HitList(rowsAhead), moved: undefined }));
  }

  next(hits: HitList): boolean | Promise<boolean> {
    const part = this.#parts[this.#at];
    if (part === undefined) return false;
    const { moved } = part;
    part.moved = undefined;
    const more = moved ?? part.stream.next(hits);
    if (!isPromise(more)) return this.#after(part, more, hits);
    this.#beginNext();
    return more.then((moves) => this.#after(part, moves, hits));
  }

  #after({ early }: Part, more: boolean, hits: HitList): boolean {
    for (let i = 0; i < early.count; i++) hits.add(early.sources[i] as RowSource, early.bases[i] as number);
    early.clear();
    if (!more) this.#at++;
    return this.#at < this.#parts.length;
  }

  #beginNext(): void {
    if (this.#at === 0) return;
    this.#window = Math.min(widestWindow, Math.max(firstWindow, this.#window * 2));
    const end = Math.min(this.#parts.length, this.#at + 1 + this.#window);
    for (let i = Math.max(this.#at + 1, this.#begun); i < end; i++) {
      const part = this.#parts[i] as Part;
      part.moved = begin(part);
    }
    this.#begun = Math.max(this.#begun, end);
  }
}
