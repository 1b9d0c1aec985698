/** Notes: list page by page, read, create, change and delete. */
import type { Database } from 'store-db';
import { RequestError } from './errors.ts';
import { readBody, readLimit } from './requests.ts';
import type { Content } from './requests.ts';
import { notes } from './tables.ts';

/** Opens the database when it is first called. */
type Open = () => Promise<Database>;

/** The newest notes, all of them or those of a topic. */
export async function listNotes(url: URL, open: Open): Promise<Response> {
  const size = readLimit(url.searchParams.get('limit'));
  const topic = url.searchParams.get('topic');
  const after = url.searchParams.get('after');
  const db = await open();
  let query = db.query(notes).orderBy('id', 'desc');
  if (topic !== null) query = query.where('topic', '=', topic);
  const { rows, next = null } = await query.page(after === null ? { size } : { size, after });
  return Response.json({ notes: rows, next });
}

export async function createNote(request: Request, open: Open): Promise<Response> {
  // A client may choose the id. If it is not sure whether its request arrived, it can repeat it: 409 says that it did.
  const content = await readBody<Content & { readonly id?: string }>(request, ['topic', 'title'], ['text', 'id']);
  const db = await open();
  const batch = db.batch();
  const id = await batch.insert(notes, content);
  await batch.flush();
  // An instance sees its own writes at once.
  return Response.json(await db.get(notes, id), { status: 201, headers: { location: `/notes/${id}` } });
}

export async function readNote(id: string, open: Open): Promise<Response> {
  const db = await open();
  const note = await db.get(notes, id);
  if (note === undefined) throw noSuchNote(id);
  return Response.json(note);
}

/** Changes the fields that are given. With `revision`, only if nobody has changed the note since the client read it. */
export async function changeNote(id: string, request: Request, open: Open): Promise<Response> {
  const fields = ['topic', 'title', 'text', 'revision'];
  const { revision, ...changes } = await readBody<Partial<Content> & { readonly revision?: number }>(
    request,
    [],
    fields,
  );
  const db = await open();
  // If another request changes the note first, the function runs again, on the changed note.
  await db.transaction(async (tx) => {
    const note = await tx.get(notes, id);
    if (note === undefined) throw noSuchNote(id);
    if (revision !== undefined && revision !== note.revision) {
      throw new RequestError(409, 'CHANGED', `The note has revision ${note.revision} now. Read it again.`);
    }
    await tx.update(notes, { ...changes, id, revision: note.revision + 1, changedAt: new Date() });
  });
  return Response.json(await db.get(notes, id));
}

export async function deleteNote(id: string, open: Open): Promise<Response> {
  const db = await open();
  await db.transaction(async (tx) => {
    if ((await tx.get(notes, id)) === undefined) throw noSuchNote(id);
    await tx.delete(notes, id);
  });
  return new Response(null, { status: 204 });
}

function noSuchNote(id: string): RequestError {
  return new RequestError(404, 'NOT_FOUND', `There is no note ${id}.`);
}
