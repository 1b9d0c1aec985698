/** A server whose answers do not end: reading them ends all the same, in bounded memory. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ObjectStoreDriver } from '../../../src/storage/index.ts';

beforeEach(() => {
  process.env['AWS_ACCESS_KEY_ID'] = 'a';
  process.env['AWS_SECRET_ACCESS_KEY'] = 's';
});

const piece = Buffer.alloc(1024 * 1024, 0x20);

/** Writes as long as somebody reads. */
function writeOn(response: ServerResponse, sent: { bytes: number }): void {
  const more = (): void => {
    while (!response.destroyed) {
      sent.bytes += piece.length;
      if (!response.write(piece)) return;
    }
  };
  response.on('drain', more);
  more();
}

async function endless(headers: Record<string, string>, statusCode = 200) {
  const sent = { bytes: 0 };
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(statusCode, { etag: '"e"', 'last-modified': new Date(0).toUTCString(), ...headers });
    writeOn(response, sent);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const driver = new ObjectStoreDriver({
    bucket: 'bucket',
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
  onTestFinished(async () => {
    await driver.close();
    server.closeAllConnections();
    server.close();
  });
  return { driver, sent };
}

const mebibyte = 1024 * 1024;
/** What may be on the way, in the buffers of both sides. */
const slackBytes = 32 * mebibyte;

describe('an answer that does not end', () => {
  it('to a read of a whole object is given up at the largest size of one', { timeout: 60_000 }, async () => {
    const { driver, sent } = await endless({});
    const before = process.memoryUsage().rss;
    const get = driver.get('block0');
    await expect(get).rejects.toMatchObject({ code: 'STORAGE', key: 'block0', outcome: 'none' });
    await expect(get).rejects.toThrow('longer than the 536870912 bytes');
    expect(sent.bytes).toBeLessThan(512 * mebibyte + slackBytes);
    expect(process.memoryUsage().rss - before).toBeLessThan(1024 * mebibyte);
  });

  it('to a read of a range is given up where the range ends', async () => {
    const { driver, sent } = await endless({ 'content-range': 'bytes 0-9/1000000' }, 206);
    await expect(driver.get('k', { range: { start: 0, end: 10 } })).rejects.toThrow('longer than the 10 bytes');
    expect(sent.bytes).toBeLessThan(slackBytes);
  });

  it('and that says so beforehand is not read', async () => {
    const { driver, sent } = await endless({ 'content-length': String(2 ** 40) });
    await expect(driver.get('k')).rejects.toThrow('StoreDb does not write such');
    expect(sent.bytes).toBeLessThan(slackBytes);
  });

  it.each([404, 403])('with an error of status %i to a read is given up', async (status) => {
    const { driver, sent } = await endless({ 'content-type': 'application/xml' }, status);
    await expect(driver.get('k')).rejects.toMatchObject({ code: 'STORAGE' });
    expect(sent.bytes).toBeLessThan(20 * slackBytes);
  });

  it.each([200, 404, 403])('to a listing, or as an error with status %i, is given up', async (status) => {
    const { driver, sent } = await endless({ 'content-type': 'application/xml' }, status);
    await expect(driver.list('')).rejects.toMatchObject({ code: 'STORAGE' });
    await expect(driver.put('k', piece.subarray(0, 10), { if: 'any' })).rejects.toMatchObject({ code: 'STORAGE' });
    expect(sent.bytes).toBeLessThan(20 * slackBytes);
  });
});
