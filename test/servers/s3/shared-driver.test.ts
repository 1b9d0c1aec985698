/** One driver for several databases: one that stops closes the driver, and the others have requests under way. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { ObjectStoreDriver } from '../../../src/storage/index.ts';

beforeEach(() => {
  process.env['AWS_ACCESS_KEY_ID'] = 'a';
  process.env['AWS_SECRET_ACCESS_KEY'] = 's';
});

it('closes its connections once the requests under way are answered, and makes each request once', async () => {
  const waiting: ServerResponse[] = [];
  let requests = 0;
  const server = createServer((request, response) => {
    request.resume();
    requests++;
    waiting.push(response);
    server.emit('asked');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const driver = new ObjectStoreDriver({ bucket: 'bucket', endpoint: `http://127.0.0.1:${port}` });
  onTestFinished(async () => {
    await driver.close();
    server.closeAllConnections();
    server.close();
  });
  const connections = (): Promise<number> =>
    new Promise((resolve, reject) => {
      server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
    });

  const asked = once(server, 'asked');
  const put = driver.put('key', Buffer.from('bytes'), { if: 'absent' });
  await asked;
  await driver.close();
  const [response] = waiting as [ServerResponse];
  response.writeHead(200, { etag: '"e"' });
  response.end();
  expect(await put).toMatchObject({ status: 'written', etag: '"e"' });
  expect(requests).toBe(1);
  await vi.waitFor(async () => expect(await connections()).toBe(0));
});
