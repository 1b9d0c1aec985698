import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, it } from 'vitest';
import { compareStrings } from '../../../src/base/bytes.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import type { ListEntry, StorageDriver } from '../../../src/storage/index.ts';
import { driverConformance } from '../../../src/testing/index.ts';

const root = mkdtempSync(path.join(tmpdir(), 'store-db-conformance-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

for (const durability of ['fsync', 'none'] as const) {
  describe(`FileDriver, durability ${durability}`, () => {
    const options = { path: path.join(root, durability), durability };
    const tests = driverConformance({
      create: () => new FileDriver(options),
      createOther: () => new FileDriver(options),
    });
    for (const test of tests) it(test.name, test.run);
  });
}

const numbers = new Map<string, string>();
const names = new Map<string, string>();

/** Returns a key in the same folder whose last segment is a number, as those of commits are. */
function toNumbered(key: string): string {
  let numbered = numbers.get(key);
  if (numbered === undefined) {
    const folder = key.slice(0, key.lastIndexOf('/') + 1);
    numbered = `${folder}${String(1_000_000 - numbers.size).padStart(16, '0')}`;
    numbers.set(key, numbered);
    names.set(numbered, key);
  }
  return numbered;
}

/** Gives every object a number for a name. Lists are sorted here, since numbers have another order. */
function numberedDriver(driver: FileDriver): StorageDriver {
  const list: StorageDriver['list'] = async (prefix, options = {}) => {
    const { after, limit = 1000, ...rest } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) return driver.list(prefix, options);
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
    const found: ListEntry[] = [];
    for (let last: string | undefined; ; ) {
      const page = await driver.list(folder, { ...rest, limit: 7, ...(last === undefined ? {} : { after: last }) });
      for (const entry of page.entries) found.push({ ...entry, key: names.get(entry.key) as string });
      last = page.entries.at(-1)?.key;
      if (!page.more) break;
    }
    const entries = found
      .filter(({ key }) => key.startsWith(prefix) && (after === undefined || compareStrings(key, after) > 0))
      .toSorted((a, b) => compareStrings(a.key, b.key));
    return { entries: entries.slice(0, limit), more: entries.length > limit };
  };
  return {
    name: 'numbered',
    get: (key, options) => driver.get(key === '' ? '' : toNumbered(key), options),
    put: (key, body, options) => driver.put(key === '' ? '' : toNumbered(key), body, options),
    delete: async (keys, options) => {
      const { failed } = await driver.delete(keys.map(toNumbered), options);
      return { failed: failed.map(({ key, message }) => ({ key: names.get(key) as string, message })) };
    },
    list,
  };
}

for (const journalPolicy of [{}, { maxBodyBytes: 10, maxGrowthBytes: 2000 }]) {
  describe(`FileDriver, in journals with ${JSON.stringify(journalPolicy)}`, () => {
    const options = { path: path.join(root, `numbered${Object.keys(journalPolicy).length}`), journalPolicy };
    const tests = driverConformance({
      create: () => numberedDriver(new FileDriver(options)),
      createOther: () => numberedDriver(new FileDriver(options)),
      supports: { oddKeys: false },
    });
    // Here each key is as good as the other.
    const ofKeys = /no key is refused|long keys/;
    for (const test of tests) if (!ofKeys.test(test.name)) it(test.name, test.run);
  });
}
