/** A server of static files, as small as one can be. Any other does as well. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import path from 'node:path';

const types: Readonly<Record<string, string>> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript' };

/** Whether a file never changes: every file of a bundle but its pointer. */
function isImmutable(file: string): boolean {
  return /[\\/](?:data|indexes|manifests|contents|blobs)[\\/]/.test(file);
}

async function answer(folder: string, url: string, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(url, 'http://localhost');
  const file = path.join(folder, decodeURIComponent(pathname === '/' ? '/index.html' : pathname));
  const isInside = file.startsWith(path.resolve(folder) + path.sep);
  const facts = isInside ? await stat(file).catch(() => undefined) : undefined;
  if (facts?.isFile() !== true) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    'content-type': types[path.extname(file)] ?? 'application/octet-stream',
    'content-length': facts.size,
    'cache-control': isImmutable(file) ? 'public, max-age=31536000, immutable' : 'no-cache',
  });
  createReadStream(file).pipe(response);
}

/** Returns a server of the files in a folder, which is not listening yet. */
export function serveFolder(folder: string): Server {
  return createServer((request, response) => {
    answer(folder, request.url ?? '/', response).catch(() => response.writeHead(400).end());
  });
}
