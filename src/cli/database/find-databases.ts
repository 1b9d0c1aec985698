/** Looks for databases in a store whose prefix was not said. */
import { defined } from '../../base/defined.ts';
import { block0Name } from '../../format/keys.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';

/** Steps after which the search ends: a store may hold any number of other objects. */
const maxSteps = 200;

export interface FoundDatabases {
  readonly prefixes: readonly string[];
  /** Whether everything was looked at. */
  readonly complete: boolean;
}

/** Every folder of a key, the outermost first: `a`, `a/b` of `a/b/c`. */
function foldersOf(key: string): string[] {
  const parts = key.split('/');
  return parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join('/'));
}

async function isDatabase(driver: StorageDriver, prefix: string, signal: AbortSignal): Promise<boolean> {
  const key = `${prefix}/${block0Name}`;
  const { entries } = await driver.list(key, { limit: 1, signal });
  return entries[0]?.key === key;
}

/** Where to look. */
export interface SearchOptions {
  /** Only what is in this folder. Default: all of the store. */
  readonly under?: string | undefined;
  /** However long it takes. Default: it ends after 200 steps. */
  readonly patient?: boolean;
}

/** The prefixes under which there is a Block 0. One step is a listing of one key, and one of each folder that is new. */
export async function findDatabases(
  driver: StorageDriver,
  signal: AbortSignal,
  { under, patient = false }: SearchOptions = {},
): Promise<FoundDatabases> {
  const prefixes: string[] = [];
  // Folders around the one that is looked through are of no interest.
  const looked = new Set<string>(under === undefined ? [] : foldersOf(under));
  let after: string | undefined;
  const mostSteps = patient ? Number.POSITIVE_INFINITY : maxSteps;
  for (let step = 0; step < mostSteps; step++) {
    const { entries } = await driver.list(under === undefined ? '' : `${under}/`, {
      limit: 1,
      signal,
      ...defined({ after }),
    });
    const key = entries[0]?.key;
    if (key === undefined) return { prefixes, complete: true };
    const fresh = foldersOf(key).filter((folder) => !looked.has(folder));
    let found: string | undefined;
    for (const folder of fresh) {
      looked.add(folder);
      if (!(await isDatabase(driver, folder, signal))) continue;
      found = folder;
      break;
    }
    if (found !== undefined) prefixes.push(found);
    // Behind everything in the folder: no key has a part of a code point, and this is the last of them.
    const folder = found ?? foldersOf(key).at(-1);
    after = folder === undefined ? key : `${folder}/\u{10ffff}`;
  }
  return { prefixes, complete: false };
}
