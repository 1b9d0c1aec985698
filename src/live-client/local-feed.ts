/** Follows a watched query in the same process. */
import type { LiveResults, LiveRows, LiveValue } from '../query/live-results.ts';
import type { Feed, Sink } from './live-store.ts';

export class LocalFeed<T> implements Feed<T> {
  readonly #open: () => LiveResults<LiveRows<object>> | LiveResults<LiveValue<unknown>>;

  constructor(open: () => LiveResults<LiveRows<object>> | LiveResults<LiveValue<unknown>>) {
    this.#open = open;
  }

  follow(sink: Sink<T>, signal: AbortSignal): Promise<void> {
    const results = this.#open() as LiveResults<LiveRows<object> | LiveValue<unknown>>;
    return new Promise((resolve, reject) => {
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
