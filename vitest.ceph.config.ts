import { defineConfig } from 'vitest/config';
import { resolve } from './vitest.config.ts';
import { LongestFirst } from './test/servers/faults/longest-first.ts';

// The tests on a real object store: those that are about it, and the suites that a driver can be given to.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve,
  test: {
    include: [
      'test/servers/ceph/**/*.test.ts',
      'test/features/{batches,blobs,triggers,values}/**/*.test.ts',
      'test/features/interface/{lifecycle,lifecycle.slow,schemas}.test.ts',
    ],
    // What is large takes too long, or is about the drivers for local files.
    exclude: [
      'test/features/blobs/gibibyte.slow.test.ts',
      'test/features/batches/large-batch.slow.test.ts',
      // They bring drivers of their own.
      'test/features/blobs/stalled-streams.slow.test.ts',
      'test/features/values/{order,queries,signals}.slow.test.ts',
    ],
    globalSetup: ['test/servers/ceph/global-setup.ts'],
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
