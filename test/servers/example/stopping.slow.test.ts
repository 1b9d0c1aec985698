/** How the example service ends, what it reports meanwhile, and which node it is. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../../../examples/notes-service/settings.ts';
import { ServiceProcess } from './service-process.ts';

const drainMs = 700;
/** By default an idle connection is kept for 72 seconds; a busy machine may take its time. */
const maxStopMs = 10_000;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'notes-stopping-'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Half of a request, on a connection that its client keeps. */
async function beginRequest({ url }: ServiceProcess, body: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const head = [
    'POST /notes HTTP/1.1',
    `Host: ${hostname}`,
    'Connection: keep-alive',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 10)}`);
  return socket;
}

describe('a service that is asked to stop', () => {
  it('says that it is not ready, answers all the same, ends requests under way, and keeps nobody waiting', async () => {
    const service = await ServiceProcess.start({ NOTES_FOLDER: folder, DRAIN_MS: String(drainMs) });
    const status = async (route: string): Promise<number> => (await service.fetch(route)).status;
    expect([await status('/live'), await status('/ready')]).toEqual([200, 200]);
    const body = JSON.stringify({ topic: 'a', title: 'under way' });
    const socket = await beginRequest(service, body);
    const startedMs = performance.now();
    const stopped = service.stop();
    await vi.waitFor(async () => expect(await status('/ready')).toBe(503), drainMs);
    expect([
      await status('/live'),
      (await service.send('POST', '/notes', { topic: 'a', title: 'late' })).status,
    ]).toEqual([200, 201]);
    // Now it listens no more.
    await vi.waitFor(() => expect(service.fetch('/live')).rejects.toThrow('fetch failed'), maxStopMs);
    await sleep(200);
    socket.write(body.slice(10));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toContain('201 Created');
    expect(await stopped).toBe(0);
    expect(performance.now() - startedMs).toBeLessThan(maxStopMs);

    const again = await ServiceProcess.start({ NOTES_FOLDER: folder });
    const { notes } = (await (await again.fetch('/notes')).json()) as { notes: { title: string }[] };
    expect(new Set(notes.map(({ title }) => title))).toEqual(new Set(['under way', 'late']));
    expect(await again.stop()).toBe(0);
  });
});

describe('the node of a service', () => {
  it.each([
    [{}, 'auto'],
    [{ NODE_ID: '' }, 'auto'],
    [{ NODE_ID: 'auto', NODE_APP_INSTANCE: '2' }, 'auto'],
    [{ NODE_APP_INSTANCE: '2' }, 2],
    [{ NODE_ID: '7', NODE_APP_INSTANCE: '2' }, 7],
    [{ NODE_ID: 'notes-service-12' }, 12],
  ] as const)('is of %o %s', (variables, nodeId) => {
    expect(readSettings({ ...variables, NOTES_FOLDER: folder }).nodeId).toBe(nodeId);
  });

  it.each(['256', '-1', 'first', 'notes-999'])("is not '%s'", (text) => {
    expect(() => readSettings({ NODE_ID: text, NOTES_FOLDER: folder })).toThrow(/NODE_ID is '.+'; it must be/);
  });
});
