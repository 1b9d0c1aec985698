/** A hook that makes a call, keeps the last answer while it is made again, and says what went wrong. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { CallProgress, LongCalls } from '../../src/studio/messages.ts';
import { failureOf, longCall } from './api.ts';
import type { CallFailure } from './api.ts';

/** The answer to a call, as far as it is known. */
export interface Answer<T> {
  readonly value: T | undefined;
  readonly failure: CallFailure | undefined;
  readonly isBusy: boolean;
  /** Makes the call again. */
  readonly retry: () => void;
}

/** Makes a call, and makes it again whenever `key` changes. Undefined makes none. */
export function useCall<T>(key: string, make: ((signal: AbortSignal) => Promise<T>) | undefined): Answer<T> {
  const [attempt, setAttempt] = useState(0);
  const [answer, setAnswer] = useState<Omit<Answer<T>, 'retry'>>({
    value: undefined,
    failure: undefined,
    isBusy: true,
  });
  useEffect(() => {
    if (make === undefined) return;
    const controller = new AbortController();
    setAnswer((before) => ({ ...before, isBusy: true }));
    const take = (next: Omit<Answer<T>, 'retry'>): void => {
      if (!controller.signal.aborted) setAnswer(next);
    };
    make(controller.signal).then(
      (value) => take({ value, failure: undefined, isBusy: false }),
      (error: unknown) => {
        const failure = failureOf(error);
        if (!controller.signal.aborted) setAnswer((before) => ({ value: before.value, failure, isBusy: false }));
      },
    );
    return () => controller.abort();
  }, [key, attempt]);
  return { ...answer, retry: () => setAttempt((count) => count + 1) };
}

/** A call that takes long, as a page shows it. */
export interface LongAnswer<T> {
  readonly value: T | undefined;
  readonly failure: CallFailure | undefined;
  /** Undefined while it is not running. */
  readonly progress: CallProgress | undefined;
  readonly stop: () => void;
}

/** Makes calls that take long, one at a time. */
export function useLongCall<Name extends keyof LongCalls>(
  name: Name,
): LongAnswer<LongCalls[Name][1]> & { readonly start: (asked: LongCalls[Name][0]) => void } {
  const [state, setState] = useState<Omit<LongAnswer<LongCalls[Name][1]>, 'stop'>>({
    value: undefined,
    failure: undefined,
    progress: undefined,
  });
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const start = (asked: LongCalls[Name][0]): void => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const isCurrent = (): boolean => running.current === controller;
    setState((before) => ({ ...before, failure: undefined, progress: { done: 0, what: 'Starts' } }));
    const onProgress = (progress: CallProgress): void => {
      if (isCurrent()) setState((before) => ({ ...before, progress }));
    };
    const run = async (): Promise<void> => {
      try {
        const value = await longCall(name, asked, onProgress, controller.signal);
        if (isCurrent()) setState({ value, failure: undefined, progress: undefined });
      } catch (error) {
        if (isCurrent()) setState((before) => ({ ...before, failure: failureOf(error), progress: undefined }));
      }
    };
    void run();
  };
  return { ...state, start, stop: () => running.current?.abort() };
}
