/** The required behaviour of the example service, on any store. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceProcess } from './service-process.ts';
import type { Variables } from './service-process.ts';

/** Where a service is to keep its data. */
export interface ServiceStore {
  /** The environment that leads there. */
  readonly variables: Variables;
  /** Whether the store can make links for downloading. */
  readonly makesLinks: boolean;
  readonly close: () => Promise<void>;
}

interface Note {
  readonly id: string;
  readonly topic: string;
  readonly title: string;
  readonly text: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

interface Page {
  readonly notes: readonly Note[];
  readonly next: string | null;
}

const mebibyte = 1024 * 1024;
const maxAttachmentBytes = 24 * mebibyte;

/** Far more than the interval of five seconds, on a busy machine too. */
const shownWithinMs = 20_000;

async function json<T>(response: Response): Promise<T> {
  return (await response.json()) as T;
}

async function create(service: ServiceProcess, note: object): Promise<Note> {
  const response = await service.send('POST', '/notes', { topic: 'general', title: 'A note', ...note });
  expect(response.status).toBe(201);
  return json<Note>(response);
}

async function attach(service: ServiceProcess, noteId: string, bytes: Uint8Array, name = 'file'): Promise<string> {
  const response = await service.fetch(`/notes/${noteId}/attachments?name=${encodeURIComponent(name)}`, {
    method: 'POST',
    headers: { 'content-type': 'image/png' },
    body: bytes,
  });
  expect(response.status).toBe(201);
  return (await json<{ id: string }>(response)).id;
}

async function codeOf(response: Response): Promise<[number, string]> {
  return [response.status, (await json<{ code: string }>(response)).code];
}

/** Sends the head of an upload and half of what it promises, and hangs up. */
async function cutOff(service: ServiceProcess, path: string): Promise<void> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(`POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 200000\r\n\r\n`);
  if (!socket.write(Buffer.alloc(100_000))) await once(socket, 'drain');
  socket.destroy();
}

/** Downloads by the link in an answer. It leads past the service, and needs no credentials. */
async function followLink(service: ServiceProcess, answer: Response): Promise<Response> {
  const link = answer.headers.get('location') ?? '';
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([302, 'no-store']);
  expect(new URL(link).origin).not.toBe(new URL(service.url).origin);
  return fetch(link);
}

/** An answer with the bytes themselves, which a browser must only store. */
function checkPassedThrough(answer: Response, bytes: Uint8Array): Response {
  const { headers } = answer;
  expect(headers.get('content-length')).toBe(String(bytes.length));
  expect(headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''B%C3%BCcher%20%26%20%C3%84pfel.png");
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  return answer;
}

export function describeService(storeName: string, open: () => Promise<ServiceStore>): void {
  describe(`the notes service on ${storeName}`, () => {
    let store: ServiceStore;
    let service: ServiceProcess;
    let other: ServiceProcess;

    const start = (nodeId: string): Promise<ServiceProcess> => {
      const variables = { NODE_ID: nodeId, MAX_ATTACHMENT_BYTES: String(maxAttachmentBytes) };
      return ServiceProcess.start({ ...store.variables, ...variables });
    };

    beforeAll(async () => {
      store = await open();
      service = await start('0');
      other = await start('1');
    });

    afterAll(async () => {
      const codes = [await service?.stop(), await other?.stop()];
      await store?.close();
      expect(codes).toEqual([0, 0]);
    });

    it('creates, reads, changes and deletes a note', async () => {
      const created = await service.send('POST', '/notes', { topic: 'garden', title: 'Beans', text: 'Water them' });
      const note = await json<Note>(created);
      expect([created.status, created.headers.get('location')]).toEqual([201, `/notes/${note.id}`]);
      expect(note).toMatchObject({ topic: 'garden', title: 'Beans', text: 'Water them' });

      const changed = await service.send('PATCH', `/notes/${note.id}`, { title: 'Runner beans' });
      expect(await json<Note>(changed)).toMatchObject({ title: 'Runner beans', text: 'Water them' });
      const read = await json<Note>(await service.fetch(`/notes/${note.id}`));
      expect(read).toMatchObject({
        topic: 'garden',
        title: 'Runner beans',
        createdAt: note.createdAt,
        attachments: [],
      });
      expect(read.updatedAt > note.updatedAt).toBe(true);

      expect((await service.fetch(`/notes/${note.id}`, { method: 'DELETE' })).status).toBe(204);
      expect((await service.fetch(`/notes/${note.id}`)).status).toBe(404);
    });

    it('lists notes page by page, newest first, of one topic or of all', async () => {
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) ids.push((await create(service, { topic: 'paging', title: `Note ${n}` })).id);
      await create(service, { topic: 'another' });
      const shown: string[] = [];
      const sizes: number[] = [];
      for (let url: string | null = '/notes?topic=paging&limit=2'; url !== null; ) {
        const page: Page = await json<Page>(await service.fetch(url));
        shown.push(...page.notes.map(({ id }) => id));
        sizes.push(page.notes.length);
        url = page.next;
      }
      expect(sizes).toEqual([2, 2, 1]);
      expect(shown).toEqual(ids.toReversed());
      const all = await json<Page>(await service.fetch('/notes?limit=100'));
      expect(all.notes.length).toBeGreaterThanOrEqual(6);
      expect(all.notes[0]?.topic).toBe('another');
    });

    it('names the mistake in a request', async () => {
      const note = await create(service, {});
      const sent = (method: string, path: string, body: object): Promise<[number, string]> =>
        service.send(method, path, body).then(codeOf);
      expect(await sent('POST', '/notes', { id: note.id, topic: 'a', title: 'b' })).toEqual([409, 'DUPLICATE_KEY']);
      expect(await sent('PATCH', `/notes/${randomUUID()}`, { title: 'b' })).toEqual([404, 'ROW_NOT_FOUND']);
      expect(await sent('POST', '/notes', { topic: 'a' })).toEqual([400, 'FST_ERR_VALIDATION']);
      expect(await sent('POST', '/notes', { topic: 'a', title: 'b', colour: 'red' })).toEqual([
        400,
        'FST_ERR_VALIDATION',
      ]);
      // The schema of the request lets it pass; the database knows that half a character cannot be stored.
      expect(await sent('PATCH', `/notes/${note.id}`, { title: '\ud800' })).toEqual([400, 'ENCODE']);
      expect((await service.fetch('/notes?limit=1000')).status).toBe(400);
      expect((await service.fetch('/notes/7')).status).toBe(400);
      expect((await service.fetch(`/attachments/${randomUUID()}`)).status).toBe(404);
    });

    it('keeps the changes of two instances to different fields of one note', async () => {
      const { id } = await create(service, { title: 'Old', text: 'Old' });
      const noCache = { 'cache-control': 'no-cache' };
      expect((await other.fetch(`/notes/${id}`, { headers: noCache })).status).toBe(200);
      const replies = await Promise.all([
        service.send('PATCH', `/notes/${id}`, { title: 'New title' }),
        other.send('PATCH', `/notes/${id}`, { text: 'New text' }),
      ]);
      expect(replies.map(({ status }) => status)).toEqual([200, 200]);
      const seen = await json<Note>(await service.fetch(`/notes/${id}`, { headers: noCache }));
      expect(seen).toMatchObject({ title: 'New title', text: 'New text' });
    });

    it('shows writes of another instance: at once if asked to, and after the interval anyway', async () => {
      const first = await create(service, {});
      const fresh = await other.fetch(`/notes/${first.id}`, { headers: { 'cache-control': 'no-cache' } });
      expect(fresh.status).toBe(200);

      const second = await create(other, {});
      const deadline = Date.now() + shownWithinMs;
      let status = 404;
      while (status === 404 && Date.now() < deadline) {
        await sleep(200);
        ({ status } = await service.fetch(`/notes/${second.id}`));
      }
      expect(status).toBe(200);
    });

    it('stores an attachment, and gives its bytes back', async () => {
      const { id } = await create(service, {});
      // More than one part of an upload.
      const bytes = randomBytes(20 * mebibyte + 17);
      const attachmentId = await attach(service, id, bytes, 'Bücher & Äpfel.png');
      const listed = await json<{ attachments: object[] }>(await service.fetch(`/notes/${id}`));
      expect(listed.attachments).toEqual([{ id: attachmentId, name: 'Bücher & Äpfel.png', contentType: 'image/png' }]);

      const answer = await service.fetch(`/attachments/${attachmentId}`, { redirect: 'manual' });
      const download = store.makesLinks ? await followLink(service, answer) : checkPassedThrough(answer, bytes);
      expect([download.status, download.headers.get('content-type')]).toEqual([200, 'image/png']);
      const received = Buffer.from(await download.arrayBuffer());
      expect(received.length).toBe(bytes.length);
      expect(digest(received)).toBe(digest(bytes));
    });

    it('stores an attachment without a byte', async () => {
      const { id } = await create(service, {});
      const attachmentId = await attach(service, id, new Uint8Array(0));
      const download = await service.fetch(`/attachments/${attachmentId}`);
      expect([download.status, (await download.arrayBuffer()).byteLength]).toEqual([200, 0]);
    });

    it('stores nothing of an attachment to a note that does not exist, or that was cut off', async () => {
      const wrong = await service.fetch(`/notes/${randomUUID()}/attachments?name=a`, { method: 'POST', body: 'bytes' });
      expect(wrong.status).toBe(404);
      const { id } = await create(service, {});
      await cutOff(service, `/notes/${id}/attachments?name=a`);
      // The service has noticed by the time that it has taken and committed another one.
      const attachmentId = await attach(service, id, Buffer.from('whole'));
      const { attachments } = await json<{ attachments: { id: string }[] }>(await service.fetch(`/notes/${id}`));
      expect(attachments.map((attachment) => attachment.id)).toEqual([attachmentId]);
    });

    it('refuses an attachment that is too large, and stores nothing of it', async () => {
      const { id } = await create(service, {});
      const body = Buffer.alloc(maxAttachmentBytes + 1);
      const refused = await service.fetch(`/notes/${id}/attachments?name=a`, { method: 'POST', body });
      expect(await codeOf(refused)).toEqual([413, 'TOO_LARGE']);
      expect(await json(await service.fetch(`/notes/${id}`))).toMatchObject({ attachments: [] });
    });

    it('deletes a note together with its attachments', async () => {
      const { id } = await create(service, {});
      const attachmentId = await attach(service, id, Buffer.from('bytes'));
      expect((await service.fetch(`/notes/${id}`, { method: 'DELETE' })).status).toBe(204);
      expect((await service.fetch(`/attachments/${attachmentId}`)).status).toBe(404);
    });

    it('reports its health', async () => {
      await create(other, {});
      const health = await other.fetch('/healthz');
      expect([health.status, await json(health)]).toEqual([200, { status: 'ok', reasons: [] }]);
      const metrics = await other.fetch('/metrics');
      expect(metrics.headers.get('content-type')).toContain('text/plain');
      const text = await metrics.text();
      expect(text).toMatch(/^storedb_health 0$/m);
      expect(text).toMatch(/^storedb_position [1-9]\d*$/m);
      expect(text).toMatch(/^storedb_requests_total\{kind="put"\} [1-9]\d*$/m);
    });

    it('keeps everything over a restart', async () => {
      const note = await create(service, { title: 'Kept' });
      const attachmentId = await attach(service, note.id, Buffer.from('kept as well'));
      expect(await service.stop()).toBe(0);
      service = await start('0');
      expect(await json<Note>(await service.fetch(`/notes/${note.id}`))).toMatchObject({ title: 'Kept' });
      const download = await service.fetch(`/attachments/${attachmentId}`);
      expect(await download.text()).toBe('kept as well');
    });
  });
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
