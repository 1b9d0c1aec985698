/** Listings of more than one page. */
import { defined } from '../../base/defined.ts';
import type { ListEntry, RequestOptions, StorageDriver } from './driver.ts';

/** Every object whose key begins with `prefix`, in the order of keys. */
export async function* listAll(
  driver: StorageDriver,
  prefix: string,
  options: RequestOptions = {},
): AsyncGenerator<ListEntry, void, undefined> {
  for (let after: string | undefined; ; ) {
    options.signal?.throwIfAborted();
    const page = await driver.list(prefix, { ...options, ...defined({ after }) });
    yield* page.entries;
    after = page.entries.at(-1)?.key;
    if (!page.more || after === undefined) return;
  }
}
