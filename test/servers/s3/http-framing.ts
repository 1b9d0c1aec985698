/** Finds where HTTP messages begin and end in the bytes of a connection, and touches nothing in between. */

/** The first lines of a message, as far as anybody here looks at them. */
export interface MessageHead {
  /** `PUT /bucket/key HTTP/1.1`, or `HTTP/1.1 200 OK`. */
  readonly firstLine: string;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
}

export type MessagePiece =
  | { readonly kind: 'head'; readonly head: MessageHead; readonly bytes: Buffer }
  | { readonly kind: 'body'; readonly bytes: Buffer }
  | { readonly kind: 'end' };

/** What comes next: a head, so many bytes of body, a line of the chunked encoding, or body until the connection ends. */
type Expected =
  | { readonly kind: 'head' | 'chunk-size' | 'chunk-end' | 'trailer' | 'rest' }
  | { readonly kind: 'body' | 'chunk'; left: number };

const head: Expected = { kind: 'head' };

/** Heads longer than this are none. */
const maxHeadBytes = 65_536;

function parseHead(text: string): MessageHead {
  const [firstLine = '', ...lines] = text.split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { firstLine, headers: new Map(headers) };
}

/** The status of a response; undefined for a request. */
export function statusOf({ firstLine }: MessageHead): number | undefined {
  const match = /^HTTP\/1\.\d (\d{3})/.exec(firstLine);
  return match === null ? undefined : Number(match[1]);
}

/** Takes the bytes of one direction of a connection as they come, and gives them back in pieces of messages. */
export class HttpFraming {
  readonly #hasBody: (head: MessageHead) => boolean;
  #expected: Expected = head;
  #pending: Buffer = Buffer.alloc(0);

  /** `hasBody` may say that a message has no body, whatever its head says: as the answer to a HEAD has none. */
  constructor(hasBody: (head: MessageHead) => boolean = () => true) {
    this.#hasBody = hasBody;
  }

  /** Whether no message is under way. */
  get isIdle(): boolean {
    return this.#expected.kind === 'head' && this.#pending.length === 0;
  }

  /** Pieces whose bytes, joined, are those that were pushed; what cannot be told yet is kept for the next call. */
  *push(bytes: Buffer): Generator<MessagePiece> {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    while (this.#pending.length > 0) {
      const expected = this.#expected;
      if (expected.kind === 'body' || expected.kind === 'chunk') {
        const taken = this.#take(Math.min(expected.left, this.#pending.length));
        expected.left -= taken.length;
        yield { kind: 'body', bytes: taken };
        if (expected.left > 0) return;
        if (expected.kind === 'body') yield this.#end();
        else this.#expected = { kind: 'chunk-end' };
      } else if (expected.kind === 'rest') {
        yield { kind: 'body', bytes: this.#take(this.#pending.length) };
      } else {
        const piece = expected.kind === 'head' ? this.#takeHead() : this.#takeLine(expected.kind);
        if (piece === undefined) return;
        yield piece;
        if (this.#isOver) yield this.#end();
      }
    }
  }

  /** The last piece of a message that lasts until its connection ends, if one is under way. */
  *finish(): Generator<MessagePiece> {
    if (this.#expected.kind === 'rest') yield this.#end();
  }

  /** Whether the message that began is complete, although its end was not told. */
  #isOver = false;

  #end(): MessagePiece {
    this.#expected = head;
    this.#isOver = false;
    return { kind: 'end' };
  }

  #take(length: number): Buffer {
    const taken = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return taken;
  }

  #takeHead(): MessagePiece | undefined {
    const end = this.#pending.indexOf('\r\n\r\n');
    if (end === -1) {
      if (this.#pending.length > maxHeadBytes) throw new Error('This is not HTTP: its head does not end');
      return undefined;
    }
    const bytes = this.#take(end + 4);
    const parsed = parseHead(bytes.subarray(0, end).toString('latin1'));
    this.#expected = this.#bodyOf(parsed);
    return { kind: 'head', head: parsed, bytes };
  }

  #bodyOf(parsed: MessageHead): Expected {
    const length = Number(parsed.headers.get('content-length') ?? 0);
    const isChunked = /\bchunked$/i.test(parsed.headers.get('transfer-encoding') ?? '');
    const isResponse = statusOf(parsed) !== undefined;
    if (this.#hasBody(parsed)) {
      if (isChunked) return { kind: 'chunk-size' };
      if (length > 0) return { kind: 'body', left: length };
      if (isResponse && !parsed.headers.has('content-length')) return { kind: 'rest' };
    }
    this.#isOver = true;
    return head;
  }

  /** A line of the chunked encoding; it belongs to the body as it is sent. */
  #takeLine(kind: 'chunk-size' | 'chunk-end' | 'trailer'): MessagePiece | undefined {
    const end = this.#pending.indexOf('\r\n');
    if (end === -1) return undefined;
    const bytes = this.#take(end + 2);
    if (kind === 'chunk-end') {
      this.#expected = { kind: 'chunk-size' };
    } else if (kind === 'trailer') {
      this.#isOver = end === 0;
    } else {
      const left = Number.parseInt(bytes.toString('latin1'), 16);
      if (Number.isNaN(left)) throw new Error('This is not HTTP: a chunk has no size');
      this.#expected = left === 0 ? { kind: 'trailer' } : { kind: 'chunk', left };
    }
    return { kind: 'body', bytes };
  }
}
