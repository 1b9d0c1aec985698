/** Follows a watched query in the same process. */
import { watchedResults } from '../live-wire/watched-results.ts';
import type { LiveResults, LiveRows, LiveValue } from '../query/live-results.ts';
import type { Feed, Sink } from './live-store.ts';

/** The data of a watched query: the rows, or the value. */
export type LiveData<T> = T extends LiveRows<infer R> ? readonly R[] : T extends LiveValue<infer V> ? V : never;

export class LocalFeed<T> implements Feed<T> {
  readonly #open: () => LiveResults<LiveRows<object> | LiveValue<unknown>>;

  constructor(open: () => LiveResults<LiveRows<object> | LiveValue<unknown>>) {
    this.#open = open;
  }

  async follow(sink: Sink<T>, signal: AbortSignal): Promise<void> {
    const results = watchedResults('The function of liveStore()', this.#open());
    await new Promise<void>((resolve, reject) => {
      const end = results.subscribe((result) => {
        sink.show(('rows' in result ? result.rows : result.value) as T, result.position);
      }, reject);
      signal.addEventListener(
        'abort',
        () => {
          end();
          resolve();
        },
        { once: true },
      );
    });
  }
}
