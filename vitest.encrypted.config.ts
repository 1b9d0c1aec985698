import { defineConfig } from 'vitest/config';
import shared from './vitest.config.ts';

// Databases that are encrypted and compressed, in tests that know nothing of it, and must not notice: none that look into
// objects. The last one sees to it that they are.
export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    // What is set up replaces a module.
    isolate: true,
    include: [
      'test/triggers/*.test.ts',
      'test/batches/flush.test.ts',
      'test/values/{functions,defaults,queries}.test.ts',
      'test/transactions/{attempts,predicates,triggers-and-blobs}.test.ts',
      'test/encryption/encrypted-anyway.ts',
    ],
    setupFiles: ['test/encryption/encrypt-all.ts'],
  },
});
