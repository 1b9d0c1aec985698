/** A page whose script reads and searches bundles, in as many files as a bundler makes of it. */
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import type { StaticServer } from './static-server.ts';

/** Puts the page, `index.html`, and its scripts. */
export async function putSearchPage(site: StaticServer): Promise<void> {
  const build = await rolldown({
    input: { page: fileURLToPath(new URL('search-page.ts', import.meta.url)) },
    platform: 'browser',
    tsconfig: false,
    resolve: { alias: { '#platform': fileURLToPath(new URL('../../../src/platform/web.ts', import.meta.url)) } },
    onLog: () => undefined,
  });
  const { output } = await build.generate({ format: 'esm', minify: true });
  await build.close();
  for (const file of output) if (file.type === 'chunk') await site.put(file.fileName, file.code);
  await site.put(
    'index.html',
    '<!doctype html><title>Search</title><link rel="icon" href="data:," /><script type="module" src="page.js"></script>',
  );
}
