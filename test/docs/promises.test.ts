/** The pages still say what they promise, and the tests that hold it are still there. */
import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { promises, stale } from './promises.ts';

const root = new URL('../../', import.meta.url);
const read = (file: string): Promise<string> => readFile(new URL(file, root), 'utf8');
const onOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

/** The bold words with which the promises of a list begin, below a heading. */
async function leadsOf(page: string, heading: string): Promise<string[]> {
  const section = (await read(page)).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return Array.from(section.matchAll(/^- (\*\*.+?\*\*)/gms), ([, lead = '']) => onOneLine(lead));
}

describe('every promise', () => {
  it.each(promises)('$page: $sentence', async ({ page, sentence, tests }) => {
    expect(onOneLine(await read(page))).toContain(onOneLine(sentence));
    expect(tests.length).toBeGreaterThan(0);
    for (const [file, title] of tests) {
      const text = await read(file);
      expect([file, title, text.includes(title)]).toEqual([file, title, true]);
      // A title within a test or a group of tests, and not somewhere in a comment.
      const lines = text.split('\n').filter((line) => line.includes(title));
      expect(lines.some((line) => !/^\s*(?:\/\/|\*|\/\*)/.test(line))).toBe(true);
    }
  });

  it.each([
    ['README.md', 'What it promises'],
    ['SECURITY.md', 'What is promised'],
  ])('of %s, "%s", is in the list', async (page, heading) => {
    const leads = await leadsOf(page, heading);
    expect(leads.length).toBeGreaterThan(4);
    for (const lead of leads) {
      const listed = promises.some((promise) => promise.page === page && promise.sentence.includes(lead));
      expect([lead, listed]).toEqual([lead, true]);
    }
  });
});

describe('what was true once', () => {
  it.each(stale)('is on no page any more: %s', async (sentence) => {
    const names = (await readdir(new URL('docs/', root))).filter((name) => name.endsWith('.md'));
    for (const page of ['README.md', 'SECURITY.md', ...names.map((name) => `docs/${name}`)]) {
      expect([page, onOneLine(await read(page)).includes(sentence)]).toEqual([page, false]);
    }
  });
});
