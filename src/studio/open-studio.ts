/** Makes a Studio: for `studio()`, and for the command, which decides in its own way who may see it. */
import type { Environment } from '../base/env.ts';
import type { Database } from '../index.ts';
import { answerNode } from '../web/node-adapter.ts';
import type { NodeRequest, NodeResponse } from '../web/node-adapter.ts';
import type { Access } from './access.ts';
import { Handler } from './handler.ts';
import type { PageFiles } from './page-answer.ts';
import type { CheckedStudioOptions } from './studio-options.ts';

/** A page that shows a database, as returned by `studio()`. */
export interface StudioHandler {
  /** Answers a request of `fetch`, as Hono, Bun, Deno and Workers have them. Never rejects. May be passed on without the object. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Answers a request of Node.js, as its own server, Express and Fastify have them. Never rejects. */
  readonly node: (request: NodeRequest, response: NodeResponse) => Promise<void>;
  /** Ends all calls and events, and releases the states that are held. The database stays open. */
  readonly close: () => Promise<void>;
}

/** Opens a Studio. `files`: those of the page. */
export function openStudio(
  db: Database,
  environment: Environment,
  access: Access,
  files: PageFiles,
  options: CheckedStudioOptions,
): StudioHandler {
  const handler = new Handler({ db, environment, access, files, options });
  const fetch = (request: Request): Promise<Response> => handler.fetch(request);
  return {
    fetch,
    node: (request, response) => answerNode(fetch, request, response),
    close: () => handler.close(),
  };
}
