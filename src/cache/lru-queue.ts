/** Slots in a line: the cache takes from the front and puts at the end, and can take out any of them at once. */

/** What a queue asks of its members; each is in one queue at most. */
export interface Queued<T> {
  bytes: number;
  before: T | undefined;
  after: T | undefined;
}

export class LruQueue<T extends Queued<T>> {
  first: T | undefined;
  #last: T | undefined;
  count = 0;
  bytes = 0;

  push(slot: T): void {
    slot.before = this.#last;
    slot.after = undefined;
    if (this.#last === undefined) this.first = slot;
    else this.#last.after = slot;
    this.#last = slot;
    this.count++;
    this.bytes += slot.bytes;
  }

  remove(slot: T): void {
    if (slot.before === undefined) this.first = slot.after;
    else slot.before.after = slot.after;
    if (slot.after === undefined) this.#last = slot.before;
    else slot.after.before = slot.before;
    slot.before = undefined;
    slot.after = undefined;
    this.count--;
    this.bytes -= slot.bytes;
  }

  clear(): void {
    this.first = undefined;
    this.#last = undefined;
    this.count = 0;
    this.bytes = 0;
  }
}
