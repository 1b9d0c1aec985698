/**
 * Text for people, in errors and log lines: on one line, of bounded length, and without secrets. Names, values and answers of
 * stores get into messages, and messages get into logs that many people may read.
 */
import { isBytes, isDate } from './brands.ts';

const longest = 2n ** 256n;

/** Whether a number would take long to write out: the time grows faster than the number of digits. */
function isLong(value: bigint): boolean {
  return value > longest || value < -longest;
}

/** Renders any value for a message, in a short and safe form. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? `'${value.slice(0, 57)}...'` : `'${value}'`;
  if (typeof value === 'bigint') return isLong(value) ? 'a bigint of more than 77 digits' : `${value}n`;
  if (typeof value === 'symbol') return 'a symbol';
  if (typeof value === 'function') return 'a function';
  if (isDate(value)) {
    return Number.isNaN(value.getTime()) ? 'an invalid Date' : `the Date ${value.toISOString()}`;
  }
  if (isBytes(value)) return `${value.length} bytes`;
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}

/** Renders a primary key for a message; all values of a compound key. */
export function describeKey(key: unknown): string {
  return Array.isArray(key) ? `[${key.map(describeValue).join(', ')}]` : describeValue(key);
}

/** Longest message. Longer ones are cut: an application can pass names and values of any length. */
const maxLength = 8192;

/** The controls C0 and C1, DEL, the line and paragraph separators, and the characters that change the direction of text. */
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
const hasControl = new RegExp(controls.source);

/** User and password of a URL. The URL need not be valid: secret keys may hold slashes. */
const userInfo = /\/\/(?:[^\s'"@/:?#]{0,1024}:[^\s'"@]{0,1024}|[^\s'"@/:?#]{1,1024})@/g;
/** Signatures and credentials of requests, as in headers and in the query strings of presigned URLs. */
const parameters =
  /\b(X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)|AWSAccessKeyId|Signature|Credential|SecretAccessKey|SessionToken)(["']?[:=] ?["']?)[^&\s,'"<>]+/gi;
/** Secrets in connection strings, in URLs, and in requests for tokens. Messages name some of them without a value. */
const assignments =
  /\b(sig|AccountKey|SharedAccess(?:Key|Signature)|upload_id|(?:access|refresh|id)_token|client_(?:secret|assertion))(=["']?|["']?: ?["'])[^&;\s,'"<>]+/gi;
const tokens = /\b(Basic|Bearer|SharedKey) [\w+/=.~:-]{8,}/g;

/** Hides everything that looks like credentials. */
export function withoutSecrets(text: string): string {
  let safe = text;
  if (safe.includes('//')) safe = safe.replace(userInfo, '//\u2026@');
  safe = safe.replace(parameters, '$1$2\u2026').replace(assignments, '$1$2\u2026');
  return safe.replace(tokens, '$1 \u2026');
}

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, '0')}`;
}

/** Escapes the characters that move the cursor of a terminal, colour the text after them, or begin a line: `\\x1b` for an ESC. */
export function withoutControls(text: string): string {
  return hasControl.test(text) ? text.replace(controls, escaped) : text;
}

/** Makes a text of several lines safe for a message: each line as {@link messageText} does. */
export function messageLines(text: string): string {
  return text
    .slice(0, maxLength * 4)
    .split('\n')
    .map(messageText)
    .join('\n');
}

/** Makes a text safe for a message: cut to the longest length, on one line, without secrets. */
export function messageText(text: string): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength).toWellFormed()}\u2026` : text;
  return withoutControls(withoutSecrets(cut));
}

/**
 * Returns a text without a character at its end, however often it is there. A loop, because a regular expression takes time that
 * grows with the square of a text from outside.
 */
export function withoutEnding(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}
