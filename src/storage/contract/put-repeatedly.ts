/** Puts that are repeated until the store has said that the object is there. */
import { backOff } from '../../base/backoff.ts';
import type { Backoff } from '../../base/backoff.ts';
import { compareBytes } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { CorruptionError, StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { PutOptions, StorageDriver } from './driver.ts';

const maxAttempts = 4;
const afterFailure: Backoff = { firstMs: 50, maxMs: 200, jitter: 'around' };

/**
 * Puts bytes until the store has said that they are there, in up to four attempts. With the condition `absent` the name must be new
 * and random: if the store says that an object is there, it can only be an earlier attempt of this very put, and it is read to make
 * sure. Rejects with `StorageError`, or with `CorruptionError` where the object holds other bytes.
 */
export async function putRepeatedly(
  environment: Environment,
  driver: StorageDriver,
  key: string,
  bytes: Uint8Array,
  options: PutOptions & { readonly if: 'any' | 'absent' },
): Promise<void> {
  const { signal } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      const result = await driver.put(key, bytes, options);
      if (result.status === 'written') return;
      const stored = await driver.get(key, defined({ signal }));
      if (stored.status === 'found' && compareBytes(stored.bytes, bytes) === 0) return;
      if (stored.status === 'found') throw new CorruptionError(key, 'A new object met another object of its name');
      throw new StorageError(key, 'unknown', `The store says that ${key} is there, and that it is missing.`);
    } catch (error) {
      if (!(error instanceof StorageError) || attempt >= maxAttempts || signal?.aborted === true) throw error;
    }
    await backOff(environment, afterFailure, attempt, signal);
  }
}
