/** The guide has a row for every option of `StoreDb()`, and the page of the command line names the commands that write. */
import { readdir, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const read = (file: string): Promise<string> => readFile(new URL(file, root), 'utf8');

it('lists the options of StoreDb(), each once, and no other', async () => {
  const source = await read('src/instance/options.ts');
  const declared = Array.from(
    source.matchAll(/export interface (?:StoreDbOptions|EphemeralOptions) [^{]*\{(.*?)\n\}/gs),
    ([, body]) => body,
  ).join('\n');
  const options = [...new Set(Array.from(declared.matchAll(/^ {2}readonly (\w+)\??:/gm), ([, name]) => name))];
  expect(options.length).toBeGreaterThan(15);
  const section = (await read('docs/guide/options.md')).split('\n## ')[0] ?? '';
  const listed = Array.from(section.matchAll(/^\| `(\w+)` \|/gm), ([, name]) => name);
  expect(listed).toHaveLength(options.length);
  expect(new Set(listed)).toEqual(new Set(options));
});

it('names the commands that are a node while they run', async () => {
  const files = (await readdir(new URL('src/cli/commands/', root))).filter((name) => name.endsWith('.ts'));
  const writing: string[] = [];
  for (const file of files) {
    // A command ends with `});` at the beginning of a line, and the functions that it alone calls stand before it.
    for (const part of (await read(`src/cli/commands/${file}`)).split(/^\}\);$/m)) {
      const name = /command\(\{\n {2}name: '([\w-]+)'/.exec(part)?.[1];
      if (name !== undefined && name !== 'doctor' && part.includes("'writer'")) writing.push(name);
    }
  }
  const sentence = /Commands that write \((.*?)\) are\s/s.exec(await read('docs/cli.md'))?.[1] ?? '';
  expect(new Set(Array.from(sentence.matchAll(/`(?:\w+\s)?(\w+)`/g), ([, name]) => name))).toEqual(new Set(writing));
});
