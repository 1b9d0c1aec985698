/**
 * The handler of live queries: finds out which query a request asks for, whether it may, and answers with a stream of its results.
 *
 * Invariants:
 * - A client gets no result that is older than the one it has.
 * - A watch is ended with the last stream that shows it, and all streams with the handler and the database.
 */
import type { Database } from '../api/database.ts';
import type { Environment, Timer } from '../base/env.ts';
import { NotStartedError, StoreDbError } from '../base/errors.ts';
import { errorAnswer, heartbeatMs } from '../web/answers.ts';
import { watchedResults } from '../live-wire/watched-results.ts';
import { RefusedRequest, requireMethod } from '../web/refused-request.ts';
import type { AskedQuery, LiveHandlerOptions, LiveQueryDefinition } from './live-options.ts';
import { LiveStream } from './live-stream.ts';
import { paramsOf, textOfParams } from './params.ts';
import { SharedWatch } from './shared-watch.ts';

/** How often the handler looks whether the database was stopped, or streams have to end. */
const lookMs = 1000;
const retryAfter = { 'retry-after': '1' };

/** The last event that a client has got. */
interface Resumed {
  readonly position: number;
  readonly digest: string;
}

/** An answer that stands for that of the query. */
interface Answered {
  readonly answer: Response;
}

function resumedFrom(request: Request): Resumed | undefined {
  const [, position, digest = ''] =
    /^(\d{1,15})\.([\da-f]{24})$/.exec(request.headers.get('last-event-id') ?? '') ?? [];
  return position === undefined ? undefined : { position: Number(position), digest };
}

export class LiveRequests {
  readonly #db: Database;
  readonly #environment: Environment;
  readonly #options: LiveHandlerOptions;
  readonly #queries: ReadonlyMap<string, LiveQueryDefinition<unknown>>;
  readonly #basePath: string;
  readonly #watches = new Map<string, SharedWatch>();
  readonly #streams = new Set<LiveStream>();
  /** Requests that are about to become streams. */
  #opening = 0;
  #timer: Timer | undefined;
  #beatAtMs = 0;
  #isClosed = false;

  constructor(db: Database, environment: Environment, options: LiveHandlerOptions) {
    this.#db = db;
    this.#environment = environment;
    this.#options = options;
    this.#queries = new Map(Object.entries(options.queries));
    const { basePath = '' } = options;
    this.#basePath = basePath.endsWith('/') ? basePath.slice(0, -1) : basePath;
  }

  /** Answers a request. Never rejects. */
  async fetch(request: Request): Promise<Response> {
    this.#opening++;
    try {
      return await this.#answer(request);
    } catch (error) {
      return error instanceof RefusedRequest ? error.answer : errorAnswer(500, this.#shown(error));
    } finally {
      this.#opening--;
    }
  }

  /** Ends all streams. */
  close(): void {
    this.#isClosed = true;
    this.#endAll();
  }

  async #answer(request: Request): Promise<Response> {
    if (this.#isClosed) throw new RefusedRequest(503, 'CLOSED', 'The handler was closed.', retryAfter);
    requireMethod(request, 'GET');
    const name = this.#nameIn(request);
    const definition = this.#queries.get(name);
    if (definition === undefined) throw new RefusedRequest(404, 'NO_QUERY', 'There is no live query of this name.');
    if (this.#streams.size + this.#opening > (this.#options.maxStreams ?? 1000)) {
      throw new RefusedRequest(503, 'TOO_MANY_STREAMS', 'Too many streams are open: try again later.', retryAfter);
    }
    const asked: AskedQuery = { name, params: await paramsOf(request, name, definition) };
    const allowed = await this.#authorized(request, asked);
    if ('answer' in allowed) return allowed.answer;
    const seen = resumedFrom(request);
    try {
      await this.#reach(seen, request.signal);
      // A position that does not exist is that of another database.
      const resumed = (seen?.position ?? 0) > this.#db.position ? undefined : seen;
      return this.#open(request, allowed, definition, resumed);
    } catch (error) {
      if (error instanceof NotStartedError) {
        throw new RefusedRequest(503, error.code, 'The database is not started: try again later.', retryAfter);
      }
      this.#options.onError?.(error, allowed);
      throw error;
    }
  }

  #nameIn(request: Request): string {
    const { pathname } = new URL(request.url);
    const start = `${this.#basePath}/`;
    try {
      if (pathname.startsWith(start)) return decodeURIComponent(pathname.slice(start.length));
    } catch {
      // No name is written like that.
    }
    throw new RefusedRequest(404, 'NOT_FOUND', `Live queries are at ${start} and their name.`);
  }

  /** Returns the query as it may be asked for, or another answer. */
  async #authorized(request: Request, asked: AskedQuery): Promise<AskedQuery | Answered> {
    let answer: unknown;
    try {
      answer = await this.#options.authorize(request, asked);
    } catch (error) {
      this.#options.onError?.(error, asked);
    }
    if (answer === true) return asked;
    if (typeof answer === 'object' && answer !== null) {
      if ('params' in answer) return { ...asked, params: answer.params };
      if ('status' in answer && 'headers' in answer) return { answer: answer as Response };
    }
    throw new RefusedRequest(403, 'FORBIDDEN', `You may not see query ${asked.name}.`);
  }

  /** Waits until the instance shows the state that the client has seen, perhaps by another instance. */
  async #reach(resumed: Resumed | undefined, signal: AbortSignal): Promise<void> {
    if (resumed !== undefined && resumed.position > this.#db.position) await this.#db.refresh({ signal });
  }

  #open(
    request: Request,
    asked: AskedQuery,
    definition: LiveQueryDefinition<unknown>,
    resumed: Resumed | undefined,
  ): Response {
    const watch = this.#watchOf(asked, definition, resumed);
    const endsAtMs = this.#environment.monotonicMs() + (this.#options.maxStreamSeconds ?? 3600) * 1000;
    const leave = (): void => stream.end();
    const stream = new LiveStream(watch, resumed?.digest, endsAtMs, () => {
      request.signal.removeEventListener('abort', leave);
      this.#streams.delete(stream);
      watch.streams.delete(stream);
      if (watch.streams.size === 0) this.#endWatch(watch);
    });
    this.#streams.add(stream);
    watch.streams.add(stream);
    if (request.signal.aborted) leave();
    else request.signal.addEventListener('abort', leave, { once: true });
    this.#look();
    return stream.answer;
  }

  #watchOf(asked: AskedQuery, { watch }: LiveQueryDefinition<unknown>, resumed: Resumed | undefined): SharedWatch {
    const params = textOfParams(asked.params);
    const key = params === undefined ? undefined : `${asked.name} ${params}`;
    const known = key === undefined ? undefined : this.#watches.get(key);
    // Its result may be older than that of the client, which another instance has shown: a new watch begins with the present state.
    const isOld = known !== undefined && known.leastPosition < (resumed?.position ?? 0);
    if (known !== undefined && (!isOld || known.newest?.digest === resumed?.digest)) return known;
    const made: SharedWatch = new SharedWatch(
      watchedResults(`Function watch of query ${asked.name}`, watch(asked.params)),
      this.#db.position,
      (error) => {
        this.#forget(made);
        this.#options.onError?.(error, asked);
        const { code, message } = this.#shown(error);
        for (const stream of made.streams) stream.fail(code, message);
      },
    );
    if (key !== undefined) this.#watches.set(key, made);
    return made;
  }

  #endWatch(watch: SharedWatch): void {
    this.#forget(watch);
    watch.end();
  }

  #forget(watch: SharedWatch): void {
    for (const [key, known] of this.#watches) if (known === watch) this.#watches.delete(key);
  }

  /** Returns no more of an error than anybody may know. */
  #shown(error: unknown): { readonly code: string; readonly message: string } {
    const code = error instanceof StoreDbError ? error.code : 'INTERNAL';
    return { code, message: 'The query has failed on the server.' };
  }

  #look(): void {
    if (this.#timer !== undefined) return;
    this.#beatAtMs = this.#environment.monotonicMs() + heartbeatMs;
    const next = (): void => {
      this.#timer = this.#environment.setTimer(
        () => {
          this.#timer = undefined;
          this.#tend();
          if (this.#streams.size > 0) next();
        },
        lookMs,
        { background: true },
      );
    };
    next();
  }

  #tend(): void {
    if (!this.#isStarted) this.#endAll();
    const nowMs = this.#environment.monotonicMs();
    for (const stream of this.#streams) if (nowMs >= stream.endsAtMs) stream.end();
    if (nowMs < this.#beatAtMs) return;
    this.#beatAtMs = nowMs + heartbeatMs;
    for (const stream of this.#streams) stream.beat();
  }

  get #isStarted(): boolean {
    try {
      return this.#db.position >= 0;
    } catch {
      return false;
    }
  }

  #endAll(): void {
    for (const stream of this.#streams) stream.end();
  }
}
