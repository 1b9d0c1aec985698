import { defineConfig } from 'vitest/config';
import { resolve } from './vitest.config.ts';
import { LongestFirst } from './test/servers/faults/longest-first.ts';

// The tests on Azurite, a server with the interface of Azure Blob Storage.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve,
  test: {
    include: ['test/servers/azure/**/*.test.ts'],
    globalSetup: ['test/servers/azure/global-setup.ts'],
    sequence: { sequencer: LongestFirst },
    setupFiles: ['vitest.setup.ts'],
    pool: 'forks',
    isolate: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 60_000,
    // These tests may run beside others, which write to the same cache.
    cache: false,
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
  },
});
