/** The programs of docs/guide/testing.md are the files of test/repo/projects, which scripts/check-projects.ts runs. */
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

const read = (file: string): Promise<string> => readFile(new URL(`../../../${file}`, import.meta.url), 'utf8');

it('shows the files of the projects, word for word', async () => {
  const page = await read('docs/guide/testing.md');
  const blocks = Array.from(page.matchAll(/^```(?:ts|js)\n(.*?)^```$/gms), ([, block = '']) => block);
  const files = ['vitest/notes.ts', 'vitest/notes.test.ts', 'jest/notes.cjs', 'jest/notes.test.cjs'];
  files.push('node-test/notes.test.mjs');
  expect(blocks).toEqual(await Promise.all(files.map((file) => read(`test/repo/projects/${file}`))));
});

it('has one application, in three forms', async () => {
  const required = await read('test/repo/projects/jest/notes.cjs');
  const asModule = required
    .replace("const { StoreDb, Types } = require('store-db');", "import { StoreDb, Types } from 'store-db';")
    .replace('async function openNotes', 'export async function openNotes')
    .replace('\nmodule.exports = { openNotes };\n', '');
  expect(await read('test/repo/projects/node-test/notes.mjs')).toBe(asModule);
});
