import { defineConfig } from 'vitest/config';
import shared from './vitest.config.ts';

// What npm test leaves out. Many of these tests wait for processes and servers of their own, so one worker more than cores.
export default defineConfig({
  ...shared,
  test: { ...shared.test, include: ['{src,test}/**/*.slow.test.ts'], maxWorkers: 3 },
});
