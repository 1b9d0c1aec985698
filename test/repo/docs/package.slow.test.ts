/** What the pages of the package link to is in the package, or on the web. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The files that would be published, but for what the build makes. */
async function packedFiles(): Promise<string[]> {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    shell: process.platform === 'win32',
  });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  return files.map((file) => file.path);
}

/** Links of a page to files, from the root. */
async function linksOf(page: string): Promise<string[]> {
  const text = (await readFile(path.join(root, page), 'utf8')).replaceAll(/^```.*?^```/gms, '');
  const targets = Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, target = '']) => target);
  return targets
    .filter((target) => !/^(?:https:|mailto:|#)/.test(target))
    .map((target) => path.posix.join(path.posix.dirname(page), target.replace(/#.*/, '')));
}

it("contains the targets of its pages' links", { timeout: 60_000 }, async () => {
  const files = await packedFiles();
  const pages = files.filter((file) => file.endsWith('.md') && !file.startsWith('dist/'));
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'SECURITY.md', 'docs/guide.md', 'docs/guide/writing.md']));
  const links = await Promise.all(
    pages.map(async (page) => (await linksOf(page)).map((link) => [page, link] as const)),
  );
  expect(await linksOf('README.md')).toEqual(expect.arrayContaining(['docs/how-it-works.svg', 'LICENSE']));
  expect(
    links.flat().filter(([, link]) => !files.some((file) => file === link || file.startsWith(`${link}/`))),
  ).toEqual([]);
});

it('says where it is looked after, which the release fills in', async () => {
  // Where the repository is, only its own release knows: a fork's package must not point to another one.
  const { repository, homepage, bugs } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as {
    readonly [field: string]: unknown;
  };
  expect([repository, homepage, bugs]).toEqual([undefined, undefined, undefined]);
  const release = await readFile(path.join(root, '.github/workflows/release.yml'), 'utf8');
  for (const field of ['repository.url=', 'homepage=', 'bugs.url=']) expect(release).toContain(field);
});
