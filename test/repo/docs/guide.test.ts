/** The guide is pages of one subject each: its index lists them, each is short, and each leads to the next. */
import { readdir, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

const docs = new URL('../../../docs/', import.meta.url);
const index = await readFile(new URL('guide.md', docs), 'utf8');
/** Titles and files, in the order of the index. */
const listed = Array.from(index.matchAll(/^- \[(.+?)\]\(guide\/(.+?)\)/gm), ([, title = '', file = '']) => ({
  title,
  file,
}));

it('lists every page of the folder once', async () => {
  expect(listed.map(({ file }) => file).toSorted()).toEqual((await readdir(new URL('guide/', docs))).toSorted());
});

it.each(listed)('has a page $file of that title, of less than 300 lines', async ({ title, file }) => {
  const lines = (await readFile(new URL(`guide/${file}`, docs), 'utf8')).split('\n');
  expect(lines[0]).toBe(`# ${title}`);
  expect(lines.length).toBeLessThan(300);
});

it('leads from each page to the next', async () => {
  for (const [at, { file }] of listed.entries()) {
    const next = listed[at + 1];
    const end = next === undefined ? 'Back to the [guide](../guide.md)' : `Next: [${next.title}](${next.file})`;
    expect([file, (await readFile(new URL(`guide/${file}`, docs), 'utf8')).trimEnd().split('\n').at(-1)]).toEqual([
      file,
      end,
    ]);
  }
});
