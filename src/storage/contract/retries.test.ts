/** Repeated puts: the answer of the store is checked after an attempt that may have landed. */
import { expect, it } from 'vitest';
import { realEnvironment } from '../../base/env.ts';
import { CorruptionError, StorageError } from '../../base/errors.ts';
import { MemoryDriver } from '../memory-driver.ts';
import { WrappedDriver } from '../wrap/wrapped-driver.ts';
import type { PutBody, PutOptions, PutResult, StorageDriver } from './driver.ts';
import { putRepeatedly } from './retries.ts';

const bytes = Uint8Array.of(1, 2, 3);
const absent = { if: 'absent' } as const;

/** A driver whose puts are answered by a function of the attempt. */
class AnsweredPuts extends WrappedDriver implements StorageDriver {
  attempts = 0;
  readonly inner: StorageDriver;
  readonly #answer: (attempt: number, put: () => Promise<PutResult>) => Promise<PutResult>;

  constructor(answer: (attempt: number, put: () => Promise<PutResult>) => Promise<PutResult>) {
    const inner = new MemoryDriver();
    super(inner);
    this.inner = inner;
    this.#answer = answer;
  }

  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.#answer(++this.attempts, () => this.inner.put(key, body, options));
  }
}

const failure = (): StorageError => new StorageError('k', 'unknown', 'The connection was cut.');

it('is done once the store has said so', async () => {
  const driver = new AnsweredPuts((_, put) => put());
  await putRepeatedly(realEnvironment, driver, 'k', bytes, absent);
  expect(driver.attempts).toBe(1);
});

it('takes the object of an attempt whose answer was lost for its own', async () => {
  const driver = new AnsweredPuts(async (attempt, put) => {
    const result = await put();
    if (attempt === 1) throw failure();
    return result;
  });
  await putRepeatedly(realEnvironment, driver, 'k', bytes, absent);
  expect(driver.attempts).toBe(2);
});

it('does not take the object of another writer for its own', async () => {
  const driver = new AnsweredPuts((_, put) => put());
  await driver.inner.put('k', Uint8Array.of(9), absent);
  const error: unknown = await putRepeatedly(realEnvironment, driver, 'k', bytes, absent).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(CorruptionError);
  expect(driver.attempts).toBe(1);
});

it('gives up after four attempts, with the last failure', async () => {
  const driver = new AnsweredPuts(async () => {
    throw failure();
  });
  await expect(putRepeatedly(realEnvironment, driver, 'k', bytes, { if: 'any' })).rejects.toThrow(
    'The connection was cut.',
  );
  expect(driver.attempts).toBe(4);
});

it('fails where the store says that the object is there, and that it is missing', async () => {
  const driver = new AnsweredPuts(async () => ({ status: 'lost' }));
  await expect(putRepeatedly(realEnvironment, driver, 'k', bytes, absent)).rejects.toThrow('and that it is missing');
  expect(driver.attempts).toBe(4);
});

it('is not repeated for a caller that has given up', async () => {
  const controller = new AbortController();
  const driver = new AnsweredPuts(async () => {
    controller.abort();
    throw failure();
  });
  const { signal } = controller;
  await expect(putRepeatedly(realEnvironment, driver, 'k', bytes, { if: 'any', signal })).rejects.toThrow(
    'The connection was cut.',
  );
  expect(driver.attempts).toBe(1);
});
