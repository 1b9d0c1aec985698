/** Studio is a tool as others could make it: it uses nothing of the library that they could not use. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const folder = new URL('../../../src/studio/', import.meta.url);
const allowed =
  /^(?:\.\/[\w-]+\.ts|\.\.\/index\.ts|\.\.\/storage\/index\.ts|\.\.\/(?:base|text|web)\/[\w-]+\.ts|#studio-page)$/;

it('is all that Studio imports of the library', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  const imports = files.flatMap((name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    return [...text.matchAll(/(?:^(?:import|\} from)\b[^'\n]*|import\()'([^'\n]+)'/gm)].map(
      ([, specifier = '']) => `${name}: ${specifier}`,
    );
  });
  expect(imports.filter((line) => !allowed.test(line.split(': ')[1] ?? ''))).toEqual([]);
  expect(imports.length).toBeGreaterThan(50);
});
