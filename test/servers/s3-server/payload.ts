/** From the body of a request to its bytes: verifies everything that was announced about them. */
import { createHash } from 'node:crypto';
import { checksumHeader, checksumOf, parseAlgorithm } from './checksums.ts';
import type { Checksum } from './checksums.ts';
import type { S3Dialect } from './dialect.ts';
import { S3Error } from './s3-error.ts';
import { headerOf } from './s3-message.ts';
import type { S3Request } from './s3-message.ts';

export interface Payload {
  readonly bytes: Buffer;
  readonly checksum: Checksum | undefined;
}

interface Unchunked {
  readonly bytes: Buffer;
  readonly trailers: ReadonlyMap<string, string>;
}

const streamed = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';
const minChunkSizeBytes = 8192;
const namePrefix = 'x-amz-checksum-';

function parseTrailers(text: string): Map<string, string> {
  if (!text.endsWith('\r\n\r\n') && text !== '\r\n') throw new S3Error('MalformedTrailerError');
  const lines = text.split('\r\n').filter((line) => line !== '');
  return new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}

/** Takes `aws-chunked` apart: chunks with their sizes in front, an empty one at the end, and trailers. */
function unchunk(body: Buffer): Unchunked {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = body.indexOf('\r\n', at);
    if (lineEnd === -1) throw new S3Error('IncompleteBody');
    const line = body.toString('latin1', at, lineEnd);
    if (!/^[\da-fA-F]+$/.test(line)) throw new S3Error('InvalidRequest', {}, 'A chunk must begin with its size.');
    const sizeBytes = Number.parseInt(line, 16);
    const start = lineEnd + 2;
    if (sizeBytes === 0) {
      return { bytes: Buffer.concat(chunks), trailers: parseTrailers(body.toString('latin1', start)) };
    }
    const last = chunks.at(-1);
    if (last !== undefined && last.length < minChunkSizeBytes) {
      throw new S3Error('InvalidChunkSizeError', { Chunk: chunks.length + 1, BadChunkSize: last.length });
    }
    if (body.toString('latin1', start + sizeBytes, start + sizeBytes + 2) !== '\r\n') {
      throw new S3Error('IncompleteBody');
    }
    chunks.push(body.subarray(start, start + sizeBytes));
    at = start + sizeBytes + 2;
  }
}

function readStreamed(request: S3Request): Unchunked {
  const { bytes, trailers } = unchunk(request.body);
  const announcedSize = headerOf(request, 'x-amz-decoded-content-length');
  if (announcedSize === undefined) throw new S3Error('MissingContentLength');
  if (Number(announcedSize) !== bytes.length) throw new S3Error('IncompleteBody');
  const announced = headerOf(request, 'x-amz-trailer')?.toLowerCase() ?? '';
  if ([...trailers.keys()].join(',') !== announced) throw new S3Error('MalformedTrailerError');
  return { bytes, trailers };
}

function readWhole(request: S3Request, payloadHash: string): Unchunked {
  const { body, headers } = request;
  if (payloadHash.startsWith('STREAMING-')) throw new S3Error('NotImplemented', { Header: 'x-amz-content-sha256' });
  if (headers['transfer-encoding'] !== undefined) throw new S3Error('NotImplemented', { Header: 'Transfer-Encoding' });
  const needsLength = request.method === 'PUT' || request.method === 'POST';
  if (needsLength && headers['content-length'] === undefined) throw new S3Error('MissingContentLength');
  if (payloadHash !== 'UNSIGNED-PAYLOAD' && payloadHash !== createHash('sha256').update(body).digest('hex')) {
    throw new S3Error('XAmzContentSHA256Mismatch', { ClientComputedContentSHA256: payloadHash });
  }
  return { bytes: body, trailers: new Map() };
}

/** The checksum beside the body, in a header or a trailer; at most one. */
function announcedChecksum(request: S3Request, trailers: ReadonlyMap<string, string>): Checksum | undefined {
  const names = new Set([...Object.keys(request.headers), ...request.parameters.map(([name]) => name.toLowerCase())]);
  const inHeaders = [...names].filter((name) => name.startsWith(namePrefix) && !/-(mode|algorithm|type)$/.test(name));
  const found = [...inHeaders.map((name) => [name, headerOf(request, name) ?? ''] as const), ...trailers];
  if (found.length > 1) throw new S3Error('InvalidRequest', {}, 'Expecting a single x-amz-checksum- header');
  const [only] = found;
  if (only === undefined) {
    if (headerOf(request, 'x-amz-sdk-checksum-algorithm') === undefined) return undefined;
    const message = 'x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* header';
    throw new S3Error('InvalidRequest', {}, message);
  }
  return { algorithm: parseAlgorithm(only[0].slice(namePrefix.length)), value: only[1] };
}

function verifyMd5(request: S3Request, bytes: Buffer): void {
  const expected = request.headers['content-md5'];
  if (expected === undefined) return;
  if (Buffer.from(expected, 'base64').length !== 16) throw new S3Error('InvalidDigest', { 'Content-MD5': expected });
  const calculated = createHash('md5').update(bytes).digest('base64');
  if (calculated !== expected) {
    throw new S3Error('BadDigest', { ExpectedDigest: expected, CalculatedDigest: calculated });
  }
}

function verifyChecksum({ algorithm, value }: Checksum, bytes: Buffer): void {
  const calculated = checksumOf(algorithm, bytes);
  if (Buffer.from(value, 'base64').length !== Buffer.from(calculated, 'base64').length) {
    throw new S3Error('InvalidRequest', {}, `Value for ${checksumHeader(algorithm)} header is invalid.`);
  }
  if (value === calculated) return;
  const name = algorithm.toUpperCase();
  throw new S3Error('BadDigest', {}, `The ${name} you specified did not match the calculated checksum.`);
}

/** A store from before there were additional checksums knows none of their headers. */
export function refuseChecksums(request: S3Request, { noChecksums }: S3Dialect): void {
  if (noChecksums === false) return;
  const odd = Object.keys(request.headers).find((name) => {
    return /^x-amz-(checksum-(?!mode$)|sdk-checksum-|trailer$|decoded-content-length$)/.test(name);
  });
  if (odd !== undefined) {
    throw new S3Error(noChecksums === 400 ? 'InvalidArgument' : 'NotImplemented', { Header: odd }).as(noChecksums);
  }
}

/** Decodes and verifies the body, given the payload hash that the signature covers. */
export function readPayload(request: S3Request, payloadHash: string): Payload {
  const { bytes, trailers } = payloadHash === streamed ? readStreamed(request) : readWhole(request, payloadHash);
  verifyMd5(request, bytes);
  const checksum = announcedChecksum(request, trailers);
  if (checksum !== undefined) verifyChecksum(checksum, bytes);
  return { bytes, checksum };
}
