/** Words that the pages do without, since they hide who or what is meant, or are not the field's. */
import { readdir, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);

const hidden =
  /\b(?:whoever|whatever|comes? of|comes by|goes by|reckon\w*|for ever|made anew|makes \w+ anew|is told|are told)\b/gi;

/** Returns a page without the help of commands, and without code. */
function prose(path: string, text: string): string {
  const page = path === 'docs/cli.md' ? (text.split('<!-- Below:')[0] ?? '') : text;
  return page.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '``');
}

async function pages(): Promise<string[]> {
  const inFolder = async (folder: string): Promise<string[]> =>
    (await readdir(new URL(folder, root))).filter((name) => name.endsWith('.md')).map((name) => `${folder}${name}`);
  const docs = (await inFolder('docs/')).filter((path) => path !== 'docs/api.md');
  return [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    ...docs,
    ...(await inFolder('docs/guide/')),
  ];
}

it('are in no page', async () => {
  const found: string[] = [];
  const read = await pages();
  for (const path of read) {
    for (const line of prose(path, await readFile(new URL(path, root), 'utf8')).split('\n')) {
      for (const [word] of line.matchAll(hidden)) found.push(`${path}: ${word}: ${line}`);
    }
  }
  expect(found).toEqual([]);
  expect(read.length).toBeGreaterThan(40);
});

it('begin no docstring: it begins with a verb or a noun', async () => {
  const found: string[] = [];
  const files = await readdir(new URL('src/', root), { recursive: true });
  for (const file of files) {
    if (!file.endsWith('.ts')) continue;
    const text = await readFile(new URL(`src/${file}`, root), 'utf8');
    for (const [line] of text.matchAll(/^ *\/\*\*(?:\n *\*)? (?:The same|Whoever|Whatever|What|Those)\b.*/gm)) {
      found.push(`${file}: ${line.trim()}`);
    }
  }
  expect(found).toEqual([]);
  expect(files.length).toBeGreaterThan(300);
});

/** Words that titles of tests do without. */
const hiddenInTitles = /\b(?:who|what|whom)ever\b|\banew\b|\breckon\w*|\bin vain\b|\bcomes? of\b|\bgoes by\b/i;

it('are in no title of a test', async () => {
  const found: string[] = [];
  let titles = 0;
  for (const folder of ['src/', 'test/']) {
    for (const file of await readdir(new URL(folder, root), { recursive: true })) {
      if (!file.endsWith('.ts')) continue;
      const text = await readFile(new URL(`${folder}${file}`, root), 'utf8');
      for (const [, , title = ''] of text.matchAll(/^ *(?:it|describe)\b[^'"`\n]*(['"`])(.*?)\1,/gm)) {
        titles++;
        if (hiddenInTitles.test(title)) found.push(`${folder}${file}: ${title}`);
      }
    }
  }
  expect(found).toEqual([]);
  expect(titles).toBeGreaterThan(2500);
});

/** The first lines of paragraphs of `//` that stand between declarations of a file, and so describe none of them. */
function looseParagraphs(text: string): string[] {
  const found: string[] = [];
  // After the imports: what stands before them belongs to the file.
  for (const [, line = ''] of text.matchAll(/\n\n(\/\/ .*)(?:\n\/\/.*)*\n\n/g)) found.push(line);
  return found;
}

it('stand at a declaration, or at the head of the file', async () => {
  const found: string[] = [];
  for (const file of await readdir(new URL('src/', root), { recursive: true })) {
    if (!file.endsWith('.ts')) continue;
    const text = await readFile(new URL(`src/${file}`, root), 'utf8');
    found.push(...looseParagraphs(text).map((line) => `${file}: ${line}`));
  }
  expect(found).toEqual([]);
  expect(looseParagraphs('const a = 1;\n\n// Of b,\n// and of c.\n\nconst b = 2;\n')).toEqual(['// Of b,']);
  expect(looseParagraphs('const a = 1;\n\n// Of b.\nconst b = 2;\n')).toEqual([]);
});

it('are found where they are', () => {
  const text =
    'Whoever asks is told.\n`whatever`\n```ts\nwhoever\n```\n<!-- table x -->\nfor ever\n<!-- end -->\nIt reckons.\n';
  expect(prose('docs/a.md', text).match(hidden)).toEqual(['Whoever', 'is told', 'for ever', 'reckons']);
});
