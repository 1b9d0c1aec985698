import { defineConfig } from 'vitest/config';

// The tests on a real object store: those that are about it, and the suites that a driver can be given to.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/ceph/**/*.test.ts'],
    globalSetup: ['test/ceph/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 60_000,
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
  },
});
