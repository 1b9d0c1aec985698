/** Every error that users can meet is explained in docs/errors.md, under its real code. */
import { readFile } from 'node:fs/promises';
import * as storeDb from 'store-db';
import { expect, it } from 'vitest';

const { StoreDbError } = storeDb;
type ErrorClass = new (...args: string[]) => InstanceType<typeof StoreDbError>;

/** Classes of errors by the names under which they are exported. */
const exported = new Map<string, ErrorClass>();
for (const [name, value] of Object.entries(storeDb)) {
  if (typeof value !== 'function' || !(value.prototype instanceof StoreDbError)) continue;
  exported.set(name, value as unknown as ErrorClass);
}

const page = await readFile(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
/** From class to code, as the tables say. */
const listed = [...page.matchAll(/^\| `(\w+Error)` \| `(\w+)` \|/gm)].map(([, name = '', code = '']) => [name, code]);

it('lists every exported error class with its code, once, and no other', () => {
  expect(exported.size).toBeGreaterThan(10);
  // Every constructor takes text; only the code is of interest.
  const expected = [...exported].map(([name, errorClass]) => [name, new errorClass('a', 'b', 'c', 'd').code]);
  const byName = ([a = '']: string[], [b = '']: string[]): number => (a < b ? -1 : 1);
  expect(listed.toSorted(byName)).toEqual(expected.toSorted(byName));
});

it('has no two classes with one code', () => {
  expect(new Set(listed.map(([, code]) => code)).size).toBe(listed.length);
});

it('gives every reason for which a request to a store may fail', async () => {
  const source = await readFile(new URL('../../../src/base/errors.ts', import.meta.url), 'utf8');
  const reasons = Array.from(
    /type StorageFailure = (.*);/.exec(source)?.[1]?.matchAll(/'(\w+)'/g) ?? [],
    ([, name]) => name,
  );
  expect(reasons.length).toBeGreaterThan(3);
  const row = page.split('\n').find((line) => line.startsWith('| `StorageError`')) ?? '';
  for (const reason of reasons) expect(row).toContain(`\`'${reason}'\``);
});
