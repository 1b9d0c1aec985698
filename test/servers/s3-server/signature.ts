/** Signature Version 4, as header and as presigned URL. Written from the specification, apart from any client. */
import { createHash, createHmac } from 'node:crypto';
import { S3Error } from './s3-error.ts';
import type { S3Request } from './s3-message.ts';

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface Verifier {
  readonly credentials: S3Credentials;
  readonly region: string;
  readonly nowMs: number;
}

const algorithm = 'AWS4-HMAC-SHA256';
const maxSkewMs = 15 * 60_000;
const maxExpirySeconds = 7 * 24 * 3600;
const signatureParameter = 'X-Amz-Signature';

/** What either form of a signature says. */
interface Claim {
  readonly credential: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  /** As in `20240131T235959Z`. */
  readonly timestamp: string;
  readonly payloadHash: string;
  readonly malformed: 'AuthorizationHeaderMalformed' | 'AuthorizationQueryParametersError';
}

function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

function hmac(key: string | Uint8Array, data: string): Buffer {
  return createHmac('sha256', key).update(data).digest();
}

function encodeBytes(bytes: Uint8Array, spared: RegExp): string {
  return Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    return spared.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

function encodeParameter(text: string): string {
  return encodeBytes(Buffer.from(text), /[\w.~-]/);
}

function compareCodes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function canonicalQuery(request: S3Request): string {
  return request.parameters
    .filter(([name]) => name !== signatureParameter)
    .map(([name, value]) => [encodeParameter(name), encodeParameter(value)] as const)
    .toSorted(([nameA, valueA], [nameB, valueB]) => compareCodes(nameA, nameB) || compareCodes(valueA, valueB))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function canonicalRequest(request: S3Request, claim: Claim): string {
  const headers = claim.signedHeaders.map((name) => {
    return `${name}:${(request.headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`;
  });
  return [
    request.method,
    encodeBytes(request.path, /[\w.~/-]/),
    canonicalQuery(request),
    headers.join(''),
    claim.signedHeaders.join(';'),
    claim.payloadHash,
  ].join('\n');
}

/** Milliseconds since 1970 of a time as signatures write it. */
function parseTimestamp(timestamp: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(timestamp);
  if (match === null) throw new S3Error('AccessDenied', {}, 'A signed request needs a date, as in 20240131T235959Z.');
  const [year, month, day, hours, minutes, seconds] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return Date.UTC(year, month - 1, day, hours, minutes, seconds);
}

function isoTime(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

function claimOfHeader(request: S3Request, authorization: string): Claim {
  const malformed = 'AuthorizationHeaderMalformed';
  const space = authorization.indexOf(' ');
  if (authorization.slice(0, space) !== algorithm) throw new S3Error('InvalidRequest', {}, `Sign with ${algorithm}.`);
  const parts = new Map(
    authorization
      .slice(space + 1)
      .split(',')
      .map((part) => {
        const [name = '', ...value] = part.trim().split('=');
        return [name, value.join('=')] as const;
      }),
  );
  const [credential, signed, signature] = ['Credential', 'SignedHeaders', 'Signature'].map((name) => parts.get(name));
  if (credential === undefined || signed === undefined || signature === undefined) throw new S3Error(malformed);
  const payloadHash = request.headers['x-amz-content-sha256'];
  if (payloadHash === undefined) {
    throw new S3Error('InvalidRequest', {}, 'Missing required header for this request: x-amz-content-sha256');
  }
  const timestamp = request.headers['x-amz-date'] ?? '';
  return { credential, signedHeaders: signed.split(';'), signature, timestamp, payloadHash, malformed };
}

function claimOfQuery(request: S3Request): Claim {
  const malformed = 'AuthorizationQueryParametersError';
  const parameter = (name: string): string => {
    const value = request.query[name];
    if (value === undefined) throw new S3Error(malformed, {}, `The parameter ${name} is missing.`);
    return value;
  };
  if (parameter('X-Amz-Algorithm') !== algorithm) throw new S3Error(malformed, {}, `Sign with ${algorithm}.`);
  return {
    credential: parameter('X-Amz-Credential'),
    signedHeaders: parameter('X-Amz-SignedHeaders').split(';'),
    signature: parameter(signatureParameter),
    timestamp: parameter('X-Amz-Date'),
    payloadHash: request.query['X-Amz-Content-Sha256'] ?? 'UNSIGNED-PAYLOAD',
    malformed,
  };
}

function checkExpiry(request: S3Request, timestamp: string, nowMs: number): void {
  const malformed = 'AuthorizationQueryParametersError';
  const text = request.query['X-Amz-Expires'] ?? '';
  if (!/^\d+$/.test(text)) throw new S3Error(malformed, {}, 'X-Amz-Expires should be a non-negative number');
  const seconds = Number(text);
  if (seconds > maxExpirySeconds) {
    throw new S3Error(malformed, {}, `X-Amz-Expires must be less than a week (in seconds), ${maxExpirySeconds}`);
  }
  const signedMs = parseTimestamp(timestamp);
  const expiresMs = signedMs + seconds * 1000;
  const times = { 'X-Amz-Expires': seconds, Expires: isoTime(expiresMs), ServerTime: isoTime(nowMs) };
  if (signedMs > nowMs + maxSkewMs) throw new S3Error('AccessDenied', times, 'Request is not yet valid');
  if (nowMs > expiresMs) throw new S3Error('AccessDenied', times, 'Request has expired');
}

function checkSkew(timestamp: string, nowMs: number): void {
  if (Math.abs(parseTimestamp(timestamp) - nowMs) <= maxSkewMs) return;
  throw new S3Error('RequestTimeTooSkewed', {
    RequestTime: timestamp,
    ServerTime: isoTime(nowMs),
    MaxAllowedSkewMilliseconds: maxSkewMs,
  });
}

function checkSignedHeaders(request: S3Request, { signedHeaders }: Claim): void {
  const unsigned = Object.keys(request.headers).filter((name) => {
    return (name === 'host' || name.startsWith('x-amz-')) && !signedHeaders.includes(name);
  });
  if (unsigned.length === 0) return;
  const message = 'There were headers present in the request which were not signed';
  throw new S3Error('AccessDenied', { HeadersNotSigned: unsigned.join(', ') }, message);
}

function checkScope(claim: Claim, { credentials, region }: Verifier): string[] {
  const scope = claim.credential.split('/');
  const [accessKeyId, date, scopeRegion, service, end] = scope.splice(-5);
  if (scope.length > 0 || end !== 'aws4_request' || service !== 's3' || date !== claim.timestamp.slice(0, 8)) {
    throw new S3Error(claim.malformed, {}, 'The credential must be <key>/<date>/<region>/s3/aws4_request.');
  }
  if (accessKeyId !== credentials.accessKeyId) {
    throw new S3Error('InvalidAccessKeyId', { AWSAccessKeyId: accessKeyId });
  }
  if (scopeRegion !== region) {
    throw new S3Error(
      claim.malformed,
      { Region: region },
      `The region '${scopeRegion}' is wrong; expecting '${region}'`,
    );
  }
  return [date, scopeRegion, service, end];
}

/** Refuses a request that is not signed as it should be; answers with what is known of its payload's hash. */
export function verifySignature(request: S3Request, verifier: Verifier): string {
  const authorization = request.headers['authorization'];
  const isPresigned = request.query[signatureParameter] !== undefined;
  if (authorization === undefined && !isPresigned) throw new S3Error('AccessDenied');
  if (authorization !== undefined && isPresigned) {
    throw new S3Error('InvalidArgument', {}, 'Only one auth mechanism allowed');
  }
  const claim = authorization === undefined ? claimOfQuery(request) : claimOfHeader(request, authorization);
  if (request.headers['x-amz-security-token'] !== undefined || request.query['X-Amz-Security-Token'] !== undefined) {
    throw new S3Error('InvalidToken');
  }
  const scope = checkScope(claim, verifier);
  if (isPresigned) checkExpiry(request, claim.timestamp, verifier.nowMs);
  else checkSkew(claim.timestamp, verifier.nowMs);
  const canonical = canonicalRequest(request, claim);
  const stringToSign = [algorithm, claim.timestamp, scope.join('/'), sha256Hex(canonical)].join('\n');
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${verifier.credentials.secretAccessKey}`);
  if (hmac(key, stringToSign).toString('hex') !== claim.signature) {
    throw new S3Error('SignatureDoesNotMatch', {
      AWSAccessKeyId: verifier.credentials.accessKeyId,
      StringToSign: stringToSign,
      SignatureProvided: claim.signature,
      CanonicalRequest: canonical,
    });
  }
  checkSignedHeaders(request, claim);
  return claim.payloadHash;
}
