/** Blobs and exports, which browsers download. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { city, requestsOf, Shown } from './shown.ts';
import type { Page } from './shown.ts';

let shown: Shown;
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

const bytesOf = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

async function withBlobs(blobs: readonly (string | Uint8Array)[]): Promise<{ db: Database; page: Page }> {
  const db = await shown.withCities(0);
  const batch = db.batch();
  for (const [i, blob] of blobs.entries()) await batch.insert('cities', { ...city(i + 1), coat: db.Blob(blob) });
  await batch.flush();
  return { db, page: shown.page(db) };
}

function blobPath(id: number, more: Record<string, string> = {}): string {
  const query = new URLSearchParams({ table: 'cities', field: 'coat', key: JSON.stringify([id]), ...more });
  return `/api/blob?${query.toString()}`;
}

describe('a blob', () => {
  it('is shown if it is an image or text, by its bytes', async () => {
    const blobs: readonly (readonly [content: string | Uint8Array, type: string])[] = [
      [bytesOf('\x89PNG\r\n\x1a\n....'), 'image/png'],
      [bytesOf('\xff\xd8\xff\xe0....'), 'image/jpeg'],
      [bytesOf('GIF89a....'), 'image/gif'],
      [bytesOf('RIFF\x10\x00\x00\x00WEBPVP8 '), 'image/webp'],
      [bytesOf('\x00\x00\x00\x20ftypavif....'), 'image/avif'],
      ['plain text, with umlauts: äöü\r\n\tand a tab', 'text/plain; charset=utf-8'],
      [`${'a'.repeat(4095)}\u20ac`, 'text/plain; charset=utf-8'],
      ['', 'text/plain; charset=utf-8'],
    ];
    const { page } = await withBlobs(blobs.map(([content]) => content));
    for (const [i, [content, type]] of blobs.entries()) {
      const answer = await page.fetch(blobPath(i + 1));
      expect(answer.headers.get('content-type')).toBe(type);
      expect(answer.headers.get('content-disposition')).toBe('inline');
      expect(answer.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
      const expected = typeof content === 'string' ? new TextEncoder().encode(content) : content;
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(expected);
      const saved = await page.fetch(blobPath(i + 1, { download: '1' }));
      expect(saved.headers.get('content-type')).toBe('application/octet-stream');
      expect(saved.headers.get('content-disposition')).toMatch(/^attachment; /);
    }
  });

  it('is a file to save if a browser could run it', async () => {
    const attacks = [
      '<script>alert(1)</script>',
      '<!DOCTYPE html><body onload=alert(1)>',
      '  \n<html><body></body></html>',
      '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
      '<?xml version="1.0"?><svg/>',
      'harmless at first <script>alert(1)</script>',
      '\ufeff<svg/>',
      '%PDF-1.7 \x00\x01',
      'GIF88a\x00',
      bytesOf('\xff\xfe<\x00s\x00'),
      bytesOf('\x00\x00\x00\x20ftypmp42'),
    ];
    const { page } = await withBlobs(attacks);
    for (const id of attacks.keys()) {
      const { headers } = await page.fetch(blobPath(id + 1));
      expect(headers.get('content-type'), String(attacks[id])).toBe('application/octet-stream');
      expect(headers.get('content-disposition')).toMatch(/^attachment; filename="cities-coat"; filename\*=/);
      expect(headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
    }
  });

  it('comes from the row as it was at a moment', async () => {
    const { db, page } = await withBlobs(['first']);
    const held = await db.snapshot();
    await db.transaction((tx) => tx.update('cities', { id: 1, coat: db.Blob('second') }));
    expect(await (await page.fetch(blobPath(1))).text()).toBe('second');
    const at = JSON.stringify({ snapshot: held.id });
    expect(await (await page.fetch(blobPath(1, { at }))).text()).toBe('first');
    await held.release();
  });

  it('is streamed, and ends with its reader', async () => {
    const large = new Uint8Array(20 * 1024 * 1024);
    await withBlobs([large]);
    const { db, driver } = await shown.open({ role: 'replica' });
    const page = shown.page(db);
    const answer = await page.fetch(blobPath(1, { download: '1' }));
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await reader.cancel();
    const { bytesRead } = driver.snapshot();
    expect(bytesRead).toBeLessThan(13 * 1024 * 1024);
  });

  it('is refused to other sites, and where there is none', async () => {
    const { page } = await withBlobs(['text']);
    for (const site of ['cross-site', 'same-site']) {
      expect((await page.fetch(blobPath(1), { headers: { 'sec-fetch-site': site } })).status).toBe(403);
    }
    expect((await page.fetch(blobPath(1), { headers: { 'sec-fetch-site': 'none' } })).status).toBe(200);
    expect((await page.fetch(blobPath(2))).status).toBe(400);
    expect((await page.fetch(blobPath(1, { field: 'name' }))).status).toBe(400);
    expect((await page.fetch(blobPath(1, { key: '[1' }))).status).toBe(400);
    expect((await page.fetch(blobPath(1), { method: 'POST' })).status).toBe(405);
  });

  it('has a name that breaks no header, with any table and field', async () => {
    const { db } = await shown.open();
    const name = 'a"\r\nset-cookie: x=1;\u{1f600}\ud800 (b)*';
    const field = "f'\\;\n";
    const fields = { id: { typeId: Types.uint32 }, [field]: { typeId: Types.blob } };
    try {
      db.registerSchema({ name, version: 1, primaryKey: 'id', fields });
    } catch {
      // Names with half a character are refused.
      db.registerSchema({ name: name.replace('\ud800', ''), version: 1, primaryKey: 'id', fields });
    }
    const table = db.registeredSchemas()[0]?.name ?? '';
    await db.transaction((tx) => tx.insert(table, { id: 1, [field]: db.Blob('<b>') }));
    const page = shown.page(db);
    const query = new URLSearchParams({ table, field, key: '[1]' });
    const answer = await page.fetch(`/api/blob?${query.toString()}`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('set-cookie')).toBeNull();
    const disposition = answer.headers.get('content-disposition') ?? '';
    expect(disposition).toMatch(/^attachment; filename="[\w.-]+"; filename\*=UTF-8''[\w.%~-]+$/);
    expect(decodeURIComponent(disposition.split("''")[1] ?? '')).toBe(`${table}-${field}`);
  });
});

describe('an export', () => {
  const path = (format: string, asked: object): string =>
    `/api/export?format=${format}&asked=${encodeURIComponent(JSON.stringify({ where: [], orderBy: [], ...asked }))}`;

  it('has the rows that are shown, as CSV or NDJSON', async () => {
    const db = await shown.withCities(30);
    await db.transaction(async (tx) => {
      await tx.update('cities', { id: 29, name: 'a "quoted", name' });
      await tx.update('cities', { id: 28, name: '' });
    });
    const page = shown.page(db);
    const asked = {
      table: 'cities',
      fields: ['id', 'name', 'population', 'hash'],
      where: [{ field: 'id', operator: '>=', value: 28 }],
      orderBy: [{ field: 'id', direction: 'desc' }],
    };
    const csv = await page.fetch(path('csv', asked));
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(csv.headers.get('content-disposition')).toBe(
      `attachment; filename="cities.csv"; filename*=UTF-8''cities.csv`,
    );
    expect(await csv.text()).toBe(
      'id,name,population,hash\n30,City 00030,,HgEC\n29,"a ""quoted"", name",29000,HQEC\n28,"",28000,HAEC\n',
    );
    const lines = await page.fetch(path('ndjson', { ...asked, fields: ['id', 'tags'] }));
    expect(await lines.text()).toBe(
      [30, 29, 28].map((id) => `{"id":${id},"tags":{"ids":[${id}],"nested":{"ok":true}}}\n`).join(''),
    );
    const none = await page.fetch(
      path('csv', { table: 'cities', fields: ['id'], where: [{ field: 'id', operator: '<', value: 0 }] }),
    );
    expect([none.status, await none.text()]).toEqual([200, 'id\n']);
  });

  it('has every row of a large table, and reads no faster than its reader', async () => {
    await shown.withCities(20_000, { blockSizeBytes: 16_384 }).then((db) => db.checkpoint());
    const { db, driver } = await shown.open({ role: 'replica' });
    const page = shown.page(db);
    const whole = await (await page.fetch(path('ndjson', { table: 'cities' }))).text();
    const rows = whole.trim().split('\n');
    expect(rows).toHaveLength(20_000);
    expect(rows.at(-1)).toContain('{"id":20000,');
    const all = requestsOf(driver);
    const { db: other, driver: slow } = await shown.open({ role: 'replica' });
    const answer = await shown.page(other).fetch(path('csv', { table: 'cities' }));
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const { value } = await reader.read();
    expect(value?.length).toBeGreaterThan(60_000);
    // Whatever is read ahead is read by then.
    let last = -1;
    const isSettled = (): boolean => last === (last = requestsOf(slow));
    await expect.poll(isSettled, { interval: 100 }).toBe(true);
    expect(last).toBeLessThan(all / 2);
    await reader.cancel();
    await expect.poll(isSettled, { interval: 100 }).toBe(true);
    expect(last).toBeLessThan(all / 2);
  });

  it('is refused to other sites, and for what it does not know', async () => {
    const page = shown.page(await shown.withCities(3));
    const fine = path('csv', { table: 'cities' });
    expect((await page.fetch(fine)).status).toBe(200);
    expect((await page.fetch(fine, { headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(403);
    expect((await page.fetch(path('xlsx', { table: 'cities' }))).status).toBe(400);
    expect((await page.fetch(path('csv', { table: 'nope' }))).status).toBe(400);
    expect((await page.fetch('/api/export?format=csv&asked={')).status).toBe(400);
    expect((await page.fetch('/api/export?format=csv')).status).toBe(400);
  });
});
