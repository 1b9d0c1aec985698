/** Notes: create, read, change, delete, and list page by page. */
import type { FastifyInstance } from 'fastify';
import type { Database } from 'store-db';
import { commit } from './commit.ts';
import { RequestError } from './error-replies.ts';
import { attachments, notes } from './tables.ts';
import { timeOrderedId } from './time-ordered-id.ts';

const uuid = { type: 'string', format: 'uuid' } as const;
const contents = {
  topic: { type: 'string', minLength: 1, maxLength: 40 },
  title: { type: 'string', minLength: 1, maxLength: 200 },
  text: { type: 'string', maxLength: 100_000 },
} as const;
const params = { type: 'object', properties: { id: uuid } };
const newNote = {
  type: 'object',
  required: ['topic', 'title'],
  // A client may choose the id. If it is not sure whether its request arrived, it can repeat it: 409 says that it did.
  properties: { id: uuid, ...contents },
  additionalProperties: false,
};
const changes = { type: 'object', minProperties: 1, properties: contents, additionalProperties: false };
const page = {
  type: 'object',
  properties: {
    topic: contents.topic,
    before: uuid,
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
  },
};

interface Contents {
  topic: string;
  title: string;
  text?: string;
}

interface Page {
  topic?: string;
  before?: string;
  limit: number;
}

type WithId = { Params: { id: string } };

export function addNoteRoutes(app: FastifyInstance, db: Database): void {
  app.post<{ Body: Contents & { id?: string } }>('/notes', { schema: { body: newNote } }, async (request, reply) => {
    const { id = timeOrderedId(), ...rest } = request.body;
    const now = new Date();
    const batch = db.batch();
    await batch.insert(notes, { id, ...rest, createdAt: now, updatedAt: now });
    await commit(batch);
    reply.code(201).header('location', `/notes/${id}`);
    // An instance sees its own writes at once.
    return db.get(notes, id);
  });

  app.get<{ Querystring: Page }>('/notes', { schema: { querystring: page } }, async (request) => {
    const { topic, before, limit } = request.query;
    // Newest first. A page begins where the one before ended, so writes in between neither repeat nor hide a note. One
    // row more than asked for tells whether there is another page.
    let query = db
      .query(notes)
      .orderBy('id', 'desc')
      .limit(limit + 1);
    if (topic !== undefined) query = query.where('topic', '=', topic);
    if (before !== undefined) query = query.where('id', '<', before);
    const rows = await query.execute();
    const shown = rows.slice(0, limit);
    const last = rows.length > limit ? shown.at(-1) : undefined;
    return { notes: shown, next: last === undefined ? null : pageUrl({ ...request.query, before: last.id }) };
  });

  app.get<WithId>('/notes/:id', { schema: { params } }, async (request) => {
    const { id } = request.params;
    const note = await db.get(notes, id);
    if (note === undefined) throw new RequestError(404, 'NOT_FOUND', `There is no note ${id}.`);
    const files = await db.query(attachments).where('noteId', '=', id).select('id', 'name', 'contentType').execute();
    return { ...note, attachments: files };
  });

  app.patch<WithId & { Body: Partial<Contents> }>(
    '/notes/:id',
    { schema: { params, body: changes } },
    async (request) => {
      const { id } = request.params;
      const batch = db.batch();
      // Only what is given: another instance may change other fields of the note at the same time, and both changes stay.
      await batch.update(notes, { id, ...request.body, updatedAt: new Date() });
      await commit(batch);
      return db.get(notes, id);
    },
  );

  app.delete<WithId>('/notes/:id', { schema: { params } }, async (request, reply) => {
    const { id } = request.params;
    // One batch: the note and its attachments go together, or not at all.
    const batch = db.batch();
    await batch.deleteWhere(db.query(attachments).where('noteId', '=', id));
    await batch.delete(notes, id);
    await commit(batch);
    return reply.code(204).send();
  });
}

function pageUrl({ topic, before, limit }: Page): string {
  const query = new URLSearchParams({ limit: String(limit) });
  if (topic !== undefined) query.set('topic', topic);
  if (before !== undefined) query.set('before', before);
  return `/notes?${query.toString()}`;
}
