/** The frame of the test servers: a port on loopback, whole bodies, connections that are cut, and answers that are cut short. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An answer to send. */
export interface FramedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: Uint8Array;
  /** The size to state, if it is not that of the body. */
  readonly sizeBytes?: number | undefined;
}

/** What becomes of a request: an answer, of which only half of the body is sent with `isCutShort`; or a cut connection. */
export type Reply =
  | 'cut'
  | { readonly answer: FramedAnswer; readonly isCutShort: boolean; sent(bytesOut: number): void };

async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A server on a port of its own, which it keeps when it starts again. */
export abstract class HttpFrame {
  #server: Server | undefined;
  #port = 0;

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async listen(): Promise<void> {
    const server = createServer();
    server.on('request', (message: IncomingMessage, response: ServerResponse) => {
      this.#serve(server, message, response).catch((error: unknown) => {
        // A fault of the test itself: the run should fail with it, and not wait for an answer.
        message.destroy();
        throw error;
      });
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Cuts all connections, and refuses new ones until `restart()`. Requests that are held back have no effect any more. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  /** Closes if need be, and starts again on the same port with everything that was stored. */
  async restart(): Promise<void> {
    await this.close();
    await this.listen();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Milliseconds since 1970 by the server's clock. */
  protected abstract now(): number;

  /** Replies to a request whose body is there. `isOpen` says whether the server that took the request still listens. */
  protected abstract reply(message: IncomingMessage, body: Buffer, isOpen: () => boolean): Promise<Reply>;

  async #serve(server: Server, message: IncomingMessage, response: ServerResponse): Promise<void> {
    let body: Buffer;
    try {
      body = await readBody(message);
    } catch {
      // The client gave up in the middle of the body, so there never was a request.
      return;
    }
    // A request that is still held back when its server ends must not take effect in the next one.
    const reply = await this.reply(message, body, () => this.#server === server);
    if (reply === 'cut') message.socket.resetAndDestroy();
    else this.#send(message, response, reply);
  }

  #send({ method }: IncomingMessage, response: ServerResponse, reply: Exclude<Reply, 'cut'>): void {
    const { answer, isCutShort } = reply;
    const { status, headers = {}, sizeBytes, body: whole = Buffer.alloc(0) } = answer;
    const hasBody = status !== 204 && status !== 304;
    const body = hasBody && method !== 'HEAD' ? whole : Buffer.alloc(0);
    response.sendDate = false;
    response.statusCode = status;
    const known = Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined);
    for (const [name, value] of known) response.setHeader(name, value);
    if (hasBody) response.setHeader('content-length', sizeBytes ?? body.length);
    response.setHeader('date', new Date(this.now()).toUTCString());
    const sent = isCutShort ? body.subarray(0, Math.floor(body.length / 2)) : body;
    reply.sent(sent.length);
    if (!isCutShort) response.end(sent);
    else if (sent.length === 0) response.socket?.destroy();
    else response.write(sent, () => response.socket?.destroy());
  }
}
