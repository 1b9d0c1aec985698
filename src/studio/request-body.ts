/** Reads the JSON that a request brings, as far as the limit. */
import { joinBytes } from '../base/bytes.ts';
import { RefusedRequest } from '../web/refused-request.ts';

/** The most bytes of a request. */
const maxBodyBytes = 1024 * 1024;

function tooLarge(): RefusedRequest {
  const message = `The request has more than ${maxBodyBytes} bytes, which is the most that Studio takes.`;
  return new RefusedRequest(413, 'TOO_LARGE', message, { connection: 'close' });
}

async function bytesOf({ body }: Request): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = body?.getReader();
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    const part = read.value as Uint8Array;
    size += part.length;
    if (size > maxBodyBytes) {
      // Not awaited: it ends once nobody else holds a copy of the request.
      reader?.cancel().catch(() => undefined);
      throw tooLarge();
    }
    parts.push(part);
  }
  return joinBytes(parts);
}

/** Returns the JSON of a request. Throws `RefusedRequest`. */
export async function readJson(request: Request): Promise<unknown> {
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase();
  // Pages of other sites cannot send this type without being asked first.
  if (type !== 'application/json') {
    throw new RefusedRequest(
      415,
      'NOT_JSON',
      'Calls of Studio take JSON: set the header content-type to application/json.',
    );
  }
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) throw tooLarge();
  const bytes = await bytesOf(request);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    throw new RefusedRequest(400, 'NOT_JSON', 'The request is no valid JSON in UTF-8.');
  }
}
