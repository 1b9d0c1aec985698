/** `store-db studio`: the page on the loopback interface, asked as a browser does and as an attacker would. */
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { run, TestFolder } from '../cli/shell.ts';
import type { Ran } from '../cli/shell.ts';
import { city, citySchema } from './shown.ts';

let folder: TestFolder;
const end = new Set<AbortController>();
const running: Promise<Ran>[] = [];

beforeEach(async () => {
  folder = await TestFolder.make();
  const db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver: new FileDriver(folder.file('db')), logLevel: 'silent' });
  db.registerSchema(citySchema);
  await db.start();
  await db.transaction((tx) => tx.insert('cities', city(1)));
  await db.stop();
});

afterEach(async () => {
  for (const controller of end) controller.abort();
  end.clear();
  await Promise.all(running.splice(0));
  await folder[Symbol.asyncDispose]();
});

interface Served {
  readonly url: URL;
  readonly token: string;
  readonly output: () => string;
  /** Ends the command as Ctrl-C does. */
  readonly stop: () => Promise<Ran>;
}

/** Starts the command, and waits for the address that it prints. */
async function serve(...words: readonly string[]): Promise<Served> {
  const controller = new AbortController();
  end.add(controller);
  let output = '';
  const found = new Promise<URL>((resolve) => {
    const onOutput = (text: string): void => {
      output = text;
      const url = /(http:\/\/\S+)\n/.exec(text)?.[1];
      if (url !== undefined) resolve(new URL(url));
    };
    const ran = run(['studio', folder.url(), ...words], { signal: controller.signal, onOutput });
    running.push(ran);
  });
  const ran = running.at(-1) as Promise<Ran>;
  const url = await Promise.race([
    found,
    ran.then((ended) => {
      throw new Error(`It ended: ${ended.messages}`);
    }),
  ]);
  const stop = (): Promise<Ran> => {
    controller.abort();
    return ran;
  };
  return { url, token: url.hash.slice('#token='.length), output: () => output, stop };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly text: string;
}

/** Sends a request with any headers: also those that `fetch` refuses to send. */
function ask(
  { url }: Pick<Served, 'url'>,
  path: string,
  headers: Record<string, string> = {},
  body?: unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = send(
      {
        host: '127.0.0.1',
        port: url.port,
        path,
        method: body === undefined ? 'GET' : 'POST',
        headers: { host: url.host, ...headers },
        agent: false,
      },
      (answer) => {
        let text = '';
        answer.on('data', (part: Buffer) => (text += part.toString()));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const json = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };

async function openSession(served: Served, token: string = served.token): Promise<Record<string, string>> {
  const { status, headers } = await ask(served, '/session', json, { token });
  expect(status).toBe(200);
  return { ...json, cookie: (headers['set-cookie']?.[0] ?? '').split(';')[0] ?? '' };
}

it('prints an address, shows the database as a replica, and ends with Ctrl-C', async () => {
  const served = await serve('--no-open');
  expect(served.url.hostname).toBe('127.0.0.1');
  expect(served.token).toMatch(/^[0-9a-f]{64}$/);
  const page = await ask(served, '/');
  expect(page.status).toBe(200);
  expect(page.headers['content-type']).toContain('text/html');
  expect(page.headers['content-security-policy']).toContain("default-src 'none'");
  expect(page.text).not.toContain(served.token);
  const headers = await openSession(served);
  const overview = JSON.parse((await ask(served, '/api/overview', headers, {})).text) as Record<string, unknown>;
  expect(overview).toMatchObject({ writable: false, tables: [{ name: 'cities' }] });
  expect(overview['title']).toMatch(/^file:.*#main$/);
  const row = await ask(served, '/api/row', headers, { table: 'cities', key: [1] });
  expect(JSON.parse(row.text)).toMatchObject({ row: { name: 'City 00001' } });
  const refused = await ask(served, '/api/save', headers, {
    table: 'cities',
    before: null,
    after: { id: 2, name: 'X' },
  });
  expect(refused.status).toBe(403);
  expect((await served.stop()).status).toBe(0);
  await expect(ask(served, '/')).rejects.toThrow(/ECONNREFUSED|socket hang up|ECONNRESET/);
});

it('changes rows with --write, which others see', async () => {
  const served = await serve('--no-open', '--write');
  expect(served.output()).toContain('can change it');
  const headers = await openSession(served);
  const saved = await ask(served, '/api/save', headers, { table: 'cities', before: null, after: { id: 2, name: 'X' } });
  expect(JSON.parse(saved.text)).toMatchObject({ status: 'saved', row: { id: 2, name: 'X' } });
  await served.stop();
  expect((await run(['export', folder.url(), 'cities', '--format=ndjson'])).output).toContain('"name":"X"');
});

it('is on the loopback interface and on no other', async () => {
  const { url } = await serve('--no-open');
  const others = Object.values(networkInterfaces()).flatMap((found) =>
    (found ?? []).filter(({ internal, family }) => !internal && family === 'IPv4'),
  );
  for (const { address } of others) {
    await expect(fetch(`http://${address}:${url.port}/`)).rejects.toThrow('fetch failed');
  }
  await expect(fetch(`http://127.0.0.2:${url.port}/`)).rejects.toThrow('fetch failed');
});

it('refuses other hosts, other origins, and everybody without a session', async () => {
  const served = await serve('--no-open');
  const headers = await openSession(served);
  const asked = { table: 'cities', key: [1] };
  expect((await ask(served, '/api/row', headers, asked)).status).toBe(200);
  expect((await ask(served, '/api/row', json, asked)).status).toBe(401);
  expect((await ask(served, '/session', json, { token: 'wrong' })).status).toBe(401);
  for (const host of [
    'evil.example',
    `evil.example:${served.url.port}`,
    '127.0.0.1:1',
    `x@127.0.0.1:${served.url.port}`,
  ]) {
    for (const path of ['/', '/api/events', '/api/row', '/session']) {
      const body = path === '/api/row' || path === '/session' ? asked : undefined;
      const { status } = await ask(served, path, { ...headers, host }, body);
      expect([400, 403], `${host}${path}`).toContain(status);
    }
  }
  for (const other of ['http://evil.example', `http://localhost:${served.url.port}`, 'null']) {
    expect((await ask(served, '/api/row', { ...headers, origin: other }, asked)).status).toBe(403);
  }
  for (const path of ['/api/events', '/api/export?format=csv', '/api/blob?table=cities']) {
    expect((await ask(served, path, { ...headers, 'sec-fetch-site': 'cross-site' })).status, path).toBe(403);
    expect((await ask(served, path, json)).status, path).toBe(401);
  }
  // A request line with a URL of its own.
  expect((await ask(served, 'http://evil.example/', headers)).status).toBe(400);
});

it('opens the browser with a token that works once', async () => {
  const browser = folder.file('browser');
  const seen = folder.file('seen');
  writeFileSync(browser, `#!/bin/sh\nprintf '%s' "$1" > '${seen}.part' && mv '${seen}.part' '${seen}'\n`);
  chmodSync(browser, 0o755);
  const before = process.env['BROWSER'];
  process.env['BROWSER'] = browser;
  try {
    const served = await serve();
    await expect.poll(() => existsSync(seen)).toBe(true);
    const opened = new URL(readFileSync(seen, 'utf8'));
    expect(opened.host).toBe(served.url.host);
    const token = opened.hash.slice('#token='.length);
    expect(token).not.toBe(served.token);
    await openSession(served, token);
    expect((await ask(served, '/session', json, { token })).status).toBe(401);
    // The printed address can be opened again.
    await openSession(served);
    await openSession(served);
  } finally {
    if (before === undefined) delete process.env['BROWSER'];
    else process.env['BROWSER'] = before;
  }
});

it('says why it cannot begin', async () => {
  const other = createServer();
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const taken = await run(['studio', folder.url(), '--no-open', `--port=${port}`]);
  expect([taken.status, taken.messages]).toEqual([2, expect.stringContaining('another process uses it') as unknown]);
  other.close();
  const wrong = await run(['studio', folder.url(), '--no-open', '--port=70000']);
  expect([wrong.status, wrong.messages]).toEqual([2, expect.stringContaining('--port is 70000') as unknown]);
  const nothing = await run(['studio', `file:${folder.file('nothing')}`, '--no-open']);
  expect(nothing.status).not.toBe(0);
  expect(nothing.messages).toContain('There is no database');
});

it('asks for the keys of an encrypted database', async () => {
  const key = Buffer.from(Uint8Array.from({ length: 32 }, (_, i) => i));
  const encryption = { keys: { k: key.toString('base64') }, current: 'k' };
  const db = StoreDb({
    dbPrefix: 'secret',
    nodeId: 1,
    driver: new FileDriver(folder.file('db')),
    logLevel: 'silent',
    encryption: { keys: { k: key }, current: 'k' },
  });
  db.registerSchema(citySchema);
  await db.start();
  await db.transaction((tx) => tx.insert('cities', city(1)));
  await db.stop();
  const without = await run(['studio', folder.url('secret'), '--no-open']);
  expect(without.status).not.toBe(0);
  expect(without.messages).toContain('encrypted');
  const keys = folder.file('keys.json');
  writeFileSync(keys, JSON.stringify(encryption));
  const controller = new AbortController();
  const ran = run(['studio', folder.url('secret'), '--no-open', '--json', '--keys', keys], {
    signal: controller.signal,
    onOutput: () => controller.abort(),
  });
  const { status, output } = await ran;
  expect(status).toBe(0);
  expect(JSON.parse(output)).toMatchObject({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#token=/) as unknown,
  });
});
