/** The check of signed URLs, version 4, as Google documents it. */
import { createHash, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { GcsError } from './gcs-error.ts';
import type { GcsRequest } from './gcs-message.ts';

/** The service account that signs. */
export interface Signer {
  readonly email: string;
  readonly publicKey: KeyObject;
}

const maxSeconds = 604_800;

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function timeOf(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

/** Throws unless a request has a valid signature that has not expired. */
export function checkSignedUrl({ method, path, query, headers }: GcsRequest, signer: Signer, nowMs: number): void {
  const { 'X-Goog-Signature': signature = '', ...signed } = query;
  const time = query['X-Goog-Date'] ?? '';
  const seconds = Number(query['X-Goog-Expires']);
  const scope = `${time.slice(0, 8)}/auto/storage/goog4_request`;
  if (query['X-Goog-Credential'] !== `${signer.email}/${scope}`) throw new GcsError(403, 'Unknown credential');
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > maxSeconds) throw new GcsError(400, 'Invalid expiry');
  if (!(timeOf(time) + seconds * 1000 >= nowMs)) throw new GcsError(400, 'ExpiredToken');
  const parameters = Object.entries(signed)
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .toSorted((a, b) => (a < b ? -1 : 1));
  const names = (query['X-Goog-SignedHeaders'] ?? '').split(';');
  const signedHeaders = names.map((name) => `${name}:${headers[name] ?? ''}\n`).join('');
  const canonical = [method, path, parameters.join('&'), signedHeaders, names.join(';'), 'UNSIGNED-PAYLOAD'];
  const hash = createHash('sha256').update(canonical.join('\n')).digest('hex');
  const text = ['GOOG4-RSA-SHA256', time, scope, hash].join('\n');
  if (!verify('RSA-SHA256', Buffer.from(text), signer.publicKey, Buffer.from(signature, 'hex'))) {
    throw new GcsError(403, 'SignatureDoesNotMatch');
  }
}
