/** A batch of more than 8 MiB, with updates and deletions, through staged runs, until it is merged and read again. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { newFolder } from '../values/driver-under-test.ts';
import { column, failure, flushed, openDatabase, prefix } from '../values/open-database.ts';
import type { AnyQuery } from '../values/open-database.ts';
import { GatedDriver } from './gated-driver.ts';

const wide = defineSchema({
  name: 'wide',
  version: 1,
  fields: { id: { typeId: Types.int32 }, group: { typeId: Types.uint16 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['group'],
});

const count = 60_000;
const groups = 500;

interface Model {
  readonly group: number | null;
  readonly text: string | null;
}

function textOf(id: number): string {
  return `${id} ${'x'.repeat(140 + (id % 40))}`;
}

/** What is stored before: every fourth row, some of which the large batch changes. */
async function fill(db: Database): Promise<Map<number, Model>> {
  const model = new Map<number, Model>();
  await flushed(db, (batch) => {
    for (let id = 0; id < count; id += 4) {
      const row = { group: 1000, text: 'before' };
      void batch.insert(wide, { id, ...row });
      model.set(id, row);
    }
  });
  await db.checkpoint();
  return model;
}

/** Inserts, updates of stored rows and of its own, replacements and deletions, in no order. */
function change(batch: ReturnType<Database['batch']>, model: Map<number, Model>): void {
  for (let i = 0; i < count; i++) {
    const id = (i * 7919) % count;
    const row = { group: id % groups, text: textOf(id) };
    if (id % 4 !== 0) {
      void batch.insert(wide, { id, ...row });
      model.set(id, row);
    } else if (id % 12 === 0) {
      void batch.delete(wide, id);
      model.delete(id);
    } else if (id % 12 === 4) {
      void batch.update(wide, { id, text: row.text });
      model.set(id, { group: 1000, text: row.text });
    } else {
      void batch.upsert(wide, { id, group: row.group });
      model.set(id, { group: row.group, text: null });
    }
  }
  for (let id = 1; id < count; id += 400) {
    void batch.update(wide, { id, group: 2000 });
    model.set(id, { group: 2000, text: textOf(id) });
    void batch.delete(wide, id + 1);
    model.delete(id + 1);
  }
}

async function check(query: () => AnyQuery, model: ReadonlyMap<number, Model>): Promise<void> {
  expect(await query().count()).toBe(model.size);
  for (const group of [0, 7, 8, 499, 1000, 2000]) {
    const expected = [...model].filter(([, row]) => row.group === group).map(([id]) => id);
    const found = await query().where('group', '=', group).execute();
    expect(column(found, 'id')).toEqual(expected.toSorted((a, b) => a - b));
    expect(await query().where('group', '=', group).count()).toBe(expected.length);
  }
  for (let id = 0; id < count; id += 1009) {
    const row = model.get(id);
    expect(await query().where('id', '=', id).first()).toEqual(row === undefined ? undefined : { id, ...row });
  }
  const firsts = [...model.keys()].toSorted((a, b) => a - b);
  expect(column(await query().limit(30).offset(5000).execute(), 'id')).toEqual(firsts.slice(5000, 5030));
  expect(column(await query().orderBy('id', 'desc').limit(30).execute(), 'id')).toEqual(
    firsts.toReversed().slice(0, 30),
  );
  const highest = await query().orderBy('group', 'desc').limit(200).execute();
  expect(
    highest.every((row) => row['group'] === (row === highest.at(-1) ? row['group'] : 2000) || row['group'] === 1000),
  ).toBe(true);
}

describe.each<[string, () => StorageDriver]>([
  ['MemoryDriver', () => new MemoryDriver()],
  ['FileDriver', () => new FileDriver({ path: newFolder(), durability: 'none' })],
])('a batch of more than 8 MiB on %s', (_, makeDriver) => {
  it('is one commit: in the overlay, after the flush, merged, reopened and verified', async () => {
    const driver = makeDriver();
    const db = await openDatabase([wide], driver);
    const model = await fill(db);
    const batch = db.batch();
    change(batch, model);
    await check(() => db.query('wide').overlay(batch), model);
    await batch.flush();
    expect((await driver.list(`${prefix}/staged/`)).entries.length).toBeGreaterThan(0);
    await check(() => db.query('wide'), model);
    await db.checkpoint();
    await check(() => db.query('wide'), model);
    expect(await db.verify()).toMatchObject({ ok: true, findings: [] });
    await db.stop();
    const again = await openDatabase([wide], driver, { nodeId: 1 });
    await check(() => again.query('wide'), model);
  });
});

describe('a batch of more than 8 MiB', () => {
  it('with one duplicate writes nothing that can be seen, and is flushed after a repair', async () => {
    const driver = new GatedDriver(new MemoryDriver());
    const db = await openDatabase([wide], driver);
    const model = await fill(db);
    const batch = db.batch();
    change(batch, model);
    void batch.insert(wide, { id: -1, text: 'last' });
    await flushed(db, (other) => void other.insert(wide, { id: -1, text: 'first' }));
    const commits = driver.puts.filter((key) => key.includes('/committed/')).length;
    expect(await failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY', primaryKey: -1 });
    expect(driver.puts.filter((key) => key.includes('/committed/'))).toHaveLength(commits);
    expect(await db.query(wide).count()).toBe(count / 4 + 1);
    await flushed(db, (other) => void other.delete(wide, -1));
    await batch.flush();
    model.set(-1, { group: null, text: 'last' });
    expect(await db.query(wide).count()).toBe(model.size);
    // The runs come first, and the commit that names them last.
    const large = driver.puts.findLastIndex((key) => key.includes('/committed/'));
    expect(driver.puts.slice(0, large).at(-1)).toContain('/staged/');
  });
});
