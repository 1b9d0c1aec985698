/** The stream of one client: whole results, or their differences from the result that the client has. */
import { EventStream } from '../web/event-stream.ts';
import { failureEvent } from './shown-result.ts';
import type { ShownResult } from './shown-result.ts';

/** The results that a stream shows. */
export interface Source {
  /** The newest result; undefined before the first. */
  readonly newest: ShownResult | undefined;
  /** Returns the kept result with a digest; undefined if there is none. */
  withDigest(digest: string | undefined): ShownResult | undefined;
}

export class LiveStream {
  /** When it ends at the latest, by the monotonic clock. */
  readonly endsAtMs: number;
  readonly #source: Source;
  readonly #stream: EventStream;
  /** The digest of the result that the client has. */
  #has: string | undefined;
  #sent: ShownResult | undefined;

  /** `has`: the digest of the result that the client has got from an earlier stream. */
  constructor(source: Source, has: string | undefined, endsAtMs: number, onEnd: () => void) {
    this.#source = source;
    this.endsAtMs = endsAtMs;
    this.#has = has;
    this.#stream = new EventStream({ newest: () => this.#newest(), ended: onEnd });
  }

  get answer(): Response {
    return this.#stream.answer;
  }

  /** Returns the event of the newest result; undefined if it was sent. */
  #newest(): Uint8Array | undefined {
    const { newest } = this.#source;
    if (newest === undefined || newest === this.#sent) return undefined;
    const before = this.#source.withDigest(this.#has);
    this.#sent = newest;
    this.#has = newest.digest;
    return before === undefined ? newest.whole() : newest.since(before);
  }

  /** Sends the newest result, unless the client has it, or has to take another event first. */
  show(): void {
    this.#stream.show();
  }

  /** Shows proxies that the connection is in use. */
  beat(): void {
    this.#stream.beat();
  }

  /** Says why there are no more results, and ends. */
  fail(code: string, message: string): void {
    this.#stream.end(failureEvent(code, message));
  }

  /** Ends: the client asks again. */
  end(): void {
    this.#stream.end();
  }
}
