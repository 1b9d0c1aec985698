/** The Worker: an API on a database in a bucket of R2. README.md beside this file has more. */
import { StoreDb } from 'store-db';
import type { Database } from 'store-db';
import { R2Driver } from 'store-db/workers';
import type { R2BucketBinding } from 'store-db/workers';
import { errorResponse, RequestError } from './errors.ts';
import { changeNote, createNote, deleteNote, listNotes, readNote } from './note-routes.ts';
import { notes } from './tables.ts';

/** The bindings that wrangler.jsonc names. */
export interface Env {
  readonly NOTES: R2BucketBinding;
}

/** The part of a request's context that is used. */
export interface Context {
  waitUntil(work: Promise<unknown>): void;
}

/** For how long a request may read in a loop, in milliseconds. The requests of this Worker read one page at most. */
const longestLoopMs = 5000;

/** Runs a function, for which it opens the database when that is asked for. */
async function withDatabase<T>(env: Env, context: Context, use: (open: () => Promise<Database>) => Promise<T>) {
  // A Worker may not wait in one request for what another has begun, so each request has an instance of its own.
  const waitUntil = (work: Promise<unknown>): void => context.waitUntil(work);
  const driver = new R2Driver({ bucket: env.NOTES, name: 'notes' });
  const db = StoreDb({ dbPrefix: 'notes', role: 'ephemeral', driver, waitUntil, logLevel: 'warn' });
  db.registerSchema(notes);
  let isOpen = false;
  const open = async (): Promise<Database> => {
    await db.start();
    isOpen = true;
    return db;
  };
  try {
    return await use(open);
  } finally {
    // Stopping waits for a merge, and the answer need not wait for it.
    if (isOpen) waitUntil(db.stop());
  }
}

async function answer(request: Request, open: () => Promise<Database>): Promise<Response> {
  const url = new URL(request.url);
  const { method } = request;
  const path = /^\/notes(?:\/([\w-]+))?$/.exec(url.pathname);
  if (path === null) throw new RequestError(404, 'NOT_FOUND', `There is nothing at ${url.pathname}.`);
  const id = path[1];
  if (id === undefined) {
    if (method === 'GET') return listNotes(url, open);
    if (method === 'POST') return createNote(request, open);
  } else {
    if (method === 'GET') return readNote(id, open);
    if (method === 'PATCH') return changeNote(id, request, open);
    if (method === 'DELETE') return deleteNote(id, open);
  }
  throw new RequestError(405, 'METHOD_NOT_ALLOWED', `${method} is not for ${url.pathname}.`);
}

export default {
  async fetch(request: Request, env: Env, context: Context): Promise<Response> {
    try {
      return await withDatabase(env, context, (open) => answer(request, open));
    } catch (error) {
      return errorResponse(error);
    }
  },

  /** Merges the commits that wait and deletes garbage. wrangler.jsonc has the times at which it runs. */
  async scheduled(_event: unknown, env: Env, context: Context): Promise<void> {
    await withDatabase(env, context, async (open) => {
      const db = await open();
      await db.checkpoint();
      await db.gc({ loopGraceMs: longestLoopMs });
    });
  },
};
