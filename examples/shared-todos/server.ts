/** One process: an instance of the database, the page, live queries, and the requests that write. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { StoreDb } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import { liveHandler } from 'store-db/live';
import { todos } from './todos.ts';

const here = new URL('./', import.meta.url);
const sources = new URL('../../src/', import.meta.url);

/** Bundles the script of the page as an application would. Here the package is the sources beside it. */
async function bundleScript(): Promise<string> {
  const source = (file: string): string => fileURLToPath(new URL(file, sources));
  const build = await rolldown({
    input: fileURLToPath(new URL('page.js', here)),
    platform: 'browser',
    tsconfig: false,
    resolve: {
      alias: {
        'store-db/live-client': source('live-client.ts'),
        'store-db/react': source('react.ts'),
        '#platform': source('platform/web.ts'),
      },
    },
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    onLog: () => undefined,
  });
  const { output } = await build.generate({ format: 'esm', minify: true, codeSplitting: false });
  await build.close();
  return output[0].code;
}

/** Returns the name of a list as a client sends it. Throws for anything else. */
function listIn(given: unknown): { readonly list: string } {
  const { list } = Object(given) as { readonly list?: unknown };
  if (typeof list !== 'string' || list === '' || list.length > 60) throw new TypeError('list must be a name.');
  return { list };
}

async function jsonOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const part of request) {
    text += String(part);
    if (text.length > 10_000) throw new TypeError('The request is too large.');
  }
  return JSON.parse(text) as Record<string, unknown>;
}

/** Adds an item, or says whether one is done. */
async function write(db: Database, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { id, text, isDone, ...rest } = await jsonOf(request);
  await db.transaction(async (tx) => {
    if (typeof id === 'string') await tx.update(todos, { id, isDone: isDone === true });
    else await tx.insert(todos, { ...listIn(rest), text: String(text).slice(0, 200) });
  });
  response.writeHead(204).end();
}

/** A process that serves to-do lists. */
export interface TodoServer {
  readonly server: Server;
  stop(): Promise<void>;
}

/** Opens the database in a folder, and makes a server that is not listening yet. */
export async function openTodos(folder: string): Promise<TodoServer> {
  // What other processes write shows within the interval.
  const db = StoreDb({
    dbPrefix: 'todos',
    nodeId: 'auto',
    driver: new FileDriver(folder),
    writeForwardInterval: 500,
    logLevel: 'warn',
  });
  db.registerSchema(todos);
  await db.start();
  const live = liveHandler(db, {
    basePath: '/live',
    queries: {
      todos: {
        params: listIn,
        watch: ({ list }: { readonly list: string }) =>
          db.query(todos).where('list', '=', list).orderBy('id').limit(200).watch(),
      },
    },
    // Everybody may see every list here. Ask for a session in an application.
    authorize: () => true,
  });
  const [page, script] = [await readFile(new URL('index.html', here)), await bundleScript()];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname.startsWith('/live/')) await live.node(request, response);
    else if (pathname === '/todos' && request.headers['content-type'] === 'application/json') {
      await write(db, request, response);
    } else if (pathname === '/page.js') response.writeHead(200, { 'content-type': 'text/javascript' }).end(script);
    else if (pathname === '/') response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
    else response.writeHead(404).end();
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.writeHead(400).end());
  });
  const stop = async (): Promise<void> => {
    live.close();
    server.close();
    server.closeAllConnections();
    await db.stop();
  };
  return { server, stop };
}
