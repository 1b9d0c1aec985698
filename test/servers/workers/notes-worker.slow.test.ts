/** The example in examples/notes-worker, in workerd, with the settings of its wrangler.jsonc. */
import { readFile } from 'node:fs/promises';
import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { R2BucketBinding } from '../../../src/workers.ts';
import { webBundle } from '../../features/platform/web-bundle.ts';
import { send } from './send.ts';

const folder = 'examples/notes-worker';
let miniflare: Miniflare;

interface Settings {
  readonly main: string;
  readonly compatibility_date: string;
  readonly r2_buckets: readonly { readonly binding: string; readonly bucket_name: string }[];
}

/** The part of a Worker's handle that the types of miniflare lack without those of Cloudflare. */
interface ScheduledWorker {
  scheduled(event: { readonly cron: string }): Promise<{ readonly outcome: string }>;
}

interface Note {
  readonly id: string;
  readonly topic: string;
  readonly title: string;
  readonly text: string | null;
  readonly revision: number;
}

interface Page {
  readonly notes: readonly Note[];
  readonly next: string | null;
}

beforeAll(async () => {
  const text = await readFile(new URL(`../../../${folder}/wrangler.jsonc`, import.meta.url), 'utf8');
  const settings = JSON.parse(text) as Settings;
  miniflare = new Miniflare({
    modules: true,
    script: await webBundle(`${folder}/${settings.main}`, { format: 'esm' }),
    r2Buckets: Object.fromEntries(settings.r2_buckets.map((bucket) => [bucket.binding, bucket.bucket_name])),
    compatibilityDate: settings.compatibility_date,
  });
  await miniflare.ready;
}, 120_000);

afterAll(async () => miniflare.dispose());

async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; answer: unknown }> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await send(miniflare, method, path, text);
  return { status: answer.status, answer: answer.text === '' ? undefined : JSON.parse(answer.text) };
}

async function get<T>(path: string): Promise<T> {
  const { status, answer } = await ask('GET', path);
  expect(status).toBe(200);
  return answer as T;
}

describe('the example of a Worker', () => {
  it('creates, reads, changes and deletes a note', { timeout: 120_000 }, async () => {
    const created = await ask('POST', '/notes', { topic: 'garden', title: 'Beans' });
    expect(created).toMatchObject({
      status: 201,
      answer: { topic: 'garden', title: 'Beans', text: null, revision: 1 },
    });
    const { id } = created.answer as Note;
    expect(await get<Note>(`/notes/${id}`)).toEqual(created.answer);
    const changed = await ask('PATCH', `/notes/${id}`, { title: 'Broad beans', revision: 1 });
    expect(changed).toMatchObject({ status: 200, answer: { topic: 'garden', title: 'Broad beans', revision: 2 } });
    expect(await ask('DELETE', `/notes/${id}`)).toEqual({ status: 204, answer: undefined });
    expect(await ask('GET', `/notes/${id}`)).toMatchObject({ status: 404, answer: { code: 'NOT_FOUND' } });
  });

  it('answers mistakes with 400, 404, 405, 409 and 413', { timeout: 120_000 }, async () => {
    const id = '019a0000-0000-7000-8000-000000000001';
    const note = { id, topic: 'garden', title: 'Peas' };
    expect(await ask('POST', '/notes', note)).toMatchObject({ status: 201, answer: note });
    const refused = [
      ['POST', '/notes', 'no JSON', 400, /not JSON/],
      ['POST', '/notes', '[]', 400, /JSON object/],
      ['POST', '/notes', { topic: 'garden' }, 400, /'title' is missing/],
      ['POST', '/notes', { ...note, colour: 'green' }, 400, /no field 'colour'/],
      ['POST', '/notes', { ...note, title: 7 }, 400, /'title'/],
      ['POST', '/notes', { ...note, title: null }, 400, /'title'/],
      ['POST', '/notes', { ...note, id: 'peas' }, 400, /'id'/],
      ['POST', '/notes', { ...note, text: 'x'.repeat(100_000) }, 413, /at most/],
      ['POST', '/notes', note, 409, /./],
      ['GET', '/notes?limit=1000', undefined, 400, /from 1 to 100/],
      ['GET', '/notes?after=nonsense', undefined, 400, /./],
      ['GET', '/notes/peas', undefined, 404, /no note peas/],
      ['GET', '/', undefined, 404, /nothing at/],
      ['PATCH', `/notes/${id}`, { revision: 5, title: 'Sweet peas' }, 409, /revision 1 now/],
      ['PATCH', `/notes/${id}`, { title: 8 }, 400, /'title'/],
      ['PATCH', `/notes/${id.replace('1', '2')}`, { title: 'Beans' }, 404, /no note/],
      ['DELETE', `/notes/${id.replace('1', '2')}`, undefined, 404, /no note/],
      ['PUT', `/notes/${id}`, note, 405, /PUT is not for/],
    ] as const;
    for (const [method, path, body, status, message] of refused) {
      const reply = await ask(method, path, body);
      expect([method, path, reply.status]).toEqual([method, path, status]);
      const { code, message: told } = reply.answer as { readonly code: string; readonly message: string };
      expect(code).toMatch(/^[A-Z_]+$/);
      expect(told).toMatch(message);
    }
    expect(await get<Note>(`/notes/${id}`)).toMatchObject({ title: 'Peas', revision: 1 });
  });

  it('creates thirty notes in concurrent requests, and lists them by page', { timeout: 300_000 }, async () => {
    const titles = Array.from({ length: 30 }, (_, i) => `note ${i}`);
    const replies = await Promise.all(titles.map((title) => ask('POST', '/notes', { topic: 'many', title })));
    expect(replies.map(({ status }) => status)).toEqual(titles.map(() => 201));
    const listed: Note[] = [];
    let page = await get<Page>('/notes?topic=many&limit=12');
    for (listed.push(...page.notes); page.next !== null; listed.push(...page.notes)) {
      page = await get<Page>(`/notes?topic=many&limit=12&after=${page.next}`);
    }
    expect(listed.map(({ title }) => title).toSorted()).toEqual(titles.toSorted());
    const ids = listed.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted().toReversed());
  });

  it('lets one of several changes of a revision win', { timeout: 120_000 }, async () => {
    const { answer } = await ask('POST', '/notes', { topic: 'race', title: 'start' });
    const { id } = answer as Note;
    const change = (i: number) => ask('PATCH', `/notes/${id}`, { title: `change ${i}`, revision: 1 });
    const statuses = (await Promise.all([0, 1, 2, 3].map(change))).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 409, 409, 409]);
    expect(await get<Note>(`/notes/${id}`)).toMatchObject({ revision: 2 });
  });

  it('merges and collects garbage when it is scheduled', { timeout: 120_000 }, async () => {
    // Large enough for a block that the merges replace.
    const text = 'x'.repeat(50_000);
    for (let i = 0; i < 9; i++) {
      const { status } = await ask('POST', '/notes', { topic: 'large', title: `large ${i}`, text });
      expect(status).toBe(201);
    }
    const bucket = (await miniflare.getR2Bucket('NOTES')) as unknown as R2BucketBinding;
    const names = async (): Promise<string[]> =>
      (await bucket.list({ prefix: 'notes/' })).objects.map(({ key }) => key);
    const before = await names();
    const worker = (await miniflare.getWorker()) as unknown as ScheduledWorker;
    const { outcome } = await worker.scheduled({ cron: '0 3 * * *' });
    expect(outcome).toBe('ok');
    const after = await names();
    expect(before.filter((name) => !after.includes(name))).toEqual([expect.stringMatching(/^notes\/data\//)]);
    expect((await get<Page>('/notes?topic=large&limit=100')).notes).toHaveLength(9);
  });
});
