/**
 * The stream of one client. It holds one event at most that the client has not taken: a slow client gets the newest result once it has
 * taken the one before, and none in between.
 */
import { encodeUtf8 } from '../base/bytes.ts';
import { eventHeaders } from '../web/answers.ts';
import { failureEvent } from './shown-result.ts';
import type { ShownResult } from './shown-result.ts';

const heartbeat = encodeUtf8(': \n\n');

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
  readonly answer: Response;
  readonly #source: Source;
  readonly #onEnd: (stream: LiveStream) => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** The digest of the result that the client has. */
  #has: string | undefined;
  #sent: ShownResult | undefined;

  /** `has`: the digest of the result that the client has got from an earlier stream. */
  constructor(source: Source, has: string | undefined, endsAtMs: number, onEnd: (stream: LiveStream) => void) {
    this.#source = source;
    this.endsAtMs = endsAtMs;
    this.#onEnd = onEnd;
    this.#has = has;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.show(),
      cancel: () => this.#left(),
    });
    this.answer = new Response(body, { headers: eventHeaders });
  }

  get #hasRoom(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** Sends the newest result, unless the client has it, or has to take another event first. */
  show(): void {
    const { newest } = this.#source;
    if (newest === undefined || newest === this.#sent || !this.#hasRoom) return;
    const before = this.#source.withDigest(this.#has);
    this.#sent = newest;
    this.#has = newest.digest;
    this.#controller?.enqueue(before === undefined ? newest.whole() : newest.since(before));
  }

  /** Shows proxies that the connection is in use. */
  beat(): void {
    if (this.#hasRoom) this.#controller?.enqueue(heartbeat);
  }

  /** Says why there are no more results, and ends. */
  fail(code: string, message: string): void {
    this.#controller?.enqueue(failureEvent(code, message));
    this.end();
  }

  /** Ends: the client asks again. */
  end(): void {
    this.#controller?.close();
    this.#left();
  }

  #left(): void {
    if (this.#controller === undefined) return;
    this.#controller = undefined;
    this.#onEnd(this);
  }
}
