/** Answers the requests of a server of Node.js, and of Express and Fastify, which are made of them. */
import { messageOf } from '../base/brands.ts';
import { newAbortController } from '../base/abort.ts';
import { encodeUtf8 } from '../base/bytes.ts';
import { errorAnswer, jsonText } from './answers.ts';

/** A request as Node.js has it: `IncomingMessage`. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  /** The method, in upper case. */
  readonly method?: string | undefined;
  /** The path and the query. */
  readonly url?: string | undefined;
  /** The path and the query before Express cut off the path at which a handler is mounted. */
  readonly originalUrl?: string | undefined;
  /** The headers, by their names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The body if it was read and parsed already. */
  readonly body?: unknown;
}

/** An answer as Node.js has it: `ServerResponse`. */
export interface NodeResponse {
  /** Sends the status and the headers. */
  writeHead(status: number, headers: Record<string, string>): unknown;
  /** Sends bytes. False: it has not sent them yet. */
  write(bytes: Uint8Array): boolean;
  /** Ends the answer. */
  end(): unknown;
  /** Breaks the connection. */
  destroy(error?: Error): unknown;
  /** Listens to an event. */
  on(event: 'close' | 'drain', listener: () => void): unknown;
}

/** The body of a request, which is read as it is needed. */
function bodyOf(request: NodeRequest): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  // Some other handler has read it.
  if (request.body !== undefined) return encodeUtf8(jsonText(request.body)) as Uint8Array<ArrayBuffer>;
  const parts = request[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next: IteratorResult<Uint8Array, unknown> = await parts.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    // What is not read stays where it is: to end the iteration would break the connection before the answer.
  });
}

/** Returns a request of Node.js as one of `fetch`. Throws for a request without a valid host. */
export function toRequest(request: NodeRequest, signal: AbortSignal): Request {
  const { method = 'GET', headers } = request;
  const { host } = headers;
  if (typeof host !== 'string') throw new TypeError('the header Host is missing');
  const path = request.originalUrl ?? request.url ?? '/';
  // An absolute URL would replace the host.
  if (!path.startsWith('/')) throw new TypeError('the request names no path');
  const given = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':')) continue;
    given.set(name, typeof value === 'string' ? value : value.join(', '));
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const body = hasBody ? { body: bodyOf(request), duplex: 'half' as const } : {};
  return new Request(new URL(`http://${host}${path}`), { method, headers: given, signal, ...body });
}

/** Sends an answer, as fast as the client takes it. */
async function send(answer: Response, response: NodeResponse, closed: AbortSignal): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  const reader = (answer.body as ReadableStream<Uint8Array> | null)?.getReader();
  if (reader === undefined) {
    response.end();
    return;
  }
  let onDrain = (): void => undefined;
  const wake = (): void => onDrain();
  response.on('drain', wake);
  closed.addEventListener('abort', () => {
    reader.cancel().catch(() => undefined);
    wake();
  });
  for (;;) {
    const next = await reader.read();
    if (next.done || closed.aborted) break;
    if (!response.write(next.value)) {
      await new Promise<void>((resolve) => {
        onDrain = resolve;
        if (closed.aborted) resolve();
      });
    }
  }
  response.end();
}

/** Answers a request of Node.js. Never rejects. */
export async function answerNode(
  fetch: (request: Request) => Promise<Response>,
  request: NodeRequest,
  response: NodeResponse,
): Promise<void> {
  const closing = newAbortController();
  response.on('close', () => closing.abort());
  try {
    let asked: Request;
    try {
      asked = toRequest(request, closing.signal);
    } catch (error) {
      const message = `The request cannot be answered: ${messageOf(error)}.`;
      await send(errorAnswer(400, { code: 'BAD_REQUEST', message }), response, closing.signal);
      return;
    }
    await send(await fetch(asked), response, closing.signal);
  } catch (error) {
    // The answer has begun: all that can be said is that it is not whole.
    response.destroy(error as Error);
  }
}
