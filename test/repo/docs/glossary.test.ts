/** The glossary stays short, since a reader has to learn every word in it, and lists no word that nothing uses. */
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { readTree } from '../tidy/source-tree.ts';
import { fileURLToPath } from 'node:url';

const root = new URL('../../../', import.meta.url);
const glossary = await readFile(new URL('docs/glossary.md', root), 'utf8');
const entries = Array.from(glossary.matchAll(/^\| \*\*(.+?)\*\* \| (.+) \|$/gm), ([, word = '']) => word);

it('has at most 50 words, each once, in the order of the alphabet', () => {
  const words = entries.map((word) => word.toLowerCase());
  expect(words.length).toBeGreaterThan(30);
  expect(words.length).toBeLessThanOrEqual(50);
  expect(words).toEqual([...new Set(words)].toSorted());
  expect(glossary.split('\n').filter((line) => line.startsWith('| ')).length).toBe(entries.length + 2);
});

it('lists only words that the code and another page use', () => {
  const { texts } = readTree(fileURLToPath(root));
  const pages = [...texts].filter(([path]) => path.endsWith('.md') && path !== 'docs/glossary.md');
  const sources = [...texts].filter(([path]) => path.startsWith('src/'));
  for (const word of entries) {
    const pattern = new RegExp(`\\b${word.replaceAll(' ', '[ -]?')}`, 'i');
    for (const files of [pages, sources]) {
      expect(
        files.some(([, text]) => pattern.test(text)),
        word,
      ).toBe(true);
    }
  }
});
