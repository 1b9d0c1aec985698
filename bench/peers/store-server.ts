/** The object store of the benchmark, in a process of its own: the tests' S3 server, slowed down, and counting. */
import { startS3Server } from '../../test/servers/s3-server/server.ts';
import type { StoreTarget } from './contender.ts';

export type ServerRequest =
  | { readonly kind: 'target'; readonly prefix: string }
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** Counts from here on. */
  | { readonly kind: 'clear' }
  | { readonly kind: 'traffic' };

export interface Traffic {
  readonly requests: number;
  readonly bytes: number;
}

const bucket = 'bench';
const server = await startS3Server({ buckets: [bucket] });
let delayMs = 0;
server.intercept = () => (delayMs === 0 ? undefined : { delayMs });
// A load makes many requests, which would all be kept.
setInterval(() => {
  if (server.log.length > 100_000) server.clearLog();
}, 1000);

function answer(request: ServerRequest): StoreTarget | Traffic {
  if (request.kind === 'delay') delayMs = request.delayMs;
  if (request.kind === 'clear') server.clearLog();
  const bytes = server.log.reduce((sum, { bytesIn, bytesOut }) => sum + bytesIn + bytesOut, 0);
  if (request.kind !== 'target') return { requests: server.log.length, bytes };
  const { endpoint, region, credentials } = server;
  return { endpoint, bucket, prefix: request.prefix, region, ...credentials };
}

process.on('message', (request: ServerRequest) => process.send?.({ value: answer(request) }));
process.on('disconnect', () => process.exit());
