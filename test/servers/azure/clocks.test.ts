/** A machine whose clock is hours off signs its requests by the store's clock, once the store has stated it. */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { containerDriver, containerUnderTest } from './container.ts';

const hourMs = 3_600_000;
/** Azure refuses requests whose date is further off than this. Azurite does not look. */
const toleranceMs = 15 * 60_000;
/** The true time, whatever the clock of the process says. */
const startMs = Date.now() - performance.now();

let front: Server;
let endpoint = '';
/** The status of each response. */
const statuses: number[] = [];

beforeAll(async () => {
  const { endpoint: inner } = containerUnderTest();
  front = createServer((incoming, response) => {
    const nowMs = startMs + performance.now();
    const sentMs = Date.parse(String(incoming.headers['x-ms-date']));
    const date = new Date(nowMs).toUTCString();
    if (!(Math.abs(sentMs - nowMs) < toleranceMs)) {
      incoming.resume();
      statuses.push(403);
      response.writeHead(403, { date, 'content-type': 'application/xml', 'x-ms-error-code': 'AuthenticationFailed' });
      response.end('<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code><Message>No.</Message></Error>');
      return;
    }
    const { host, port } = new URL(inner);
    const headers = { ...incoming.headers, host };
    const onward = request({ port, method: incoming.method, path: incoming.url, headers }, (answer) => {
      statuses.push(answer.statusCode ?? 0);
      response.writeHead(answer.statusCode ?? 0, { ...answer.headers, date });
      answer.pipe(response);
    });
    incoming.pipe(onward);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  endpoint = `http://127.0.0.1:${(front.address() as AddressInfo).port}${new URL(inner).pathname}`;
});
afterAll(() => {
  front.closeAllConnections();
  front.close();
});
afterEach(() => {
  vi.useRealTimers();
  statuses.length = 0;
});

it.each([
  ['ahead', 3 * hourMs],
  ['behind', -3 * hourMs],
])('three hours %s: the first request is sent twice, and no other', async (_, offMs) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs });
  const driver = containerDriver({ endpoint });
  const key = `${randomUUID()}/ä b`;
  expect(await driver.put(key, Buffer.from('x'), { if: 'absent', contentType: 'image/png' })).toMatchObject({
    status: 'written',
    requests: 2,
  });
  expect(statuses).toEqual([403, 201]);
  expect(await driver.put(key, Buffer.from('y'), { if: 'absent' })).toMatchObject({ status: 'lost' });
  expect(await driver.get(key)).toMatchObject({ status: 'found', sizeBytes: 1 });
  expect(await driver.copy(key, `${key}-copy`)).toMatchObject({ status: 'copied' });
  expect((await driver.list(key)).entries).toHaveLength(2);
  expect((await driver.delete([key, `${key}-copy`])).failed).toEqual([]);
  expect(statuses.filter((status) => status === 403)).toHaveLength(1);
  await driver.close();
});

it('a database works on a machine whose clock is three hours off', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3 * hourMs });
  const driver = containerDriver({ endpoint });
  const db = StoreDb({ dbPrefix: randomUUID(), nodeId: 0, driver, logLevel: 'silent' });
  await db.start();
  await db.stop();
  expect(statuses.filter((status) => status === 403).length).toBeLessThan(5);
  await driver.close();
});
