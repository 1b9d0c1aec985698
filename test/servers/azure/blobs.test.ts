/** Streams in blocks, download URLs that the server checks, and copies on the server's side. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { PutResult } from '../../../src/storage/contract/driver.ts';
import { containerDriver } from './container.ts';

const mebibyte = 1024 * 1024;

/** Bytes that differ everywhere, so that a shifted or missing block is seen. */
function pattern(length: number, offset = 0): Buffer {
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(offset + i, 2_654_435_761);
  return Buffer.from(words.buffer, 0, length);
}

/** A stream of so many MiB. */
async function* pieces(count: number, beforeEach?: (index: number) => void): AsyncGenerator<Buffer> {
  for (let i = 0; i < count; i++) {
    beforeEach?.(i);
    yield pattern(mebibyte, i * 1_000_000);
  }
}

function etagOf(result: PutResult): string {
  return result.status === 'written' ? result.etag : '';
}

it('a stream of several blocks is stored whole, under its condition', async () => {
  const driver = containerDriver();
  const key = `${randomUUID()}/stream`;
  const first = await driver.put(key, pieces(21), { if: 'absent', contentType: 'image/png' });
  expect(first).toMatchObject({ status: 'written', requests: 4 });
  const found = await driver.get(key);
  if (found.status !== 'found') throw new Error('It is missing.');
  for (let i = 0; i < 21; i++) {
    const piece = found.bytes.subarray(i * mebibyte, (i + 1) * mebibyte);
    expect(pattern(mebibyte, i * 1_000_000).equals(piece), `piece ${i}`).toBe(true);
  }
  expect(etagOf(first)).toBe(found.etag);
  expect((await driver.put(key, pieces(9), { if: 'absent' })).status).toBe('lost');
  expect((await driver.put(key, pieces(9), { if: { etag: '"another"' } })).status).toBe('lost');
  expect((await driver.put(`${key}-missing`, pieces(9), { if: { etag: found.etag } })).status).toBe('lost');
  const replaced = await driver.put(key, pieces(9), { if: { etag: found.etag } });
  expect(replaced.status).toBe('written');
  expect(await driver.get(key, { range: { start: 0, end: 1 } })).toMatchObject({ sizeBytes: 9 * mebibyte });
  await driver.close();
});

it('a stream that breaks off, or is given up, writes nothing', async () => {
  const driver = containerDriver();
  const key = `${randomUUID()}/broken`;
  const cause = new Error('the source broke off');
  const broken = pieces(30, (index) => {
    if (index === 25) throw cause;
  });
  await expect(driver.put(key, broken, { if: 'absent' })).rejects.toMatchObject({ outcome: 'none', cause });
  const controller = new AbortController();
  const endless = pieces(500, (index) => {
    if (index === 20) controller.abort();
  });
  await expect(driver.put(key, endless, { if: 'absent', signal: controller.signal })).rejects.toMatchObject({
    code: 'STORAGE',
    outcome: 'unknown',
  });
  expect(await driver.get(key)).toEqual({ status: 'missing' });
  expect((await driver.list(key)).entries).toEqual([]);
  await driver.close();
});

it('a download URL has its headers, is good for one blob, and expires', async () => {
  const driver = containerDriver();
  const key = `${randomUUID()}/ä b`;
  const bytes = pattern(100_000);
  await driver.put(key, bytes, { if: 'absent', contentType: 'text/html' });
  await driver.put(`${key}-other`, bytes, { if: 'absent' });
  const headers = { contentType: 'image/png', contentDisposition: 'attachment; filename="a.png"' };
  const url = new URL(await driver.presign(key, { expiresInSeconds: 60, ...headers }));
  const response = await fetch(url);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('image/png');
  expect(response.headers.get('content-disposition')).toBe('attachment; filename="a.png"');
  expect(bytes.equals(Buffer.from(await response.arrayBuffer()))).toBe(true);
  const range = await fetch(url, { headers: { range: 'bytes=70000-70099' } });
  expect(bytes.subarray(70_000, 70_100).equals(Buffer.from(await range.arrayBuffer()))).toBe(true);
  const other = new URL(url);
  other.pathname += '-other';
  expect((await fetch(other)).status).toBe(403);
  const unsigned = new URL(url);
  unsigned.search = '';
  expect((await fetch(unsigned)).ok).toBe(false);
  expect((await fetch(url, { method: 'DELETE' })).status).toBe(403);
  const brief = await driver.presign(key, { expiresInSeconds: 1 });
  await sleep(2500);
  expect((await fetch(brief)).status).toBe(403);
  await driver.close();
});

it('a copy is made on the server, with its type, and refused where the source is missing', async () => {
  const driver = containerDriver();
  const key = `${randomUUID()}/source`;
  const bytes = pattern(100_000);
  await driver.put(key, bytes, { if: 'absent', contentType: 'text/plain' });
  expect(await driver.copy(key, `${key}-copy`)).toEqual({ status: 'copied' });
  const found = await driver.get(`${key}-copy`);
  expect(found.status === 'found' && bytes.equals(found.bytes)).toBe(true);
  const response = await fetch(await driver.presign(`${key}-copy`, { expiresInSeconds: 60 }));
  expect(response.headers.get('content-type')).toBe('text/plain');
  expect((await driver.copy(`${key}-missing`, `${key}-copy`)).status).toBe('refused');
  await driver.close();
});
