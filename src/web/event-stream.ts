/**
 * A stream of server-sent events to one client. It holds one event at most that the client has not taken: a slow client gets the newest
 * one once it has taken the one before, and none in between.
 */
import { encodeUtf8 } from '../base/bytes.ts';
import { eventHeaders } from './answers.ts';

const heartbeat = encodeUtf8(': \n\n');

/** Encodes an event. `id`: the client says with its next request that it has this event; empty for none. `data`: one line. */
export function eventOf(name: string, data: string, id = ''): Uint8Array {
  return encodeUtf8(`event: ${name}\n${id === '' ? '' : `id: ${id}\n`}data: ${data}\n\n`);
}

/** The events of a stream, and what is done at its end. */
export interface EventSource {
  /** Returns the newest event; undefined if the client has got it. */
  newest(): Uint8Array | undefined;
  /** The client has left, or the stream was ended. Called once. */
  ended(): void;
}

export class EventStream {
  readonly answer: Response;
  readonly #source: EventSource;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(source: EventSource) {
    this.#source = source;
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

  /** Sends the newest event, unless the client has to take another one first. */
  show(): void {
    if (!this.#hasRoom) return;
    const event = this.#source.newest();
    if (event !== undefined) this.#controller?.enqueue(event);
  }

  /** Shows proxies that the connection is in use. */
  beat(): void {
    if (this.#hasRoom) this.#controller?.enqueue(heartbeat);
  }

  /** Sends a last event, if any, and ends. */
  end(last?: Uint8Array): void {
    if (last !== undefined) this.#controller?.enqueue(last);
    this.#controller?.close();
    this.#left();
  }

  #left(): void {
    if (this.#controller === undefined) return;
    this.#controller = undefined;
    this.#source.ended();
  }
}
