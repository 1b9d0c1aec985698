/** Has every database of a test be encrypted and compressed, unless the test says how it is stored. */
import { vi } from 'vitest';
import type * as Options from '../../../src/instance/options.ts';

vi.mock('../../../src/instance/options.ts', async (importOriginal) => {
  const options = await importOriginal<typeof Options>();
  const keys = { test: Uint8Array.from({ length: 32 }, (_, i) => i) };
  const stored = { encryption: { keys, current: 'test' }, compression: 'deflate' };
  const checkOptions: typeof options.checkOptions = (given, defaultDriver) =>
    options.checkOptions({ ...stored, ...(given as object) }, defaultDriver);
  return { ...options, checkOptions };
});
