/** Calls to the handler: a POST of JSON each, with errors as the handler tells them. */
import type { CallError, CallProgress, Calls, Line, LongCalls } from '../../src/studio/messages.ts';

/** A call that failed, in words for people. */
export class CallFailure extends Error {
  readonly code: string;

  constructor({ code, message }: CallError) {
    super(message);
    this.code = code;
  }
}

/** Returns an error as a sentence for people, and with a code. */
export function failureOf(error: unknown): CallFailure {
  if (error instanceof CallFailure) return error;
  if (error instanceof DOMException && error.name === 'AbortError') {
    return new CallFailure({ code: 'STOPPED', message: 'You stopped it.' });
  }
  const message = error instanceof TypeError ? 'Studio does not answer. Is its process still running?' : String(error);
  return new CallFailure({ code: 'UNREACHABLE', message });
}

async function post(path: string, body: unknown, signal: AbortSignal | undefined): Promise<Response> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  if (response.ok) return response;
  let error: CallError = { code: `HTTP ${response.status}`, message: `Studio answered with ${response.status}.` };
  try {
    error = ((await response.json()) as { readonly error?: CallError }).error ?? error;
  } catch {
    // No JSON: a proxy may have answered.
  }
  throw new CallFailure(error);
}

/** Makes a call that answers at once. */
export async function call<Name extends keyof Calls>(
  name: Name,
  asked: Calls[Name][0],
  signal?: AbortSignal,
): Promise<Calls[Name][1]> {
  const response = await post(`api/${name}`, asked, signal);
  return (await response.json()) as Calls[Name][1];
}

/** Makes a call that takes long, and reports its progress. */
export async function longCall<Name extends keyof LongCalls>(
  name: Name,
  asked: LongCalls[Name][0],
  onProgress: (progress: CallProgress) => void,
  signal: AbortSignal,
): Promise<LongCalls[Name][1]> {
  const response = await post(`api/${name}`, asked, signal);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    const lines = (text + (value ?? '')).split('\n');
    text = done ? '' : (lines.pop() ?? '');
    for (const line of lines) {
      if (line.trim() === '') continue;
      const said = JSON.parse(line) as Line<LongCalls[Name][1]>;
      if ('result' in said) return said.result;
      if ('error' in said) throw new CallFailure(said.error);
      onProgress(said.progress);
    }
    if (done) {
      throw new CallFailure({
        code: 'UNREACHABLE',
        message: 'The answer ended too early. Is the process still running?',
      });
    }
  }
}

/** Exchanges the token in the URL's fragment for a session, and removes it from the URL. Without one it does nothing. */
export async function openSession(): Promise<void> {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (found === null) return;
  history.replaceState(null, '', `${location.pathname}${location.search}`);
  await post('session', { token: decodeURIComponent(found[1] as string) }, undefined);
}

/** Returns the URL of a blob of a row. */
export function blobUrl(asked: Readonly<Record<string, unknown>>, isDownload: boolean): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    if (value !== undefined) query.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  if (isDownload) query.set('download', '1');
  return `api/blob?${query}`;
}
