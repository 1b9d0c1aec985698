/** Values in the messages of errors. */
import { isBytes, isDate } from './brands.ts';

const longest = 2n ** 256n;

/** Whether it would take long to write out: that grows faster than the digits do. */
function isLong(value: bigint): boolean {
  return value > longest || value < -longest;
}

/** A short, safe rendering of any value for a message. */
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

/** A primary key for messages: the values of one that is made of several. */
export function describeKey(key: unknown): string {
  return Array.isArray(key) ? `[${key.map(describeValue).join(', ')}]` : describeValue(key);
}

// Text for people, in errors and log lines: on one line, of bounded length, and without secrets. Names, values and what
// stores answer get into messages, and messages get into logs that many may read.

/** Longer messages are cut: a name or a value that an application passes on may be of any length. */
const maxLength = 8192;

/** Of C0 and C1, DEL, the ends of lines and paragraphs, and the ones that turn the direction of text around. */
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
const hasControl = new RegExp(controls.source);

/** User and password of a URL, whether or not the URL is a right one: secret keys may hold slashes. */
const userInfo = /\/\/(?:[^\s'"@/:?#]{0,1024}:[^\s'"@]{0,1024}|[^\s'"@/:?#]{1,1024})@/g;
/** What signs requests, as it stands in headers and in the queries of presigned URLs. */
const parameters =
  /\b(X-Amz-(?:Signature|Credential|Security-Token)|AWSAccessKeyId|Signature|Credential|SecretAccessKey|SessionToken)(["']?[:=] ?["']?)[^&\s,'"<>]+/gi;
const tokens = /\b(Basic|Bearer) [\w+/=.~-]{8,}/g;

/** Hides what looks like credentials. */
export function withoutSecrets(text: string): string {
  let safe = text;
  if (safe.includes('//')) safe = safe.replace(userInfo, '//\u2026@');
  return safe.replace(parameters, '$1$2\u2026').replace(tokens, '$1 \u2026');
}

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, '0')}`;
}

/** A text in which nothing moves the cursor of a terminal, colours what follows, or begins a line: `\\x1b` for an ESC. */
export function withoutControls(text: string): string {
  return hasControl.test(text) ? text.replace(controls, escaped) : text;
}

/** A text as a message may hold it that is more than one line: each is as {@link messageText} makes it. */
export function messageLines(text: string): string {
  return text
    .slice(0, maxLength * 4)
    .split('\n')
    .map(messageText)
    .join('\n');
}

/** A text as a message may hold it. */
export function messageText(text: string): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength).toWellFormed()}\u2026` : text;
  return withoutControls(withoutSecrets(cut));
}
