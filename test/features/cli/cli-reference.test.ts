import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { withHelp } from './cli-reference.ts';

it('docs/cli.md shows the help as it is: npm run docs:cli', async () => {
  const text = await readFile(new URL('../../../docs/cli.md', import.meta.url), 'utf8');
  expect(text).toBe(await withHelp(text));
});
