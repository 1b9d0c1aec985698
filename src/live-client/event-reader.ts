/** Reads server-sent events from the bytes of an answer. */

/** An event of a stream. */
export interface StreamEvent {
  readonly name: string;
  readonly id: string;
  readonly data: string;
}

export class EventReader {
  readonly #decoder = new TextDecoder();
  #rest = '';
  #name = '';
  #data: string[] = [];
  #id = '';

  /** Returns the events that are whole with these bytes. */
  take(bytes: Uint8Array): StreamEvent[] {
    const lines = this.#decoder.decode(bytes, { stream: true }).split('\n');
    // Only what is new is searched: the line of a large result comes in many parts.
    lines[0] = this.#rest + (lines[0] ?? '');
    this.#rest = lines.pop() ?? '';
    return lines.flatMap((line) => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line) ?? []);
  }

  #line(line: string): StreamEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'event') this.#name = value;
    else if (field === 'id') this.#id = value;
    else if (field === 'data') this.#data.push(value);
    return undefined;
  }

  #dispatch(): StreamEvent | undefined {
    const event = { name: this.#name, id: this.#id, data: this.#data.join('\n') };
    const isEvent = this.#data.length > 0;
    this.#name = '';
    this.#data = [];
    return isEvent ? event : undefined;
  }
}
