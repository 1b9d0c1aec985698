/** Answers to calls that take long: lines of JSON with the progress, and at last the result or the error. */
import { anySignal, newAbortController } from '../base/abort.ts';
import { encodeUtf8 } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import { jsonText, safeHeaders } from '../web/answers.ts';
import { shownError } from './call-errors.ts';
import type { CallProgress, Line } from './messages.ts';

/** Tells the page how far a call is. */
export type Report = (progress: CallProgress) => void;

/** Milliseconds between two lines of progress. */
const pauseMs = 100;

/** Runs a call, and answers with its lines. The call is given up once nobody reads them. */
export function longAnswer<R>(
  environment: Environment,
  outer: AbortSignal,
  run: (report: Report, signal: AbortSignal) => Promise<R>,
): Response {
  const leaving = newAbortController();
  const signal = anySignal(outer, leaving.signal);
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (line: Line<R>): void => {
        if (!leaving.signal.aborted) controller.enqueue(encodeUtf8(`${jsonText(line)}\n`));
      };
      let lastMs = -Infinity;
      const report: Report = (progress) => {
        const nowMs = environment.monotonicMs();
        if (nowMs - lastMs < pauseMs) return;
        lastMs = nowMs;
        send({ progress });
      };
      try {
        send({ result: await run(report, signal) });
      } catch (error) {
        send({ error: shownError(error) });
      }
      if (!leaving.signal.aborted) controller.close();
    },
    cancel() {
      leaving.abort();
    },
  });
  const headers = {
    ...safeHeaders,
    'content-type': 'application/x-ndjson; charset=utf-8',
    'cache-control': 'no-store',
  };
  return new Response(body, { headers });
}
