/** The last request of an upload in parts: its response may be lost, and is then found out by a mark on the object. */
import { StorageError } from '../../base/errors.ts';
import { isOutage } from './retries.ts';

/**
 * The last request of an upload, which creates the object. Its response may be lost, and the stream cannot be read again. So
 * before the upload is given up, the store is asked whether the object exists.
 */
export interface FinalRequest<T> {
  /** Sends the request once. Sending it again does no harm: it creates the same object, or finds an existing one. */
  readonly send: () => Promise<T>;
  /** Returns the response that the request would have had, if the object of this upload exists. */
  readonly look: () => Promise<T | undefined>;
  /** Whether an error means that the condition of the write did not hold. */
  readonly isAnswer: (error: unknown) => boolean;
  /**
   * Decides whether to send the request again after an error, and pauses first if so. `tried` is the number of attempts so far.
   */
  readonly isWorthAnother: (error: unknown, tried: number) => Promise<boolean>;
}

/**
 * Sends the last request of an upload. Resolves once the object certainly exists. Rejects with the first failure of unknown
 * outcome, if there was one.
 */
export async function sendFinal<T>({ send, look, isAnswer, isWorthAnother }: FinalRequest<T>): Promise<T> {
  let open: StorageError | undefined;
  for (let tried = 1; ; tried++) {
    try {
      return await send();
    } catch (error) {
      const isUnknown = error instanceof StorageError && error.outcome === 'unknown';
      // The object cannot exist yet.
      if (open === undefined && !isUnknown && !isOutage(error)) throw error;
      if (isUnknown) open ??= error;
      const found = await look().catch(() => undefined);
      if (found !== undefined) return found;
      // The existing object is of another writer, and its presence refuses any attempt of this upload that may still arrive.
      if (isAnswer(error)) throw error;
      if (!(await isWorthAnother(error, tried))) throw open ?? error;
    }
  }
}
