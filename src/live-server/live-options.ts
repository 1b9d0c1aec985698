/** The options of `liveHandler()`. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { kinds, OptionTable } from '../base/options.ts';
import { isStandardSchema } from '../schema/standard-schema.ts';
import type { StandardSchema } from '../schema/standard-schema.ts';
import type { LiveResults, LiveRows, LiveValue } from '../query/live-results.ts';

/** A query that `liveHandler()` serves under a name. */
export interface LiveQueryDefinition<P> {
  /**
   * Checks the parameters that a client sends, and returns them as `watch` gets them: a function that throws for wrong ones, or a
   * standard schema. Without it the query takes none.
   */
  readonly params?: ((given: unknown) => P | Promise<P>) | StandardSchema<unknown, P>;
  /** Watches the query: `({ list }) => db.query('todos').where('list', '=', list).watch()`. */
  readonly watch: (params: P) => LiveResults<LiveRows<object>> | LiveResults<LiveValue<unknown>>;
}

/** A query that a request asks for, as `authorize` gets it. */
export interface AskedQuery {
  /** Its name. */
  readonly name: string;
  /** The parameters, checked. */
  readonly params: unknown;
}

/**
 * The answer of `authorize`: true lets the request pass, with `params` it passes with these parameters, a `Response` is sent instead, and
 * everything else refuses the request with 403.
 */
export type Authorization = boolean | Response | { readonly params: unknown };

/** Options of `liveHandler()`. */
export interface LiveHandlerOptions<Q extends Record<string, unknown> = Record<string, unknown>> {
  /** The queries by their names. */
  readonly queries: { readonly [N in keyof Q]: LiveQueryDefinition<Q[N]> };
  /** Decides about each request, once its parameters were checked. An error refuses the request as well. */
  readonly authorize: (request: Request, query: AskedQuery) => Authorization | Promise<Authorization>;
  /** The path at which the handler is mounted, such as `/live`. Default: `/`. */
  readonly basePath?: string;
  /** Streams at the same time. More requests get 503. Default 1000. */
  readonly maxStreams?: number;
  /** Seconds after which a stream ends, so that the client asks again and `authorize` decides again. Default 3600. */
  readonly maxStreamSeconds?: number;
  /** Gets what clients are not told: errors of queries and of `authorize`. */
  readonly onError?: (error: unknown, query: AskedQuery) => void;
}

export const liveHandlerOptions: OptionTable<LiveHandlerOptions> = new OptionTable({
  queries: kinds.required({
    allowed: 'an object with queries: { todos: { watch: () => db.query("todos").watch() } }',
    accepts: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    look: checkQueries,
  }),
  authorize: kinds.required({
    ...kinds.callback,
    allowed:
      'a function that decides who may ask for a query: authorize: (request, { name, params }) => isUser(request). Without one, everybody could',
  }),
  basePath: kinds.text('a path that begins with a slash, such as /live', (path) => /^\/[\w./~-]*$/.test(path)),
  maxStreams: kinds.whole(1),
  maxStreamSeconds: kinds.whole(1),
  onError: kinds.callback,
});

function checkQueries(callName: string, path: string, queries: unknown): void {
  for (const [name, query] of Object.entries(queries as Record<string, unknown>)) {
    const { params, watch, ...others } = Object(query) as Record<string, unknown>;
    const refuse = (part: string, value: unknown, allowed: string): never => {
      const where = `${path}.${name}.${part}`;
      throw new InvalidOptionError(
        where,
        `Option \`${where}\` of ${callName} is ${describeValue(value)}; it must be ${allowed}.`,
      );
    };
    if (['', '.', '..'].includes(name)) {
      const message = `Option \`${path}\` of ${callName} has a query '${name}'; a name must be one that a URL can end with.`;
      throw new InvalidOptionError(path, message);
    }
    if (typeof watch !== 'function') refuse('watch', watch, 'a function that returns query.watch()');
    if (params !== undefined && typeof params !== 'function' && !isStandardSchema(params)) {
      refuse('params', params, 'a function that checks parameters, or a standard schema');
    }
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) {
      const where = `${path}.${name}.${unknown}`;
      throw new InvalidOptionError(
        where,
        `Option \`${where}\` of ${callName} is not known; there are params and watch.`,
      );
    }
  }
}

/** Checks the database whose queries are served. Throws `InvalidOptionError`. */
export function checkLiveDatabase(db: unknown): void {
  const given = Object(db) as Record<string, unknown>;
  if (['query', 'transaction', 'refresh'].every((name) => typeof given[name] === 'function')) return;
  throw new InvalidOptionError('db', 'liveHandler() takes a database that StoreDb() made, and its options.');
}
