/** The API reference is the one that the sources give now, and explains everything that it lists. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import * as storage from 'store-db/lib/storage';
import * as storeDb from 'store-db';
import * as testing from 'store-db/testing';
import { describe, expect, it } from 'vitest';
import { apiReference } from '../../../scripts/api-reference/reference.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const { markdown, undocumented } = apiReference(root);

describe('the API reference', () => {
  it('is up to date', async () => {
    const page = await readFile(new URL('../../../docs/api.md', import.meta.url), 'utf8');
    expect(page === markdown, 'docs/api.md is not what the sources give: run npm run docs:api').toBe(true);
  });

  it('finds a docstring for everything public', () => {
    expect(undocumented).toEqual([]);
  });

  it.each(Object.entries({ storeDb, storage, testing }))('lists the exports of %s', (_entry, exported) => {
    const names = Object.keys(exported).filter((name) => name !== 'default');
    expect(names.length).toBeGreaterThan(3);
    const isListed = (name: string): boolean =>
      markdown.includes(`\n### ${name}\n`) || markdown.includes(`\n| \`${name}\` | `);
    expect(names.filter((name) => !isListed(name))).toEqual([]);
  });

  it('ends no default within a number', () => {
    expect(markdown).toMatch(/\| `errorShare` \| [^|]+ \| degraded from 0\.05 on, failing from 0\.5 on \| /);
    expect(markdown.split('\n').filter((line) => /\. \d+ on,/.test(line))).toEqual([]);
  });

  it('leaves out internal declarations', () => {
    expect(markdown).not.toContain('new Database(');
    expect(markdown).not.toContain('keptVersions');
    expect(markdown).not.toContain('TableState');
    expect(markdown).not.toMatch(/@internal|@hidden|\{@link/);
  });
});
