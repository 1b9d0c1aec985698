/** The client of a driver: opened with the first request, and closed once nothing uses it any more. */

/** A client that can be closed. */
export interface Closable {
  /** Closes its connections. */
  close(): void;
}

/**
 * Opens a client when it is first needed. Closing waits for running requests, because other databases may share the driver; the next
 * request opens another client.
 */
export class ClientInUse<C extends Closable> {
  readonly #openClient: () => Promise<C>;
  #open: Promise<C> | undefined;
  #opened: C | undefined;
  /** Number of running requests and uploads per client. */
  readonly #underWay = new Map<C, number>();
  /** Clients to close as soon as nothing uses them. */
  readonly #closing = new Set<C>();

  /** `openClient` opens a client, and rejects with `StorageError`. */
  constructor(openClient: () => Promise<C>) {
    this.#openClient = openClient;
  }

  /** The client that was opened last, for synchronous getters. */
  get opened(): C | undefined {
    return this.#opened;
  }

  /** Opens the client at the first call. Rejects with the error of opening; the next call tries again. */
  async open(): Promise<C> {
    this.#open ??= this.#openClient();
    const open = this.#open;
    try {
      this.#opened = await open;
      return this.#opened;
    } catch (error) {
      if (this.#open === open) this.#open = undefined;
      throw error;
    }
  }

  /** Runs requests with the client, which stays open until they have ended. */
  async use<T>(run: (client: C) => Promise<T>): Promise<T> {
    const client = await this.open();
    this.#underWay.set(client, (this.#underWay.get(client) ?? 0) + 1);
    try {
      return await run(client);
    } finally {
      const left = (this.#underWay.get(client) ?? 1) - 1;
      if (left > 0) this.#underWay.set(client, left);
      else this.#underWay.delete(client);
      this.#closeUnused(client);
    }
  }

  /** Closes the client once its running requests have ended. Does not wait for that. */
  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    // A client that could not be opened needs no closing.
    const client = await open?.catch(() => undefined);
    if (client === undefined) return;
    this.#closing.add(client);
    this.#closeUnused(client);
  }

  #closeUnused(client: C): void {
    if (this.#underWay.has(client) || !this.#closing.delete(client)) return;
    client.close();
  }
}
