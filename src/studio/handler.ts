/** The handler: finds out what a request asks for, whether it may, and answers. */
import { anySignal, newAbortController } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import type { Database } from '../index.ts';
import { errorAnswer, jsonAnswer, safeHeaders } from '../web/answers.ts';
import { RefusedRequest, requireMethod } from '../web/refused-request.ts';
import type { Access } from './access.ts';
import { Asked } from './asked.ts';
import { CallContext } from './call-context.ts';
import { shownError, statusOf } from './call-errors.ts';
import { blobAnswer, exportAnswer } from './downloads.ts';
import { StateWatcher } from './events.ts';
import { bill, block, health } from './health-calls.ts';
import { longAnswer } from './long-answer.ts';
import { longCalls } from './long-calls.ts';
import type { LongCall } from './long-calls.ts';
import type { Calls } from './messages.ts';
import { overview } from './overview-call.ts';
import { pageAnswer } from './page-answer.ts';
import type { PageFiles } from './page-answer.ts';
import { readJson } from './request-body.ts';
import { drop } from './drop-call.ts';
import { count, explain, query, row, rows } from './row-calls.ts';
import { save } from './save-call.ts';
import type { CheckedStudioOptions } from './studio-options.ts';
import { commit, commits, moments } from './time-calls.ts';

type Call<R> = (context: CallContext, asked: Asked, signal: AbortSignal) => Promise<R>;

const calls: { readonly [N in keyof Calls]: Call<Calls[N][1]> } = {
  overview,
  rows,
  count,
  row,
  save,
  drop,
  query,
  explain,
  block,
  commits,
  commit,
  moments,
  health,
  bill,
};

/** The calls by name: names come from outside, and may be those of any property. */
const callsByName: ReadonlyMap<string, Call<unknown>> = new Map(Object.entries(calls));
const longCallsByName: ReadonlyMap<string, LongCall<unknown>> = new Map(Object.entries(longCalls));
/** Names of data that browsers get with plain GETs. */
const gets: ReadonlySet<string> = new Set(['events', 'blob', 'export']);

export interface HandlerOptions {
  readonly db: Database;
  readonly environment: Environment;
  readonly access: Access;
  readonly files: PageFiles;
  readonly options: CheckedStudioOptions;
}

export class Handler {
  readonly #access: Access;
  readonly #files: PageFiles;
  readonly #basePath: string;
  readonly #context: CallContext;
  readonly #watcher: StateWatcher;
  readonly #closing = newAbortController();

  constructor({ db, environment, access, files, options }: HandlerOptions) {
    this.#access = access;
    this.#files = files;
    this.#basePath = options.basePath;
    this.#context = new CallContext(db, environment, options);
    this.#watcher = new StateWatcher(db, environment);
  }

  /** Answers a request. Never rejects. */
  async fetch(request: Request): Promise<Response> {
    try {
      return await this.#answer(request);
    } catch (error) {
      return error instanceof RefusedRequest ? error.answer : errorAnswer(statusOf(error), shownError(error));
    }
  }

  /** Ends what is under way, and releases the states that are held. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#context.states.close();
  }

  async #answer(request: Request): Promise<Response> {
    if (this.#closing.signal.aborted) throw new RefusedRequest(503, 'CLOSED', 'Studio was closed.');
    const { pathname } = new URL(request.url);
    if (pathname === this.#basePath && pathname !== '') {
      // The page names its files as lying beside it.
      return new Response(null, { status: 308, headers: { ...safeHeaders, location: `${this.#basePath}/` } });
    }
    if (!pathname.startsWith(`${this.#basePath}/`)) throw new RefusedRequest(404, 'NOT_FOUND', 'Studio is not here.');
    const path = pathname.slice(this.#basePath.length + 1);
    if (path === 'session') return this.#session(request);
    if (path.startsWith('api/')) return this.#data(path.slice('api/'.length), request);
    requireMethod(request, 'GET', 'HEAD');
    await this.#access.check(request, 'page');
    return pageAnswer(this.#files, path, request);
  }

  async #session(request: Request): Promise<Response> {
    requireMethod(request, 'POST');
    await this.#access.check(request, 'session');
    const given = new Asked('session', await readJson(request));
    return jsonAnswer({}, 200, { 'set-cookie': this.#access.openSession(given.any('token')) });
  }

  async #data(name: string, request: Request): Promise<Response> {
    requireMethod(request, gets.has(name) ? 'GET' : 'POST');
    await this.#access.check(request, 'data');
    const signal = anySignal(request.signal, this.#closing.signal);
    const context = this.#context;
    if (name === 'events') return this.#watcher.answer(signal);
    if (name === 'blob') return blobAnswer(context, request, signal);
    if (name === 'export') return exportAnswer(context, request, signal);
    const call = callsByName.get(name);
    const longCall = longCallsByName.get(name);
    if (call === undefined && longCall === undefined) {
      throw new RefusedRequest(404, 'NOT_FOUND', 'Studio has no such call.');
    }
    const asked = new Asked(name, await readJson(request));
    if (call !== undefined) return jsonAnswer(await call(context, asked, signal));
    return longAnswer(context.environment, signal, async (report, either) =>
      (longCall as LongCall<unknown>)(context, asked, either, report),
    );
  }
}
