import { defineConfig } from 'vitest/config';

// The tests in a real terminal, which needs tmux.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/servers/terminal/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
  },
});
