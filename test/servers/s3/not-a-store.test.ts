/** An endpoint that is no object store, a proxy or a web site for instance: its 404 says nothing about objects. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { ObjectStoreDriver } from '../../../src/storage/index.ts';
import { driverOf, startStore } from './bucket.ts';

beforeEach(() => {
  process.env['AWS_ACCESS_KEY_ID'] = 'a';
  process.env['AWS_SECRET_ACCESS_KEY'] = 's';
});

it.each([
  ['a page of its own', '<html><body>Not Found</body></html>', 'text/html'],
  ['nothing', '', 'text/plain'],
  ['JSON', '{"error":"no such route"}', 'application/json'],
])('404 with %s is an error', async (_, body, type) => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(404, { 'content-type': type });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const driver = new ObjectStoreDriver({ bucket: 'bucket', endpoint });
  onTestFinished(async () => {
    await driver.close();
    server.close();
  });
  for (const options of [
    {},
    { range: { start: 0, end: 0 } },
    { range: { start: 4, end: 8 } },
    { ifNoneMatch: '"a"' },
  ]) {
    await expect(driver.get('key', options)).rejects.toMatchObject({ code: 'STORAGE' });
  }
  await expect(driver.list('key')).rejects.toMatchObject({ code: 'STORAGE' });
  const replica = StoreDb({ dbPrefix: 'shop', nodeId: 0, role: 'replica', driver, logLevel: 'silent' });
  await expect(replica.start()).rejects.toMatchObject({ code: 'STORAGE' });
  await replica.stop();
});

it('an empty range shows whether an object exists, even an empty one', async () => {
  const server = await startStore();
  const driver = driverOf(server);
  onTestFinished(async () => {
    await driver.close();
    await server.close();
  });
  const range = { start: 0, end: 0 };
  const empty = await driver.put('empty', new Uint8Array(0), { if: 'absent' });
  const full = await driver.put('full', Buffer.from('full'), { if: 'absent' });
  expect(await driver.get('none', { range })).toEqual({ status: 'missing' });
  for (const [key, put, sizeBytes] of [
    ['empty', empty, 0],
    ['full', full, 4],
  ] as const) {
    const etag = put.status === 'written' ? put.etag : '';
    expect(await driver.get(key, { range })).toMatchObject({
      status: 'found',
      sizeBytes,
      etag,
      bytes: new Uint8Array(0),
    });
    expect(await driver.get(key, { range, ifNoneMatch: etag })).toEqual({ status: 'unchanged' });
    const behind = await driver.get(key, { range: { start: 9, end: 12 } });
    expect(behind).toMatchObject({ status: 'found', sizeBytes, bytes: new Uint8Array(0) });
  }
  server.clearLog();
  await driver.get('full', { range });
  expect(server.log).toHaveLength(1);
});
