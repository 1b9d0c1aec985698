/** Requests that are not answered with what they ask for. */
import { errorAnswer } from './answers.ts';

/** A request that cannot be answered, and the answer that says so. */
export class RefusedRequest extends Error {
  readonly answer: Response;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.answer = errorAnswer(status, { code, message }, headers);
  }
}

/** Throws `RefusedRequest` unless a request has one of some methods. */
export function requireMethod({ method }: Request, ...allowed: readonly string[]): void {
  if (allowed.includes(method)) return;
  const message = `${method} is not possible here: ${allowed.join(' and ')} ${allowed.length === 1 ? 'is' : 'are'}.`;
  throw new RefusedRequest(405, 'METHOD', message, { allow: allowed.join(', ') });
}
