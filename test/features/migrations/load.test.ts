/** Migrations under many writes: pending commits count with both rows, and the migration ends. */
import { describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { Fleet, intervalMs } from './fleet.ts';
import type { Member } from './fleet.ts';
import { users1, users2 } from './versions.ts';

/** Nothing is merged by itself. */
const lazy = { mergePolicy: { minCommits: 2000, maxWaitMs: 3_600_000 } } as const;
/** The new version has what the old one has, so that both rows of a pair are of the same size. */
const alike = { ...users1, version: 2, fields: { ...users1.fields, level: users2.fields.level } } as const;

function rowsOf(from: number, count: number, text: string): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, i) => ({ id: from + i, name: text, age: 1, old: text }));
}

function pendingBytes({ db }: Member): number {
  return db.stats().log?.pendingBytes ?? 0;
}

describe('pairs of rows that wait to be merged', () => {
  it('count with both rows, at every reader', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users1], lazy);
    const two = await fleet.open(2, [alike], lazy);
    const text = 'x'.repeat(2000);
    await fleet.write(one, 'insert', rowsOf(0, 20, text));
    const single = pendingBytes(one);
    expect(single).toBeGreaterThan(20 * 2 * 2000);
    await fleet.run(two.db.refresh());
    expect(pendingBytes(two)).toBe(single);
    await fleet.write(two, 'insert', rowsOf(100, 20, text));
    await fleet.run(one.db.refresh());
    for (const member of [one, two]) {
      expect(pendingBytes(member) - single).toBeGreaterThan(1.9 * single);
      expect(pendingBytes(member) - single).toBeLessThan(2.1 * single);
    }
    await fleet.run(one.db.checkpoint());
    await fleet.run(two.db.refresh());
    expect([pendingBytes(one), pendingBytes(two)]).toEqual([0, 0]);
  });

  it('are merged as soon as both together are too much to hold', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users1], lazy);
    await fleet.write(one, 'insert', rowsOf(0, 1, 'x'));
    await fleet.run(one.db.checkpoint());
    await fleet.run(one.db.stop());
    // It merges from 128 KiB on.
    const two = await fleet.open(2, [alike], { ...lazy, maxMemoryBytes: 1024 * 1024 });
    const text = 'x'.repeat(10_000);
    let most = 0;
    for (let i = 1; i <= 12; i++) {
      await fleet.write(two, 'insert', rowsOf(i, 1, text));
      most = Math.max(most, pendingBytes(two));
      await fleet.advance(5 * intervalMs);
    }
    // Of 12 pairs of 40 KB each no more than four were pending.
    expect(most).toBeLessThan(200 * 1024);
    expect(two.db.stats().merges?.merges).toBeGreaterThan(1);
  });
});

describe('a migration under load', () => {
  it('ends though the old version changes more rows than it may make', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', rowsOf(0, 100, 'first'));
    await fleet.run(one.db.checkpoint());
    const two = await fleet.open(2, [users2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 20, keepOld: true }));
    const states = new Set<string>();
    for (let step = 0; step < 120 && !states.has('switched'); step++) {
      // 40 rows a second, others every time.
      await fleet.write(one, 'upsert', rowsOf((step * 10) % 100, 10, `step ${step}`));
      await fleet.run(one.db.checkpoint());
      await fleet.advance(intervalMs / 4);
      states.add((await fleet.status(two)).state);
    }
    expect(states).toContain('switched');
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('goes on soon after a chunk that took very long', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', rowsOf(0, 200, 'first'));
    await fleet.run(one.db.checkpoint());
    await fleet.run(one.db.stop());
    const two = await fleet.open(2, [users2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 8, keepOld: true }));
    await fleet.advance(3 * intervalMs);
    // As where the store answers nothing for a minute.
    const untilMs = two.environment.now() + 60_000;
    two.driver.onPut(
      /^data\//,
      async (pass) => {
        await sleep(two.environment, Math.max(0, untilMs - two.environment.now()));
        return pass();
      },
      Number.POSITIVE_INFINITY,
    );
    await fleet.advance(62_000);
    const { rowsDone } = await fleet.status(two);
    await fleet.advance(5 * intervalMs);
    expect((await fleet.status(two)).rowsDone).toBeGreaterThan(rowsDone + 20);
  });

  it('holds no more rows at a time than there is memory for', async () => {
    const fleet = new Fleet();
    // Few leaves: the rows are not made ahead, leaf by leaf.
    const one = await fleet.open(1, [users1], { blockSizeBytes: 65_536 });
    await fleet.write(one, 'insert', rowsOf(0, 200, 'x'.repeat(1000)));
    await fleet.run(one.db.checkpoint());
    await fleet.run(one.db.stop());
    // 32 KiB for a chunk's rows: some 30 of them.
    const two = await fleet.open(2, [users2], { maxMemoryBytes: 1024 * 1024, polling: 'onDemand' });
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 1_000_000, keepOld: true }));
    const before = two.db.stats().log?.generation ?? 0;
    await fleet.until(two, 'switched');
    const chunks = (two.db.stats().log?.generation ?? 0) - before;
    expect(chunks).toBeGreaterThanOrEqual(200 / 35);
    expect(chunks).toBeLessThanOrEqual(200 / 25);
  });
});
