import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { libraryVersion } from './version.ts';

it('is the version of the package', () => {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect((JSON.parse(manifest) as { readonly version: string }).version).toBe(libraryVersion);
});
