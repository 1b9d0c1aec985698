/** Tells several listeners of the same kind of event. */
export class Emitter<T> {
  readonly #listeners = new Set<(event: T) => void>();

  /** Tells `listener` of every event from now on, until the returned function is called. It must not throw. */
  on(listener: (event: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells all listeners, in the order in which they came. */
  emit(event: T): void {
    for (const listener of this.#listeners) listener(event);
  }
}
