import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Where CI asks for it, the results are also written as JSON, so that they need not be read off the screen.
const resultsFile = process.env['TEST_RESULTS_FILE'];

/** The package's own name stands for its sources, and so do the names of files that are others on each platform. */
export const resolve = {
  tsconfigPaths: true,
  alias: {
    '#platform': fileURLToPath(new URL('src/platform/node.ts', import.meta.url)),
    '#environment-driver': fileURLToPath(new URL('src/storage/environment-driver.ts', import.meta.url)),
    '#load-thread': fileURLToPath(new URL('src/platform/load-thread.ts', import.meta.url)),
    '#worker-code': fileURLToPath(new URL('scripts/worker-code.ts', import.meta.url)),
    '#studio-page': fileURLToPath(new URL('studio/page-files.ts', import.meta.url)),
  },
};

export default defineConfig({
  resolve,
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // These need a real object store, npm run test:ceph or npm run test:azure, a real terminal, npm run test:terminal, and a real
    // browser, npm run test:browser.
    exclude: [
      'test/servers/azure/**',
      'test/servers/browser/**',
      'test/servers/ceph/**',
      'test/servers/studio/**',
      'test/servers/terminal/**',
    ],
    pool: 'forks',
    // A worker loads and compiles the sources once, not for each file: nothing in them is kept for a whole process but caches.
    isolate: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    // A loaded machine may need longer than the default, a second.
    expect: { poll: { timeout: 20_000 } },
    setupFiles: ['vitest.setup.ts'],
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      exclude: ['src/**/*.test.ts'],
      reporter: ['text-summary', 'html'],
    },
  },
});
