/** The pages still say what they promise, and the tests that hold it are still there. */
import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { noPromises, pages, stale } from './promises.ts';

const root = new URL('../../../', import.meta.url);
const read = (file: string): Promise<string> => readFile(new URL(file, root), 'utf8');
const onOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

/** Pages of a folder, from the root. */
async function pagesIn(folder: string): Promise<string[]> {
  const names = await readdir(new URL(folder, root));
  return names.filter((name) => name.endsWith('.md')).map((name) => `${folder}${name}`);
}

/** The bold words with which the promises of a list begin, below a heading. */
async function leadsOf(page: string, heading: string): Promise<string[]> {
  const section = (await read(page)).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return Array.from(section.matchAll(/^- (\*\*.+?\*\*)/gms), ([, lead = '']) => onOneLine(lead));
}

/** Words with which something is promised, more often than not. */
const strong = /\b(?:never|always|at most|no more than|(?:is|are) refused|refuses|rejects? with)\b/;

/** Sentences and cells of tables, without what is within code blocks. Those of help texts are about options. */
function sentencesOf(page: string): string[] {
  const prose = (page.split('\n<!-- Below: the help')[0] ?? '')
    .replaceAll(/^```.*?^```/gms, '')
    .replaceAll(/^ {4}.*$/gm, '');
  const blocks = prose.split(/\n\s*\n|\n(?=- |\d+\. |\|)/).map((block) =>
    onOneLine(block)
      .replace(/^(?:-|\d+\.) /, '')
      .trim(),
  );
  const cells = blocks.flatMap((block) => (block.startsWith('|') ? block.split('|') : [block]));
  return cells.flatMap((cell) => cell.split(/(?<=[.!?]) (?=[A-Z`*"(])/)).map((sentence) => sentence.trim());
}

const promises = Object.entries(pages).flatMap(([page, sentences]) =>
  Object.entries(sentences).map(([sentence, tests]) => ({ page, sentence, tests })),
);

describe('every promise', () => {
  it('is looked for on every page of the guide', async () => {
    expect(Object.keys(pages)).toEqual(expect.arrayContaining(await pagesIn('docs/guide/')));
  });

  it.each(promises)('$page: $sentence', async ({ page, sentence, tests }) => {
    const isThere = onOneLine(await read(page)).includes(onOneLine(sentence));
    expect([page, sentence, isThere]).toEqual([page, sentence, true]);
    expect(tests.length).toBeGreaterThan(0);
    for (const test of tests) {
      const [file = '', ...rest] = test.split(': ');
      const title = rest.join(': ');
      // A title within a test or a group of tests, and not somewhere in a comment.
      const lines = (await read(file)).split('\n').filter((line) => line.includes(title));
      expect([test, lines.some((line) => !/^\s*(?:\/\/|\*|\/\*)/.test(line))]).toEqual([test, true]);
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

  it.each(Object.keys(pages))(
    'of %s that says so in strong words is in the list, or is said to be none',
    async (page) => {
      const listed = promises.filter((promise) => promise.page === page).map(({ sentence }) => onOneLine(sentence));
      const found = sentencesOf(await read(page)).filter((sentence) => strong.test(sentence));
      const missing = found.filter(
        (sentence) =>
          !listed.some((promise) => sentence.includes(promise) || promise.includes(sentence)) &&
          !noPromises.some((beginning) => sentence.startsWith(beginning)),
      );
      expect(
        missing,
        'Name the test of each in test/repo/docs/promises/, or say in noPromises that it is none',
      ).toEqual([]);
    },
  );
});

describe('a sentence in noPromises', () => {
  it.each(noPromises)('is still said: %s', async (beginning) => {
    const texts = await Promise.all(Object.keys(pages).map(read));
    expect(texts.some((text) => sentencesOf(text).some((sentence) => sentence.startsWith(beginning)))).toBe(true);
  });
});

describe('a sentence that was true once', () => {
  it.each(stale)('is on no page any more: %s', async (sentence) => {
    const names = [...(await pagesIn('docs/')), ...(await pagesIn('docs/guide/'))];
    for (const page of ['README.md', 'SECURITY.md', ...names]) {
      expect([page, onOneLine(await read(page)).includes(sentence)]).toEqual([page, false]);
    }
  });
});
