/**
 * Turns what the channels tell into spans and durations. A span is a child of the one that is active where the work begins, and is active
 * itself while the work goes on, so that the requests of a query hang under it.
 */
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Context, Span, Tracer } from '@opentelemetry/api';
import { tracingChannel } from '#platform';
import { messageOf } from '../base/brands.ts';
import type { Environment } from '../base/env.ts';
import type { TracedWork } from '../base/tracing.ts';
import { errorType, labelsOf, shown } from './attributes.ts';
import type { Shown, WorkName } from './attributes.ts';
import type { Durations, Told } from './measures.ts';

export interface InstrumentationParts {
  readonly environment: Environment;
  /** Undefined: no spans are made. */
  readonly tracer: Tracer | undefined;
  /** Undefined: nothing is measured. */
  readonly durations: Durations | undefined;
}

/** Listens to the channels. Returns a function that ends it. */
export function listen({ environment, tracer, durations }: InstrumentationParts): () => void {
  const ends: (() => void)[] = [];
  for (const name of Object.keys(shown) as WorkName[]) {
    const channel = tracingChannel?.(`store-db:${name}`);
    if (channel === undefined) continue;
    const one = shown[name] as Shown<TracedWork>;
    if (tracer !== undefined) ends.push(new SpanMaker(one, tracer).listen(channel as unknown as SpanChannel));
    const record = durations?.recorderOf(one);
    if (record === undefined) continue;
    const measure = (told: object): void => {
      if ((told as Told).waited !== false) record(told as Told, environment.monotonicMs());
    };
    // Who listens to the last event alone hears nothing of queries that memory answers: measuring would take longer than they do.
    const { asyncEnd } = channel as unknown as SpanChannel;
    asyncEnd.subscribe(measure);
    ends.push(() => asyncEnd.unsubscribe(measure));
  }
  return () => ends.forEach((end) => end());
}

/** Makes the spans of one channel. */
class SpanMaker {
  readonly #shown: Shown<TracedWork>;
  readonly #tracer: Tracer;
  readonly #spans = new WeakMap<object, Span>();

  constructor(one: Shown<TracedWork>, tracer: Tracer) {
    this.#shown = one;
    this.#tracer = tracer;
  }

  listen({ start, end, asyncEnd }: SpanChannel): () => void {
    // A channel runs the work within what this gives, in the way of an AsyncLocalStorage.
    const store = { run: (active: Context, work: () => unknown) => context.with(active, work) };
    const finish = (told: object): void => this.#finish(told as Told);
    // Work that threw at once has no promise.
    const finishFailed = (told: object): void => {
      if ('error' in told) finish(told);
    };
    start.bindStore(store, (told) => this.#begin(told));
    end.subscribe(finishFailed);
    asyncEnd.subscribe(finish);
    return () => {
      start.unbindStore(store);
      end.unsubscribe(finishFailed);
      asyncEnd.unsubscribe(finish);
    };
  }

  /** Returns the context of the work. */
  #begin(told: TracedWork): Context {
    const { title, topic, details } = this.#shown;
    const active = context.active();
    const attributes = Object.assign(labelsOf(this.#shown, told.database, topic(told)), details?.(told));
    const span = this.#tracer.startSpan(title(told), { kind: SpanKind.CLIENT, attributes }, active);
    this.#spans.set(told, span);
    return trace.setSpan(active, span);
  }

  #finish(told: Told): void {
    const span = this.#spans.get(told);
    if (span === undefined) return;
    this.#spans.delete(told);
    if ('error' in told) {
      span.setAttribute('error.type', errorType(told.error));
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(told.error) });
    }
    span.end();
  }
}

/** An event of a channel. */
interface SpanEvent {
  subscribe(listener: (told: object) => void): void;
  unsubscribe(listener: (told: object) => void): void;
}

/** A channel, whose first event takes any store that runs a function within a value. */
interface SpanChannel {
  readonly start: {
    bindStore(store: object, transform: (told: TracedWork) => Context): void;
    unbindStore(store: object): void;
  };
  readonly end: SpanEvent;
  readonly asyncEnd: SpanEvent;
}
