/** The exports of `store-db/live`: live queries for browsers, to mount in an application. */
import type { Database } from './api/database.ts';
import { realEnvironment } from './base/env.ts';
import { LiveRequests } from './live-server/live-handler.ts';
import { checkLiveDatabase, liveHandlerOptions } from './live-server/live-options.ts';
import type { LiveHandlerOptions } from './live-server/live-options.ts';
import type { LiveData } from './live-client/local-feed.ts';
import type { LiveResults } from './query/live-results.ts';
import { answerNode } from './web/node-adapter.ts';
import type { NodeRequest, NodeResponse } from './web/node-adapter.ts';

/** Serves live queries, as returned by `liveHandler()`. */
export interface LiveQueryHandler {
  /** Answers a request of `fetch`, as Hono, Bun, Deno and Workers have them. Never rejects. May be passed on without the object. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Answers a request of Node.js, as its own server, Express and Fastify have them. Never rejects. */
  readonly node: (request: NodeRequest, response: NodeResponse) => Promise<void>;
  /** Ends all streams, and refuses further requests. The database stays open. */
  readonly close: () => void;
}

/** The data of the queries of `liveHandler()` by their names: the type of a client is `liveClient<LiveDataOf<typeof queries>>()`. */
export type LiveDataOf<Q extends object> = {
  readonly [N in keyof Q]: Q[N] extends { readonly watch: (...given: never) => LiveResults<infer T> }
    ? LiveData<T>
    : never;
};

/**
 * Makes a handler that serves queries of a database as streams of server-sent events, for `liveClient()` of `store-db/live-client`: `GET`
 * of the base path, the name of a query and `?params=`, which is JSON. Requests with the same name and parameters share one watched query.
 * Mount it in an application; `authorize` is asked about every request. Throws `InvalidOptionError`, also without `authorize`.
 */
export function liveHandler<Q extends Record<string, unknown>>(
  db: Database,
  options: LiveHandlerOptions<Q>,
): LiveQueryHandler {
  checkLiveDatabase(db);
  const checked = liveHandlerOptions.check('liveHandler()', options as LiveHandlerOptions);
  const requests = new LiveRequests(db, realEnvironment, checked);
  const fetch = (request: Request): Promise<Response> => requests.fetch(request);
  return { fetch, node: (request, response) => answerNode(fetch, request, response), close: () => requests.close() };
}

export type {
  AskedQuery,
  Authorization,
  LiveHandlerOptions,
  LiveQueryDefinition,
} from './live-server/live-options.ts';
export type { StandardIssue, StandardResult, StandardSchema } from './schema/standard-schema.ts';
