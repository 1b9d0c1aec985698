/** A block whose version nobody knows: of a later version of the database, or damaged in just that byte. */
import { beforeAll, describe, expect, it } from 'vitest';
import { StoreDbError } from '../../../src/base/errors.ts';
import { isCatalogueName } from '../../../src/format/catalogue.ts';
import type { GetOptions, GetResult } from '../../../src/storage/contract/driver.ts';
import { askAll } from '../../properties/fuzz/questions.ts';
import { OverlayStore } from '../../properties/fuzz/overlay-store.ts';
import { buildDatabase, dbPrefix, openDatabase } from '../../properties/fuzz/stored-database.ts';
import type { StoredDatabase } from '../../properties/fuzz/stored-database.ts';

const versionAt = 3;
const unknownVersion = 67;
const maxRequests = 20_000;

let stored: StoredDatabase;

beforeAll(async () => {
  stored = await buildDatabase();
});

/** The database with one of its objects in a version that nobody knows. */
function storeWith(name: string): OverlayStore {
  const bytes = (stored.objects.get(name) as Uint8Array).slice();
  bytes[versionAt] = unknownVersion;
  const objects = new Map([...stored.objects].map(([other, content]) => [`${dbPrefix}/${other}`, content]));
  return new OverlayStore(objects, new Map([[`${dbPrefix}/${name}`, bytes]]), maxRequests);
}

/** A store whose first answer with each object, or part of one, comes in a version that nobody knows. */
class DamagedOnTheWay extends OverlayStore {
  readonly damaged = new Set<string>();

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const found = await super.get(key, options);
    const part = `${key} ${options?.range?.start ?? 0}`;
    if (found.status !== 'found' || key.includes('/blobs/') || this.damaged.has(part)) return found;
    this.damaged.add(part);
    const bytes = found.bytes.slice();
    bytes[versionAt] = unknownVersion;
    return { ...found, bytes };
  }
}

function blocks(): string[] {
  return [...stored.objects.keys()].filter((name) => /^(data|indexes|staged)\//.test(name) && !isCatalogueName(name));
}

/** It is a part of Block 0. */
it('a catalogue of such a version keeps the database from being opened', async () => {
  const names = [...stored.objects.keys()].filter(isCatalogueName);
  expect(names).toHaveLength(1);
  const db = openDatabase(storeWith(names[0] as string), 1);
  await expect(db.start()).rejects.toMatchObject({ code: 'UNKNOWN_FORMAT', key: names[0] });
});

describe('a read', () => {
  it('is made again, since the damage may be on the way only', async () => {
    const objects = new Map([...stored.objects].map(([name, content]) => [`${dbPrefix}/${name}`, content]));
    const store = new DamagedOnTheWay(objects, new Map(), maxRequests);
    const db = openDatabase(store, 1);
    await db.start();
    expect((await askAll(db)).filter((answer) => answer instanceof StoreDbError)).toEqual([]);
    expect(store.damaged.size).toBeGreaterThan(50);
    await db.stop();
  });
});

describe('verify()', () => {
  it('reports any such block, and goes on', async () => {
    const missed: string[] = [];
    let found = 0;
    for (const name of blocks()) {
      const db = openDatabase(storeWith(name), 1);
      await db.start();
      const report = await db.verify({ deep: true }).catch((error: unknown) => String(error));
      if (typeof report !== 'string' && report.findings.some((finding) => JSON.stringify(finding).includes(name)))
        found++;
      else if (typeof report === 'string' || !report.ok) missed.push(`${name}: ${JSON.stringify(report)}`);
      await db.stop();
    }
    expect(missed).toEqual([]);
    expect(found).toBeGreaterThan(50);
  });
});

describe('repair()', () => {
  it('acts as for any damaged block', async () => {
    const failed: string[] = [];
    for (const name of blocks()) {
      const db = openDatabase(storeWith(name), 1);
      await db.start();
      const report = await db.repair().catch((error: unknown) => String(error));
      if (typeof report === 'string') failed.push(`${name}: ${report}`);
      await db.stop();
    }
    expect(failed).toEqual([]);
  });
});
