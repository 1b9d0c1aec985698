/** The example that searches cities in static files: the site is made, and read over HTTP. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { serveFolder } from '../../../examples/cities-in-the-browser/server.ts';
import { makeSite } from '../../../examples/cities-in-the-browser/site.ts';
import { openReader } from '../../../src/reader.ts';

it('searches cities with few requests', { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cities-site-'));
  const report = await makeSite(folder);
  expect(report).toMatchObject({ outcome: 'published', rows: 171_075 });
  // The pointer, the manifest and the contents name the database.
  expect(await makeSite(folder)).toMatchObject({ outcome: 'published', writtenObjects: 3 });
  expect(readdirSync(folder).toSorted()).toEqual(['cities', 'index.html', 'page.js']);
  expect(gzipSync(readFileSync(path.join(folder, 'page.js')), { level: 9 }).length).toBeLessThan(92_500);

  const server = serveFolder(folder);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const reader = await openReader(`http://127.0.0.1:${port}/cities`);
  const query = reader.query('cities').where('name', 'PREFIX', 'Turk').orderBy('name');
  const rows = await query.select('id', 'name', 'country', 'admin1').limit(20).execute();
  expect(rows).toContainEqual(expect.objectContaining({ name: 'Turku', country: 'FI' }));
  expect(reader.stats().requests).toBeLessThanOrEqual(4);
  expect(reader.stats().receivedBytes).toBeLessThan(150_000);
  expect((await fetch(`http://127.0.0.1:${port}/../package.json`)).status).toBe(404);
  reader.close();
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  rmSync(folder, { recursive: true });
});
