/** Puts that may be carried out more than once: of bytes that are the same every time. */
import { StorageError } from '../../base/errors.ts';
import type { PutOptions, StorageDriver } from './driver.ts';

const maxAttempts = 4;

/**
 * Puts bytes until the store has said that they are there. With the condition `absent` the name must be new and random: a
 * lost race is then an earlier attempt of this very put.
 */
export async function putRepeatedly(
  driver: StorageDriver,
  key: string,
  bytes: Uint8Array,
  options: PutOptions & { readonly if: 'any' | 'absent' },
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await driver.put(key, bytes, options);
      return;
    } catch (error) {
      if (!(error instanceof StorageError) || attempt >= maxAttempts || options.signal?.aborted === true) throw error;
    }
  }
}
