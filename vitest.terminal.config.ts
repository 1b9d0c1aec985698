import { defineConfig } from 'vitest/config';
import { resolve } from './vitest.config.ts';

// The tests in a real terminal, which needs tmux.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve,
  test: {
    include: ['test/servers/terminal/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // These tests may run beside others, which write to the same cache.
    cache: false,
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
  },
});
