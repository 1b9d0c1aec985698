/** Links between the pages of the documentation lead somewhere. */
import { access, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The anchor that a heading gets. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

async function brokenLinks(page: string): Promise<string[]> {
  const text = await readFile(page, 'utf8');
  const broken: string[] = [];
  for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [file = '', anchor] = target.split('#');
    const linked = file === '' ? page : path.resolve(path.dirname(page), file);
    const found = await access(linked).then(
      () => true,
      () => false,
    );
    if (!found) broken.push(target);
    else if (anchor !== undefined) {
      const headings = [...(await readFile(linked, 'utf8')).matchAll(/^#+ (.*)$/gm)];
      if (!headings.some(([, heading = '']) => anchorOf(heading) === anchor)) broken.push(target);
    }
  }
  return broken;
}

const docs = await readdir(path.join(root, 'docs'), { recursive: true });
const fixed = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'];
const examples = ['examples/notes-service/README.md', 'examples/notes-worker/README.md'];
const pages = [...fixed, ...examples, ...docs.map((name) => `docs/${name.replaceAll('\\', '/')}`)];

it.each(pages.filter((name) => name.endsWith('.md')))('%s links to existing targets', async (page) => {
  expect(await brokenLinks(path.join(root, page))).toEqual([]);
});
