/** A small HTTP server on loopback for the services of AWS that hand out credentials. It records the requests that arrive. */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that arrived, with its whole body. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An answer of a server. */
export interface ServerAnswer {
  readonly status: number;
  readonly body?: string;
  readonly type?: string;
}

/** Answers a request. */
export type Handler = (request: ReceivedRequest) => ServerAnswer;

/** A running server. */
export interface AwsServer extends AsyncDisposable {
  readonly endpoint: string;
  readonly requests: ReceivedRequest[];
  /** Answers in place of the service, or leaves a request without an answer (`'silence'`). May be changed at any time. */
  intercept: ((request: ReceivedRequest) => ServerAnswer | 'silence' | undefined) | undefined;
}

/** Credentials as AWS's services put them in their answers. */
export interface IssuedCredentials {
  readonly AccessKeyId: string;
  readonly SecretAccessKey: string;
  readonly Token: string;
  readonly Expiration: string;
}

/** Makes the n-th credentials of a server, which expire at a time. */
export function issue(n: number, expiresMs: number): IssuedCredentials {
  return {
    AccessKeyId: `ASIAISSUED${n}`,
    SecretAccessKey: `wJalrXUtnFEMI/K7MDENG/bPxRfiCYISSUED${n}`,
    Token: `IQoJb3JpZ2luX2VjISSUED/+${n}==`,
    // Without milliseconds, as AWS writes times.
    Expiration: new Date(expiresMs).toISOString().replace(/\.\d+Z$/, 'Z'),
  };
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming.setEncoding('utf8')) text += String(chunk);
  return text;
}

/** Starts a server that answers with `handler`. */
export async function startAwsServer(handler: Handler): Promise<AwsServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer((incoming, response) => {
    const respond = async (): Promise<void> => {
      const { method = '', url = '', headers } = incoming;
      const request = { method, path: url, headers, body: await bodyOf(incoming) };
      requests.push(request);
      const intercepted = running.intercept?.(request);
      if (intercepted === 'silence') return;
      const { status, type = 'text/plain', body = '' } = intercepted ?? handler(request);
      response.writeHead(status, { 'content-type': type, server: 'EC2ws' });
      response.end(body);
    };
    void respond();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const running: AwsServer = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    intercept: undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return running;
}
