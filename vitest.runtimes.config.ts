import { defineConfig } from 'vitest/config';
import { resolve } from './vitest.config.ts';

// The tests of the interface and of the drivers on Bun and Deno, which the packages `bun` and `deno` install.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve,
  test: {
    include: [
      'test/features/{conformance,interface,platform}/**/*.test.ts',
      'test/features/{encryption,transactions}/*.test.ts',
      'test/servers/s3/conformance.slow.test.ts',
      'src/platform/*.test.ts',
      'src/storage/{memory-driver,file/*}.test.ts',
    ],
    exclude: [
      // These start child processes with options that only Node.js has.
      'test/features/interface/{lifecycle,vanished}.slow.test.ts',
      // It tells the pool of Node.js by its turns of the event loop. On Deno an operation of the pool may end without one.
      'src/storage/file/node-file-system.test.ts',
    ],
    pool: 'forks',
    isolate: false,
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    setupFiles: ['vitest.setup.ts'],
    // These tests may run beside others, which write to the same cache.
    cache: false,
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
  },
});
