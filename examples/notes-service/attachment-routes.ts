/**
 * Files attached to notes. They are uploaded through the service, in a stream, and downloaded straight from the bucket,
 * with a link that works for some minutes.
 */
import type { FastifyInstance } from 'fastify';
import { NotSupportedError } from 'store-db';
import type { BlobReference, Database } from 'store-db';
import { commit } from './commit.ts';
import { RequestError } from './error-replies.ts';
import { attachments, notes } from './tables.ts';
import { timeOrderedId } from './time-ordered-id.ts';

/** An upload takes as long as its client does, within reason. */
const uploadTimeoutMs = 15 * 60_000;
const linkSeconds = 300;

const params = { type: 'object', properties: { id: { type: 'string', format: 'uuid' } } };
const upload = {
  params,
  querystring: {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string', minLength: 1, maxLength: 200 } },
  },
  headers: { type: 'object', properties: { 'content-type': { type: 'string', pattern: '^[ -~]{1,255}$' } } },
};

type WithId = { Params: { id: string } };

export function addAttachmentRoutes(app: FastifyInstance, db: Database, maxBytes: number): void {
  const routes = async (scope: FastifyInstance): Promise<void> => {
    // In these routes a body is the file, whatever its type, and handed on unread.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));

    scope.post<WithId & { Querystring: { name: string }; Body: AsyncIterable<Uint8Array> | undefined }>(
      '/notes/:id/attachments',
      { schema: upload },
      async (request, reply) => {
        const noteId = request.params.id;
        const { name } = request.query;
        const contentType = request.headers['content-type'] ?? 'application/octet-stream';
        if ((await db.get(notes, noteId)) === undefined) {
          // It saves the upload; that the note exists when the attachment is committed, the update below makes sure.
          throw new RequestError(404, 'NOT_FOUND', `There is no note ${noteId}.`);
        }
        const id = timeOrderedId();
        const content = db.Blob(limited(request.body ?? [], maxBytes), { contentType });
        const batch = db.batch();
        await batch.update(notes, { id: noteId, updatedAt: new Date() });
        await batch.insert(attachments, { id, noteId, name, contentType, content });
        // The blob is uploaded first, so no row ever refers to bytes that are not there.
        await commit(batch, uploadTimeoutMs);
        reply.code(201).header('location', `/attachments/${id}`);
        return { id, noteId, name, contentType };
      },
    );

    scope.get<WithId>('/attachments/:id', { schema: { params } }, async (request, reply) => {
      const { id } = request.params;
      const file = await db.get(attachments, id);
      if (file === undefined) throw new RequestError(404, 'NOT_FOUND', `There is no attachment ${id}.`);
      const blob = db.getBlob(file.content ?? '');
      const link = await downloadLink(blob);
      // The link stops working, so nobody may keep the redirection.
      if (link !== undefined) return reply.header('cache-control', 'no-store').redirect(link);
      reply.header('content-type', file.contentType).header('content-length', await blob.size());
      // Uploaded by anyone, served from our own origin: a browser must neither show it nor guess what it is.
      reply.header('content-disposition', `attachment; filename*=UTF-8''${encodeURIComponent(file.name ?? '')}`);
      reply.header('x-content-type-options', 'nosniff');
      return reply.send(blob.stream());
    });

    scope.delete<WithId>('/attachments/:id', { schema: { params } }, async (request, reply) => {
      const batch = db.batch();
      await batch.delete(attachments, request.params.id);
      await commit(batch);
      return reply.code(204).send();
    });
  };
  // Without a name, Fastify searches all modules of the process for the function.
  app.register(Object.assign(routes, { [Symbol.for('fastify.display-name')]: 'attachments' }));
}

/** A link to the bytes in the bucket; undefined where the data is in a folder, which has none. */
async function downloadLink(blob: BlobReference): Promise<string | undefined> {
  try {
    return await blob.getDownloadUrl({ expiresIn: linkSeconds });
  } catch (error) {
    if (error instanceof NotSupportedError) return undefined;
    throw error;
  }
}

/** The bytes of a body, up to a limit. Whatever is wrong with them is the client's doing. */
async function* limited(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void> {
  let total = 0;
  try {
    for await (const chunk of body) {
      total += chunk.length;
      if (total > maxBytes) throw new RequestError(413, 'TOO_LARGE', `An attachment has at most ${maxBytes} bytes.`);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError(400, 'UPLOAD_CUT_OFF', 'The upload ended before it was complete.');
  }
}
