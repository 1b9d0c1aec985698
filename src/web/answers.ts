/** Answers of handlers: what every answer says to browsers, values as JSON, and events. */
import { isBytes } from '../base/brands.ts';
import { toBase64 } from '../base/bytes.ts';

/**
 * Headers of every answer. Browsers load nothing from another host, put the page into no frame of another site, do not guess the type of
 * an answer, and show it to no page of another site.
 */
export const safeHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** Headers of an answer with server-sent events, which no cache keeps and no proxy collects. */
export const eventHeaders: Readonly<Record<string, string>> = {
  ...safeHeaders,
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
};

/** Proxies end connections on which nothing is sent: after this time a comment is. */
export const heartbeatMs = 15_000;

/** Returns what stands for a value in JSON: integers beyond 2^53, and numbers that JSON lacks, as strings; bytes as base64. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return isBytes(value) ? toBase64(value) : value;
}

/** Encodes a value as JSON, in one line. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => plain(part));
}

/** Answers with a value as JSON, which no cache keeps. */
export function jsonAnswer(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(jsonText(value), {
    status,
    headers: {
      ...safeHeaders,
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      ...headers,
    },
  });
}

/** An error as an answer tells of it. */
export interface AnsweredError {
  /** The kind of error, for programs. */
  readonly code: string;
  /** The error and its remedy, for people. */
  readonly message: string;
}

/** Answers with an error. */
export function errorAnswer(
  status: number,
  error: AnsweredError,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return jsonAnswer({ error }, status, headers);
}
