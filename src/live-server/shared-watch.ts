/** One watched query for all streams that ask for the same, and the results that it had last. */
import type { LiveResults, LiveRows, LiveValue } from '../query/live-results.ts';
import type { LiveStream, Source } from './live-stream.ts';
import { KnownRows, ShownResult } from './shown-result.ts';

/** Results that are kept for clients that come back, or are slow. They share the rows that are the same. */
const maxResults = 32;
/** The size of all kept results but the newest, each as if it shared no row. */
const maxBytes = 8 * 1024 * 1024;

export class SharedWatch implements Source {
  readonly streams: Set<LiveStream> = new Set();
  readonly #known = new KnownRows();
  /** The newest last. */
  readonly #results: ShownResult[] = [];
  readonly #end: () => void;
  readonly #openedAt: number;

  /** `openedAt`: the position of the instance. `onEnd` is called after a failure: there are no more results. */
  constructor(
    results: LiveResults<LiveRows<object>> | LiveResults<LiveValue<unknown>>,
    openedAt: number,
    onEnd: (error: unknown) => void,
  ) {
    this.#openedAt = openedAt;
    this.#end = (results as LiveResults<LiveRows<object>>).subscribe((result) => this.#add(result), onEnd);
  }

  get newest(): ShownResult | undefined {
    return this.#results.at(-1);
  }

  /** The newest result is of this position or a later one. */
  get leastPosition(): number {
    return this.newest?.position ?? this.#openedAt;
  }

  withDigest(digest: string | undefined): ShownResult | undefined {
    return this.#results.findLast((result) => result.digest === digest);
  }

  /** Ends the watch. */
  end(): void {
    this.#end();
  }

  #add(result: LiveRows<object> | LiveValue<unknown>): void {
    const results = this.#results;
    results.push(new ShownResult(result, this.#known));
    let bytes = results.slice(0, -1).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    while (results.length > 1 && (results.length > maxResults || bytes > maxBytes)) {
      bytes -= results.shift()?.sizeBytes ?? 0;
    }
    for (const stream of this.streams) stream.show();
  }
}
