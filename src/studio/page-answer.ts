/** Answers with the files of the page. */
import { encodeUtf8 } from '../base/bytes.ts';
import { safeHeaders } from '../web/answers.ts';
import { RefusedRequest } from '../web/refused-request.ts';

/** A file of the page. */
export interface PageFile {
  readonly type: string;
  readonly body: string;
}

/** The files of the page by their names, `''` or `index.html` the page itself. */
export type PageFiles = ReadonlyMap<string, PageFile>;

/** Smaller files are not worth compressing. */
const smallBytes = 1000;

/** Answers with a file. Throws `RefusedRequest` if there is none of this name. */
export function pageAnswer(files: PageFiles, name: string, request: Request): Response {
  const file = name === '' || name === 'index.html' ? (files.get('') ?? files.get('index.html')) : files.get(name);
  if (file === undefined) throw new RefusedRequest(404, 'NOT_FOUND', 'Studio has no such file.');
  const bytes = encodeUtf8(file.body) as Uint8Array<ArrayBuffer>;
  const isPacked = bytes.length > smallBytes && /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '');
  const headers = {
    ...safeHeaders,
    'content-type': file.type,
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
    ...(isPacked && { 'content-encoding': 'gzip' }),
  };
  if (request.method === 'HEAD') return new Response(null, { headers });
  const body = new Response(bytes).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  return new Response(isPacked ? body.pipeThrough(new CompressionStream('gzip')) : body, { headers });
}
