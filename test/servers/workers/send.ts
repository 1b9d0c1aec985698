/** Sends requests to a Worker that Miniflare runs. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Miniflare } from 'miniflare';

interface WorkerAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends a request, and reads the whole answer. Each request has a connection of its own: `dispatchFetch` of Miniflare keeps connections
 * for later requests, and a request then fails with ECONNRESET if the Worker's runtime closes its connection just as the request is sent.
 */
export async function send(miniflare: Miniflare, method: string, path: string, body?: string): Promise<WorkerAnswer> {
  const sent = request(new URL(path, await miniflare.ready), { method, agent: false });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, text: await text(response) };
}
