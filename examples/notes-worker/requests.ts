/** Checks of what clients send. The types of the values are checked by the database, against its schema. */
import { RequestError } from './errors.ts';

/** The most characters that a body may have. */
const maxBodyLength = 100_000;

export interface Content {
  readonly topic: string;
  readonly title: string;
  readonly text?: string;
}

/** Reads the JSON of a body: an object that has all `required` fields, and some of the `optional` ones. */
export async function readBody<T>(
  request: Request,
  required: readonly string[],
  optional: readonly string[],
): Promise<T> {
  const text = await request.text();
  if (text.length > maxBodyLength) {
    throw new RequestError(413, 'TOO_LARGE', `A body has at most ${maxBodyLength} characters.`);
  }
  const body = parse(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new RequestError(400, 'INVALID_BODY', 'The body must be a JSON object.');
  }
  const unknown = Object.keys(body).find((name) => !required.includes(name) && !optional.includes(name));
  if (unknown !== undefined) throw new RequestError(400, 'INVALID_BODY', `A note has no field '${unknown}'.`);
  const missing = required.find((name) => !(name in body));
  if (missing !== undefined) throw new RequestError(400, 'INVALID_BODY', `The field '${missing}' is missing.`);
  return body as T;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError(400, 'INVALID_BODY', 'The body is not JSON.');
  }
}

/** Reads the size of a page from a URL. */
export function readLimit(text: string | null): number {
  const limit = Number(text ?? 20);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 100) return limit;
  throw new RequestError(400, 'INVALID_LIMIT', `'limit' is '${text}'; it must be a whole number from 1 to 100.`);
}
