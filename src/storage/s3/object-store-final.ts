/**
 * The last request of an upload, which makes the object: its answer may be lost, and the stream cannot be read again. Before
 * the upload is given up, the store is asked whether the object is there. Each upload marks its object, so that nobody's else is
 * taken for it, whatever ETags the store makes.
 */
import { StorageError } from '../../base/errors.ts';
import { isOutage } from '../contract/patience.ts';

/** Name of the metadata that marks the object of an upload. */
export const uploadMark = 'storedb-upload';

export interface FinalRequest<T> {
  /** Sends it once. To send it again does no harm: it makes the same object, or finds that something is there. */
  readonly send: () => Promise<T>;
  /** What the request would have answered, if the object of this upload is there. */
  readonly look: () => Promise<T | undefined>;
  /** Whether an error says that the condition of the write did not hold. */
  readonly isAnswer: (error: unknown) => boolean;
  /** Whether to send it again after such an error. Pauses then. `tried`: how often it was sent. */
  readonly isWorthAnother: (error: unknown, tried: number) => Promise<boolean>;
}

/** Resolves once the object is there for certain. Rejects with the first failure that left it open, if there was one. */
export async function sendFinal<T>({ send, look, isAnswer, isWorthAnother }: FinalRequest<T>): Promise<T> {
  let open: StorageError | undefined;
  for (let tried = 1; ; tried++) {
    try {
      return await send();
    } catch (error) {
      const isUnknown = error instanceof StorageError && error.outcome === 'unknown';
      // Nothing of it can be there yet.
      if (open === undefined && !isUnknown && !isOutage(error)) throw error;
      if (isUnknown) open ??= error;
      const found = await look().catch(() => undefined);
      if (found !== undefined) return found;
      // What is there is somebody else's, and keeps out whatever of this one may still be on its way.
      if (isAnswer(error)) throw error;
      if (!(await isWorthAnother(error, tried))) throw open ?? error;
    }
  }
}
