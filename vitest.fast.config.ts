import { defineConfig } from 'vitest/config';
import shared from './vitest.config.ts';

// What finds most faults for its time, npm test: the rest is in files that are named so.
export default defineConfig({
  ...shared,
  test: { ...shared.test, exclude: [...(shared.test?.exclude ?? []), '**/*.slow.test.ts'] },
});
