import { defineConfig } from 'vitest/config';

// The tests on a real object store: those that are about it, and the suites that a driver can be given to.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: [
      'test/ceph/**/*.test.ts',
      'test/{batches,blobs,triggers,values}/**/*.test.ts',
      'test/interface/{lifecycle,schemas}.test.ts',
    ],
    // What is large takes too long, or is about the drivers for local files.
    exclude: ['test/blobs/gibibyte.test.ts', 'test/batches/large-batch.test.ts'],
    globalSetup: ['test/ceph/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 60_000,
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
  },
});
