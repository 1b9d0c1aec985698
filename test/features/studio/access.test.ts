/** Attacks on Studio's handler: each is what somebody without access would try. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import { InvalidOptionError } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { studio } from '../../../src/studio.ts';
import { TokenAccess } from '../../../src/studio/access.ts';
import { openStudio } from '../../../src/studio/open-studio.ts';
import type { StudioHandler } from '../../../src/studio.ts';
import { origin, Page, Shown } from './shown.ts';

let shown: Shown;
let db: Database;
beforeEach(async () => {
  shown = new Shown();
  db = await shown.withCities(3);
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

const rowAsked = { table: 'cities', key: [1] };
const files = new Map([
  ['', { type: 'text/html; charset=utf-8', body: '<h1>Studio</h1>' }],
  ['script.js', { type: 'text/javascript', body: `// ${'long '.repeat(1000)}` }],
]);

describe('a Studio that an application mounts', () => {
  it('does not start without a function that decides who may see it', () => {
    for (const options of [undefined, {}, { authorize: true }, { authorize: 'admin' }, { authorise: () => true }]) {
      expect(() => studio(db, options as never), JSON.stringify(options)).toThrow(InvalidOptionError);
    }
    expect(() => studio({} as never, { authorize: () => true })).toThrow(InvalidOptionError);
  });

  it('answers nothing unless the function says true', async () => {
    for (const answer of [false, undefined, null, 1, 'yes', {}, Promise.resolve(false)]) {
      const page = shown.page(db, { authorize: () => answer as boolean });
      const { status, headers } = await page.fetch('/');
      expect(status, JSON.stringify(answer)).toBe(403);
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(await page.failure('row', rowAsked)).toMatchObject({ status: 403, code: 'FORBIDDEN' });
    }
    for (const authorize of [
      () => Promise.reject(new Error('secret of the directory')),
      () => {
        throw new Error('secret of the directory');
      },
    ]) {
      const failure = await shown.page(db, { authorize }).failure('row', rowAsked);
      expect(failure).toMatchObject({ status: 403, code: 'FORBIDDEN' });
      expect(failure.message).not.toContain('secret');
    }
  });

  it('asks the function about every request, with its headers and its body', async () => {
    const seen: string[] = [];
    const page = shown.page(db, {
      authorize: async (request) => {
        seen.push(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`);
        return request.headers.get('x-user') === 'ada';
      },
    });
    expect((await page.post('row', rowAsked, { headers: { 'x-user': 'ada' } })).status).toBe(200);
    expect((await page.post('row', rowAsked)).status).toBe(403);
    expect((await page.fetch('/', { headers: { 'x-user': 'ada' } })).status).toBe(200);
    expect(seen).toEqual([
      `POST /api/row ${JSON.stringify(rowAsked)}`,
      `POST /api/row ${JSON.stringify(rowAsked)}`,
      'GET / ',
    ]);
  });

  it('refuses calls from pages of other sites', async () => {
    const page = shown.page(db);
    const attacks: readonly Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of attacks) {
      expect((await page.post('row', rowAsked, { headers })).status, JSON.stringify(headers)).toBe(403);
    }
    // Browsers that say nothing of the site do say the origin.
    for (const other of ['https://evil.example', 'null', 'https://admin.example.com.evil.example', 'nonsense']) {
      const request = new Request(`${origin}/api/row`, {
        method: 'POST',
        headers: { origin: other, 'content-type': 'application/json' },
        body: JSON.stringify(rowAsked),
      });
      expect((await page.studio.fetch(request)).status, other).toBe(403);
    }
  });

  it('takes JSON only, which pages of other sites cannot send without being asked', async () => {
    const page = shown.page(db);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'text/json']) {
      const answer = await page.post('row', rowAsked, { headers: { 'content-type': type } });
      expect(answer.status, type).toBe(415);
    }
    expect((await page.fetch('/api/row', { method: 'POST', body: new Uint8Array(3) })).status).toBe(415);
    expect((await page.fetch('/api/row')).status).toBe(405);
    const broken = await page.fetch('/api/row', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{',
    });
    expect(broken.status).toBe(400);
  });

  it('refuses large requests before it has read them', async () => {
    const page = shown.page(db);
    expect((await page.post('row', { table: 'x'.repeat(1024 * 1024) })).status).toBe(413);
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent++;
        controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: endless, duplex: 'half' };
    expect((await page.fetch('/api/row', init as RequestInit)).status).toBe(413);
    expect(sent).toBeLessThan(20);
  });

  it('has no tokens', async () => {
    expect(
      (
        await shown
          .page(db)
          .fetch('/session', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"token":"x"}' })
      ).status,
    ).toBe(404);
  });

  it('answers below its path and nowhere else', async () => {
    const page = shown.page(db, { basePath: '/admin/studio' });
    expect((await page.fetch('/admin/studio/')).status).toBe(200);
    const moved = await page.fetch('/admin/studio');
    expect([moved.status, moved.headers.get('location')]).toEqual([308, '/admin/studio/']);
    for (const path of ['/', '/api/row', '/admin/studiox', '/admin']) expect((await page.fetch(path)).status).toBe(404);
  });

  it('says to browsers what they may do, in every answer', async () => {
    const page = shown.page(db);
    const answers = [
      await page.fetch('/'),
      await page.fetch('/nothing'),
      await page.post('row', rowAsked),
      await page.post('nothing', {}),
      await page.fetch('/', { method: 'DELETE' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 404, 405]);
    for (const { headers } of answers) {
      const policy = headers.get('content-security-policy') ?? '';
      for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]) {
        expect(policy.split('; ')).toContain(part);
      }
      expect(policy).not.toContain('unsafe');
      expect(policy).not.toContain('http');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    }
    expect(answers[2]?.headers.get('cache-control')).toBe('no-store');
  });
});

describe('the files of the page', () => {
  let page: Page;
  beforeEach(() => {
    const access = { check: () => undefined, openSession: () => '' };
    const options = { write: false, basePath: '', title: 'T', prices: undefined };
    page = new Page(openStudio(db, realEnvironment, access, files, options));
  });

  it('come by their names, compressed for browsers that take it', async () => {
    for (const path of ['/', '/index.html']) expect(await (await page.fetch(path)).text()).toBe('<h1>Studio</h1>');
    const packed = await page.fetch('/script.js', { headers: { 'accept-encoding': 'gzip, br' } });
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    const bytes = await packed.arrayBuffer();
    expect(bytes.byteLength).toBeLessThan(500);
    const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
    expect(text).toBe(files.get('script.js')?.body);
    const plain = await page.fetch('/script.js');
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(plain.headers.get('content-type')).toBe('text/javascript');
    expect(await (await page.fetch('/script.js', { method: 'HEAD' })).text()).toBe('');
  });

  it('are those of the page and no others', async () => {
    for (const path of [
      '/../package.json',
      '/..%2fpackage.json',
      '/%2e%2e/package.json',
      '//etc/passwd',
      '/script.js/',
      '/script.js%00.html',
      '/constructor',
      '/__proto__',
      '/api',
    ]) {
      expect((await page.fetch(path)).status, path).toBe(404);
    }
  });
});

describe('a Studio with a token, on a port of the loopback interface', () => {
  const token = 'a-random-token';
  const port = 4321;
  let served: StudioHandler;

  beforeEach(() => {
    const access = new TokenAccess(realEnvironment, token, port);
    served = openStudio(db, realEnvironment, access, files, {
      write: false,
      basePath: '',
      title: 'T',
      prices: undefined,
    });
  });

  function send(
    path: string,
    {
      host = `127.0.0.1:${port}`,
      body,
      headers = {},
    }: { host?: string; body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const given = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', ...headers };
    return served.fetch(new Request(`http://${host}${path}`, { headers: given, ...post }));
  }

  async function cookie(host?: string): Promise<string> {
    const answer = await send('/session', { body: { token }, ...(host !== undefined && { host }) });
    expect(answer.status).toBe(200);
    return (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  }

  it('gives a session for the token, which no script can read and no other site can send', async () => {
    const answer = await send('/session', { body: { token } });
    const set = answer.headers.get('set-cookie') ?? '';
    expect(set).toMatch(/^store-db-studio-4321=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict$/);
    const headers = { cookie: `other=1; ${set.split(';')[0]}` };
    expect((await send('/api/row', { body: rowAsked, headers })).status).toBe(200);
    // The page is loaded again, or opened in another window.
    const again = await cookie();
    expect(set).not.toContain(again.slice(-64));
    for (const name of ['localhost', '[::1]']) {
      const host = `${name}:${port}`;
      expect((await send('/api/row', { body: rowAsked, host, headers: { cookie: await cookie(host) } })).status).toBe(
        200,
      );
    }
  });

  it('refuses everybody without a session, and wrong tokens', async () => {
    for (const wrong of ['', 'a-random-toke', 'a-random-tokem', 'a-random-token ', null, 7, {}, undefined]) {
      const answer = await send('/session', { body: { token: wrong } });
      expect([answer.status, answer.headers.get('set-cookie')], JSON.stringify(wrong)).toEqual([401, null]);
    }
    for (const sent of [
      '',
      'store-db-studio-4321=',
      `store-db-studio-4321=${'0'.repeat(64)}`,
      `store-db-studio-4321=${token}`,
      `store-db-studio-1=${(await cookie()).slice(-64)}`,
    ]) {
      const answer = await send('/api/row', { body: rowAsked, headers: { cookie: sent } });
      expect(answer.status, sent).toBe(401);
    }
    // The page itself holds no data.
    expect((await send('/')).status).toBe(200);
  });

  it('answers under no other name: a name may have been bound to the loopback interface', async () => {
    const session = await cookie();
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1',
      '127.0.0.1:80',
      `127.0.0.2:${port}`,
      `localhost.evil.example:${port}`,
      '0.0.0.0:4321',
    ]) {
      const headers = { cookie: session, origin: `http://${host}` };
      for (const path of ['/', '/session', '/api/row']) {
        const body = path === '/' ? {} : { body: path === '/session' ? { token } : rowAsked };
        expect((await send(path, { host, headers, ...body })).status, `${host}${path}`).toBe(403);
      }
    }
  });

  it('refuses calls of other pages, also if they claim to be of this site', async () => {
    const session = await cookie();
    const attacks: readonly Record<string, string>[] = [
      { origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' },
      { origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' },
      { origin: `http://localhost:${port}`, 'sec-fetch-site': 'same-origin' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of attacks) {
      const given = { headers: { cookie: session, ...headers } };
      expect((await send('/api/row', { body: rowAsked, ...given })).status, JSON.stringify(headers)).toBe(403);
      expect((await send('/session', { body: { token }, ...given })).status, JSON.stringify(headers)).toBe(403);
    }
  });

  it('keeps a bounded number of sessions', async () => {
    const first = await cookie();
    for (let i = 0; i < 100; i++) await cookie();
    expect((await send('/api/row', { body: rowAsked, headers: { cookie: first } })).status).toBe(401);
  });
});
