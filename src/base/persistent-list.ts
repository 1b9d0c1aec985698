/**
 * A list that does not change. A list with one item more shares the memory of the list before it, so that growing one by one takes no
 * time that grows with its length. An older list keeps the items of the newer ones in memory.
 */
export class PersistentList<T> implements Iterable<T> {
  /** The items of this list, and behind them those of lists that were made from it. */
  readonly #items: T[];
  readonly length: number;

  private constructor(items: T[], length: number) {
    this.#items = items;
    this.length = length;
  }

  static of<T>(items: Iterable<T> = []): PersistentList<T> {
    const own = [...items];
    return new PersistentList(own, own.length);
  }

  /** Returns the item at a position; undefined if there is none. */
  get(position: number): T | undefined {
    return position < this.length ? this.#items[position] : undefined;
  }

  get last(): T | undefined {
    return this.get(this.length - 1);
  }

  /** Returns a list of these items and one more. */
  with(item: T): PersistentList<T> {
    // Another list may have grown from this one.
    const items = this.#items.length === this.length ? this.#items : this.#items.slice(0, this.length);
    items.push(item);
    return new PersistentList(items, items.length);
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let i = 0; i < this.length; i++) yield this.#items[i] as T;
  }
}
