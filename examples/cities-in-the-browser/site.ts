/** Makes a folder of static files: the page, its script, and the cities as a bundle. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { StoreDb } from 'store-db';
import type { PublishReport } from 'store-db';
import { MemoryDriver, StaticFolderDriver } from 'store-db/lib/storage';
import { readCities } from '../cities/cities.ts';
import { cities } from './cities.ts';

const here = new URL('./', import.meta.url);
const sources = new URL('../../src/', import.meta.url);

/** Publishes the cities, from a database in memory: a real one would be in a bucket. */
async function publishCities(folder: string): Promise<PublishReport> {
  const db = StoreDb({ dbPrefix: 'cities', nodeId: 0, driver: new MemoryDriver(), logLevel: 'warn' });
  db.registerSchema(cities);
  await db.start();
  const rows = await readCities();
  await db.load(
    cities,
    rows.map(({ id, name, country, admin1, lat, lng }) => ({ id, name, country, admin1, lat, lng })),
  );
  // The database is another one each time; blocks are shared all the same.
  const to = { driver: new StaticFolderDriver(folder), prefix: 'cities' };
  const report = await db.publish(to, { replace: true });
  await db.stop();
  return report;
}

/** Bundles the script of the page as an application would. Here the package is the sources beside it. */
async function bundleScript(folder: string): Promise<void> {
  const build = await rolldown({
    input: fileURLToPath(new URL('page.js', here)),
    platform: 'browser',
    tsconfig: false,
    resolve: {
      alias: {
        'store-db/reader': fileURLToPath(new URL('reader.ts', sources)),
        '#platform': fileURLToPath(new URL('platform/web.ts', sources)),
      },
    },
    onLog: () => undefined,
  });
  const { output } = await build.generate({ format: 'esm', minify: true, codeSplitting: false });
  await build.close();
  await writeFile(path.join(folder, 'page.js'), output[0].code);
}

/** Makes the site in a folder. Cities that are there are published again: then only changed files are written. */
export async function makeSite(folder: string): Promise<PublishReport> {
  await mkdir(folder, { recursive: true });
  await copyFile(new URL('index.html', here), path.join(folder, 'index.html'));
  await bundleScript(folder);
  return publishCities(folder);
}
