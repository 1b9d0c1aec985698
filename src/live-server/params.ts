/** The parameters of a request: read, checked, and compared with those of other requests. */
import { isBytes, isDate, messageOf } from '../base/brands.ts';
import { toHex } from '../base/bytes.ts';
import { withoutSecrets } from '../base/messages.ts';
import { isStandardSchema } from '../schema/standard-schema.ts';
import type { StandardSchema } from '../schema/standard-schema.ts';
import { RefusedRequest } from '../web/refused-request.ts';
import type { LiveQueryDefinition } from './live-options.ts';

function refuse(name: string, reason: string): never {
  throw new RefusedRequest(400, 'PARAMS', `The parameters of query ${name} are refused: ${reason}`);
}

/** Returns the parameters that a request brings, checked by the query. Throws `RefusedRequest`. */
export async function paramsOf(
  request: Request,
  name: string,
  { params }: LiveQueryDefinition<unknown>,
): Promise<unknown> {
  const text = new URL(request.url).searchParams.get('params');
  let given: unknown;
  try {
    given = text === null ? undefined : (JSON.parse(text) as unknown);
  } catch {
    refuse(name, '`params` is no JSON.');
  }
  if (params === undefined) return given === undefined ? undefined : refuse(name, 'it takes none.');
  // First, since some libraries make their schemas functions, which return what is wrong instead of throwing it.
  if (isStandardSchema(params)) return checkedBySchema(name, params, given);
  try {
    return await params(given);
  } catch (error) {
    return refuse(name, withoutSecrets(messageOf(error)));
  }
}

async function checkedBySchema(name: string, schema: StandardSchema, given: unknown): Promise<unknown> {
  const result = await schema['~standard'].validate(given);
  if (result.issues === undefined) return result.value;
  return refuse(name, result.issues.map(({ message }) => message).join('; '));
}

/** Returns a text that two values have in common only if they are the same; undefined for values that cannot be compared. */
export function textOfParams(value: unknown): string | undefined {
  if (value === undefined) return 'u';
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object') return undefined;
  if (isDate(value)) return `d${value.getTime()}`;
  if (isBytes(value)) return `x${toHex(value)}`;
  const isList = Array.isArray(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!isList && prototype !== null && Object.getPrototypeOf(prototype) !== null) return undefined;
  const names = isList ? Object.keys(value) : Object.keys(value).toSorted();
  const parts: string[] = [];
  for (const name of names) {
    const part = textOfParams((value as Record<string, unknown>)[name]);
    if (part === undefined) return undefined;
    parts.push(isList ? part : `${JSON.stringify(name)}:${part}`);
  }
  return isList ? `[${parts.join()}]` : `{${parts.join()}}`;
}
