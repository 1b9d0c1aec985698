/** The map in CONTRIBUTING.md: every file that it names is there, and defines the class, member or function that it names. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const page = await readFile(new URL('CONTRIBUTING.md', root), 'utf8');
const section = page.split('\n## Where things are\n')[1]?.split('\n## ')[0] ?? '';
const places = Array.from(
  section.matchAll(/^\| (.+\?) \| `([\w.#]+)` in `(src\/[\w/.-]+)` \|$/gm),
  ([, question = '', symbol = '', file = '']) => ({ question, symbol, file }),
);

/** Whether a text defines a class or a function, and in a class the member behind the point. */
function defines(text: string, symbol: string): boolean {
  const [name = '', member] = symbol.split('.');
  const definition = new RegExp(`^(?:export )?(?:async )?(?:abstract )?(?:class|function\\*?|const) ${name}\\b`, 'm');
  const at = definition.exec(text)?.index;
  if (at === undefined) return false;
  if (member === undefined) return true;
  const body = text.slice(at).split(/^\}/m)[0] ?? '';
  return new RegExp(`^ {2}(?:override )?(?:static )?(?:async )?(?:get )?\\*?${member}[(<]`, 'm').test(body);
}

it('answers 30 questions, and every row is read', () => {
  expect(places.length).toBeGreaterThanOrEqual(30);
  expect(section.split('\n').filter((line) => line.startsWith('| ')).length).toBe(places.length + 2);
});

describe.each(places)('$question', ({ symbol, file }) => {
  it('is answered by existing code', async () => {
    expect(defines(await readFile(new URL(file, root), 'utf8'), symbol)).toBe(true);
  });
});

it('names missing code', () => {
  const text = 'export class A {\n  b(): void {}\n}\n\nexport class C {\n  async #d<T>(): Promise<T> {}\n}\n';
  expect(['A', 'A.b', 'C.#d', 'A.c', 'A.#d', 'B', 'C.b'].filter((symbol) => defines(text, symbol))).toEqual([
    'A',
    'A.b',
    'C.#d',
  ]);
});
