/** Uploads: of several parts in one request, of the content alone, and in resumable sessions. */
import { randomBytes } from 'node:crypto';
import { checkName, md5Of } from './bucket.ts';
import type { GcsBucket, GcsContent, GcsSession } from './bucket.ts';
import { GcsError } from './gcs-error.ts';
import { jsonAnswer, resourceOf } from './gcs-message.ts';
import type { GcsAnswer, GcsRequest } from './gcs-message.ts';

/** Sessions keep whole multiples of this many bytes, before the last chunk. */
const grainBytes = 256 * 1024;

interface Metadata {
  readonly name: string;
  readonly contentType: string;
  readonly cacheControl: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly md5Hash: string | undefined;
}

const knownMetadata = new Set(['name', 'contentType', 'cacheControl', 'metadata', 'md5Hash']);

function parseMetadata(text: string, { query }: GcsRequest): Metadata {
  const given = (text === '' ? {} : JSON.parse(text)) as Partial<Metadata>;
  const unknown = Object.keys(given).find((name) => !knownMetadata.has(name));
  if (unknown !== undefined) throw new GcsError(501, `The test server does not know the field ${unknown}`);
  const name = given.name ?? query['name'] ?? '';
  checkName(name);
  const { contentType = 'application/octet-stream', cacheControl, metadata, md5Hash } = given;
  return { name, contentType, cacheControl, metadata, md5Hash };
}

/** Returns head and content of each part of a body of type `multipart/related`. */
function partsOf({ headers, body }: GcsRequest): [head: string, content: Buffer][] {
  const boundary = /^multipart\/related; ?boundary="?([^";]+)"?$/.exec(headers['content-type'] ?? '')?.[1];
  if (boundary === undefined) throw new GcsError(400, 'The body is not multipart/related.');
  const parts: [string, Buffer][] = [];
  const mark = Buffer.from(`--${boundary}`);
  for (let at = body.indexOf(mark); at !== -1; ) {
    const next = body.indexOf(Buffer.concat([Buffer.from('\r\n'), mark]), at + mark.length);
    if (next === -1) break;
    const headEnd = body.indexOf('\r\n\r\n', at);
    parts.push([body.subarray(at + mark.length + 2, headEnd).toString(), body.subarray(headEnd + 4, next)]);
    at = next + 2;
  }
  if (
    parts.length !== 2 ||
    !body
      .subarray(-mark.length - 4)
      .toString()
      .startsWith(`--${boundary}--`)
  ) {
    throw new GcsError(400, 'The body has not two parts.');
  }
  return parts;
}

function contentOf(request: GcsRequest): GcsContent & Pick<Metadata, 'md5Hash'> {
  const { query, headers, body } = request;
  if (query['uploadType'] === 'media') {
    const contentType = headers['content-type'] ?? 'application/octet-stream';
    return { ...parseMetadata('', request), contentType, bytes: body };
  }
  if (query['uploadType'] !== 'multipart') throw new GcsError(400, 'Unknown uploadType');
  const [[, metadata], [, bytes]] = partsOf(request) as [[string, Buffer], [string, Buffer]];
  return { ...parseMetadata(metadata.toString(), request), bytes };
}

export async function insertObject(request: GcsRequest, bucket: GcsBucket): Promise<GcsAnswer> {
  const { md5Hash, ...content } = contentOf(request);
  if (md5Hash !== undefined && md5Hash !== md5Of(content.bytes)) {
    throw new GcsError(400, `Provided MD5 hash "${md5Hash}" doesn't match calculated MD5 hash.`);
  }
  if (bucket.dialect.noDelete && bucket.objects.has(content.name)) throw new GcsError(403);
  return jsonAnswer(resourceOf(bucket, await bucket.write(content, request.query)), request.query);
}

export function openSession(request: GcsRequest, bucket: GcsBucket): GcsAnswer {
  const { md5Hash: _, ...given } = parseMetadata(request.body.toString(), request);
  bucket.checkWrite(given.name, request.query);
  const id = randomBytes(24).toString('base64url');
  bucket.sessions.set(id, { ...given, query: request.query, bytes: Buffer.alloc(0), object: undefined });
  const query = new URLSearchParams({ ...request.query, upload_id: id });
  const location = `http://${request.headers['host']}${request.path}?${query.toString()}`;
  return { status: 200, headers: { location, 'x-guploader-uploadid': id } };
}

function sessionOf({ query }: GcsRequest, bucket: GcsBucket): GcsSession {
  const session = bucket.sessions.get(query['upload_id'] ?? '');
  if (session === undefined) throw new GcsError(410);
  return session;
}

/** Keeps the bytes of a chunk that the session does not have yet. */
function keep(session: GcsSession, body: Buffer, start: number, isFinal: boolean, most: number): void {
  const has = session.bytes.length;
  if (start > has) {
    throw new GcsError(503, `The upload offset is ${start} byte(s), which exceeds already uploaded size of ${has}.`);
  }
  const fresh = body.subarray(has - start);
  const kept = Math.min(fresh.length, most);
  const end = isFinal && kept === fresh.length ? has + kept : Math.floor((has + kept) / grainBytes) * grainBytes;
  session.bytes = Buffer.concat([session.bytes, fresh.subarray(0, Math.max(0, end - has))]);
}

/** Takes a chunk, or a question how far the upload is. */
export async function putChunk(request: GcsRequest, bucket: GcsBucket): Promise<GcsAnswer> {
  const session = sessionOf(request, bucket);
  const range = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(request.headers['content-range'] ?? '');
  if (range === null) throw new GcsError(400, 'The Content-Range is not valid.');
  const [, start, end, total = '*'] = range;
  if (session.object !== undefined) return jsonAnswer(resourceOf(bucket, session.object), session.query);
  if (start === undefined ? request.body.length > 0 : Number(end) - Number(start) + 1 !== request.body.length) {
    throw new GcsError(400, 'The Content-Range does not fit the body.');
  }
  if (start !== undefined) {
    keep(session, request.body, Number(start), total !== '*', bucket.dialect.keptBytesPerChunk);
  }
  if (total === '*' || session.bytes.length < Number(total)) {
    const last = session.bytes.length - 1;
    return { status: 308, headers: { range: last < 0 ? undefined : `bytes=0-${last}` } };
  }
  const { name, contentType, cacheControl, metadata, bytes } = session;
  try {
    session.object = await bucket.write({ name, contentType, cacheControl, metadata, bytes }, session.query);
  } catch (error) {
    bucket.sessions.delete(request.query['upload_id'] ?? '');
    throw error;
  }
  return jsonAnswer(resourceOf(bucket, session.object), session.query);
}

export function endSession(request: GcsRequest, bucket: GcsBucket): GcsAnswer {
  sessionOf(request, bucket);
  bucket.sessions.delete(request.query['upload_id'] ?? '');
  return { status: 499 };
}
