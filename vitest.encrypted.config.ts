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
      'test/features/triggers/*.test.ts',
      'test/features/batches/flush.test.ts',
      'test/features/values/{functions,defaults,queries,queries.slow}.test.ts',
      'test/features/transactions/{attempts,predicates,triggers-and-blobs}.test.ts',
      'test/features/encryption/encrypted-anyway.ts',
    ],
    setupFiles: ['vitest.setup.ts', 'test/features/encryption/encrypt-all.ts'],
  },
});
