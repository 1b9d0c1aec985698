/** Requests and answers of the test server, and which operation of the API a request is for. */
import { GcsError } from './gcs-error.ts';
import type { GcsBucket, GcsObject, Query } from './bucket.ts';
import { md5Of } from './bucket.ts';

export type GcsOperation =
  | 'get'
  | 'download'
  | 'insert'
  | 'session.open'
  | 'session.put'
  | 'session.end'
  | 'delete'
  | 'list'
  | 'rewrite'
  | 'link';

export interface GcsRequest {
  readonly method: string;
  readonly operation: GcsOperation | undefined;
  readonly bucket: string;
  /** The object; the target of a copy. */
  readonly key: string;
  /** The source of a copy. */
  readonly source: string;
  readonly path: string;
  readonly query: Query;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface GcsAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: Uint8Array;
}

const generations = ['ifGenerationMatch', 'ifGenerationNotMatch'];

/** Parameters of each operation. Others are refused, so that no test passes because something was ignored. */
const parameters: Readonly<Record<GcsOperation, readonly string[]>> = {
  get: ['fields', 'generation', ...generations],
  download: ['alt', 'generation', ...generations],
  insert: ['uploadType', 'name', 'fields', ...generations],
  'session.open': ['uploadType', 'name', 'fields', ...generations],
  'session.put': ['uploadType', 'upload_id', 'fields', 'name', ...generations],
  'session.end': ['uploadType', 'upload_id', 'fields', 'name', ...generations],
  delete: ['generation', ...generations],
  list: ['prefix', 'startOffset', 'maxResults', 'pageToken', 'fields'],
  rewrite: ['rewriteToken', 'fields', 'ifSourceGenerationMatch', 'ifSourceGenerationNotMatch', ...generations],
  link: [
    'X-Goog-Algorithm',
    'X-Goog-Credential',
    'X-Goog-Date',
    'X-Goog-Expires',
    'X-Goog-SignedHeaders',
    'X-Goog-Signature',
    'response-content-disposition',
    'response-content-type',
  ],
};

const objectPath = /^\/(upload\/)?storage\/v1\/b\/([^/]+)\/o(?:\/([^/]+))?(?:\/rewriteTo\/b\/([^/]+)\/o\/([^/]+))?$/;

function operationOf(method: string, path: RegExpExecArray, query: Query): GcsOperation | undefined {
  const [, upload, , key, , target] = path;
  if (upload !== undefined) {
    if (key !== undefined) return undefined;
    if (query['upload_id'] !== undefined) {
      return method === 'PUT' ? 'session.put' : method === 'DELETE' ? 'session.end' : undefined;
    }
    if (method !== 'POST') return undefined;
    return query['uploadType'] === 'resumable' ? 'session.open' : 'insert';
  }
  if (target !== undefined) return method === 'POST' ? 'rewrite' : undefined;
  if (key === undefined) return method === 'GET' ? 'list' : undefined;
  if (method === 'DELETE') return 'delete';
  if (method !== 'GET') return undefined;
  return query['alt'] === 'media' ? 'download' : 'get';
}

/** Parses a request. Throws for one that is no request of the API. */
export function parseRequest(method: string, target: string, headers: GcsRequest['headers'], body: Buffer): GcsRequest {
  const at = target.indexOf('?');
  const path = at === -1 ? target : target.slice(0, at);
  const query = Object.fromEntries(new URLSearchParams(at === -1 ? '' : target.slice(at + 1)));
  const base = { method, path, query, headers, body, source: '' };
  const match = objectPath.exec(path);
  if (match === null) {
    const [, bucket = '', key = ''] = /^\/([^/]+)\/(.+)$/.exec(path) ?? [];
    const operation = query['X-Goog-Algorithm'] === undefined ? undefined : 'link';
    return { ...base, operation, bucket: decodeURIComponent(bucket), key: decodeURIComponent(key) };
  }
  const [, , bucket = '', first = '', , second] = match;
  const operation = operationOf(method, match, query);
  const key = decodeURIComponent(second ?? first) || (query['name'] ?? '');
  return { ...base, operation, bucket: decodeURIComponent(bucket), key, source: decodeURIComponent(first) };
}

/** Refuses what the server does not know. */
export function checkKnown({ operation, query, method, path }: GcsRequest): GcsOperation {
  if (operation === undefined) throw new GcsError(501, `The test server does not know ${method} ${path}`);
  const unknown = Object.keys(query).find((name) => !parameters[operation].includes(name));
  if (unknown !== undefined) throw new GcsError(501, `The test server does not know the parameter ${unknown}`);
  return operation;
}

/** Returns the names in a selection of fields, such as `items(name,size),nextPageToken`, with the selections in them. */
function selectionOf(fields: string): Map<string, string> {
  const selection = new Map<string, string>();
  for (const [, name = '', inner = ''] of fields.matchAll(/(\w+)(?:\(([^)]*)\))?,?/g)) selection.set(name, inner);
  return selection;
}

function select(value: unknown, fields: string): unknown {
  if (fields === '') return value;
  if (Array.isArray(value)) return value.map((item) => select(item, fields));
  const selection = selectionOf(fields);
  const kept = Object.entries(value as object).filter(([name]) => selection.has(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, select(inner, selection.get(name) ?? '')]));
}

/** Answers with a document, or with the fields of it that the request selects. */
export function jsonAnswer(document: object, query: Query): GcsAnswer {
  const body = Buffer.from(JSON.stringify(select(document, query['fields'] ?? '')));
  return { status: 200, headers: { 'content-type': 'application/json; charset=UTF-8' }, body };
}

/** The resource of an object. */
export function resourceOf(bucket: GcsBucket, object: GcsObject): object {
  const { name, generation, contentType, cacheControl, metadata, bytes, timeCreatedMs } = object;
  const timeCreated = new Date(timeCreatedMs).toISOString();
  return {
    kind: 'storage#object',
    bucket: bucket.name,
    name,
    generation,
    metageneration: '1',
    contentType,
    size: String(bytes.length),
    md5Hash: md5Of(bytes),
    timeCreated,
    updated: timeCreated,
    ...(cacheControl === undefined ? {} : { cacheControl }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}
