/** Tells the pages that the instance shows a newer state. It looks at the instance, and asks nothing of the store. */
import type { Environment, Timer } from '../base/env.ts';
import type { Database } from '../index.ts';
import { heartbeatMs, jsonText } from '../web/answers.ts';
import { EventStream, eventOf } from '../web/event-stream.ts';
import type { StateEvent } from './messages.ts';

const lookMs = 500;

/** Receives events; `undefined`: nothing is new, and the connection must stay. */
type Listener = (event: StateEvent | undefined) => void;

/** Watches the instance while any page listens: one watcher for all of them. */
export class StateWatcher {
  readonly #db: Database;
  readonly #environment: Environment;
  readonly #listeners = new Set<Listener>();
  #timer: Timer | undefined;
  #shown = '';
  #beatAtMs = 0;

  constructor(db: Database, environment: Environment) {
    this.#db = db;
    this.#environment = environment;
  }

  /** Returns the number of pages that listen. */
  get pages(): number {
    return this.#listeners.size;
  }

  /** Answers a page with events, until it leaves or `signal` is aborted. */
  answer(signal: AbortSignal): Response {
    let waiting: StateEvent | undefined = this.#event();
    const close = (): void => stream.end();
    const listener: Listener = (event) => {
      if (event === undefined) {
        stream.beat();
        return;
      }
      waiting = event;
      stream.show();
    };
    const stream = new EventStream({
      newest: () => {
        const event = waiting;
        waiting = undefined;
        return event && eventOf('state', jsonText(event));
      },
      ended: () => {
        this.#listeners.delete(listener);
        signal.removeEventListener('abort', close);
        if (this.#listeners.size > 0) return;
        this.#timer?.cancel();
        this.#timer = undefined;
      },
    });
    signal.addEventListener('abort', close, { once: true });
    this.#listen(listener);
    return stream.answer;
  }

  #listen(listener: Listener): void {
    this.#listeners.add(listener);
    if (this.#timer !== undefined) return;
    this.#shown = stateOf(this.#event());
    this.#beatAtMs = this.#environment.monotonicMs() + heartbeatMs;
    this.#schedule();
  }

  #schedule(): void {
    this.#timer = this.#environment.setTimer(
      () => {
        this.#look();
        this.#schedule();
      },
      lookMs,
      { background: true },
    );
  }

  #look(): void {
    const event = this.#event();
    const state = stateOf(event);
    const nowMs = this.#environment.monotonicMs();
    const isNew = state !== this.#shown;
    if (!isNew && nowMs < this.#beatAtMs) return;
    this.#shown = state;
    this.#beatAtMs = nowMs + heartbeatMs;
    for (const listener of this.#listeners) listener(isNew ? event : undefined);
  }

  #event(): StateEvent {
    const stats = this.#db.stats();
    const health = this.#db.health();
    return { position: stats.log?.tail ?? 0, generation: stats.log?.generation ?? 0, health, stats };
  }
}

/** Returns what makes a state another one. Ages and counts of requests do not. */
function stateOf({ position, generation, health, stats }: StateEvent): string {
  const reasons = health.reasons.map(({ code, status }) => [code, status]);
  return jsonText([position, generation, stats.log?.revision, stats.log?.appliedSeq, stats.log?.nodes, reasons]);
}
