import { defineConfig } from 'vitest/config';
import { resolve } from './vitest.config.ts';

// The tests in a real browser, which needs Chromium: `CHROMIUM`, or the command `chromium`.
const resultsFile = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  resolve,
  test: {
    include: ['test/servers/browser/**/*.test.ts', 'test/servers/studio/**/*.test.ts'],
    // Other steps of CI may share the machine.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // A loaded machine may need longer than the default, a second.
    expect: { poll: { timeout: 20_000 } },
    // A page waits often: two files at once take less time. More would take the memory of as many browsers.
    maxWorkers: 2,
    // These tests may run beside others, which write to the same cache.
    cache: false,
    reporters: resultsFile === undefined ? ['default'] : ['default', ['json', { outputFile: resultsFile }]],
  },
});
