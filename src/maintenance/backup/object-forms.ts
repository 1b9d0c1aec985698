/** How many objects are stored: with which keys, or none. Their heads are read, many at a time. */
import { defined } from '../../base/defined.ts';
import { formOf } from '../../storage/object-form.ts';
import type { ObjectForm } from '../../storage/object-form.ts';
import type { ProtectedPlace } from './state-copy.ts';

const looksAtOnce = 16;

/** How each object of a place is stored. Those that are not there are left out. */
export async function* formsOf(
  { bare, prefix }: Pick<ProtectedPlace, 'bare' | 'prefix'>,
  names: readonly string[],
  signal: AbortSignal | undefined,
): AsyncGenerator<{ readonly name: string; readonly form: ObjectForm }, void, undefined> {
  for (let at = 0; at < names.length; at += looksAtOnce) {
    signal?.throwIfAborted();
    const looks = names.slice(at, at + looksAtOnce).map(async (name) => {
      return { name, form: await formOf(bare, `${prefix}/${name}`, name, defined({ signal })) };
    });
    for (const { name, form } of await Promise.all(looks)) if (form !== undefined) yield { name, form };
  }
}

/** Counts objects by how they are stored. */
export class KeyCounts {
  readonly #keys = new Map<string, number>();
  unencrypted = 0;
  damaged = 0;

  add({ kind, keyId }: Pick<ObjectForm, 'kind' | 'keyId'>): void {
    if (keyId !== undefined) this.#keys.set(keyId, (this.#keys.get(keyId) ?? 0) + 1);
    else if (kind === 'damaged') this.damaged++;
    else this.unencrypted++;
  }

  get keys(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#keys);
  }
}
