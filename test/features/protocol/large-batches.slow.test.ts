/** Batches that do not fit in one commit: staged, sorted runs that a small commit names. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { Nodes, prefix } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { after, answerLost } from './scripted-driver.ts';

const wide = {
  name: 'wide',
  version: 1,
  fields: { id: { typeId: Types.int32 }, group: { typeId: Types.uint16 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['group'],
} as const;

const count = 60_000;

function textOf(id: number): string {
  return `${id} ${'x'.repeat(140 + (id % 40))}`;
}

async function start(nodes: Nodes, nodeId: number): Promise<TestNode> {
  const node = nodes.make(nodeId);
  node.db.registerSchema(wide);
  await nodes.run(node.db.start());
  node.driver.takeLines();
  return node;
}

/** More than 8 MiB, in no order. */
function largeBatch({ db }: TestNode): ReturnType<TestNode['db']['batch']> {
  const batch = db.batch();
  for (let i = 0; i < count; i++) {
    const id = (i * 7919) % count;
    void batch.insert(wide, { id, group: id % 1000, text: textOf(id) });
  }
  return batch;
}

async function expectAll(nodes: Nodes, { db }: TestNode): Promise<void> {
  for (let id = 0; id < count; id += 997) {
    expect(await nodes.run(db.get(wide, id))).toEqual({ id, group: id % 1000, text: textOf(id) });
  }
  expect(await nodes.run(db.get(wide, count))).toBeUndefined();
}

describe('a batch of more than 8 MiB', () => {
  it('is uploaded as staged runs first, and seen before and after it is merged', async () => {
    const nodes = new Nodes();
    const a = await start(nodes, 0);
    const b = await start(nodes, 1);
    // Merging begins by itself after such a flush: not yet.
    a.driver.onPut(/^data/, () => Promise.reject(new Error('not now')), 1);
    await nodes.run(largeBatch(a).flush());
    const puts = a.driver.lines.filter((line) => line.startsWith('put'));
    const commitAt = puts.indexOf('put committed/1 written');
    expect(commitAt).toBeGreaterThan(0);
    expect(puts.slice(0, commitAt).every((line) => /^put staged\/[0-9a-f-]+ written$/.test(line))).toBe(true);
    expect(a.driver.bodies.find(({ key }) => key === 'committed/1')?.body.length).toBeLessThan(100_000);
    expect((await nodes.block0()).appliedSeq).toBe(0);
    await nodes.run(b.db.refresh());
    await expectAll(nodes, a);
    await expectAll(nodes, b);
    const later = b.db.batch();
    void later.update(wide, { id: 5, text: 'changed' });
    void later.delete(wide, 6);
    await nodes.run(later.flush());
    expect(await nodes.run(b.db.get(wide, 5))).toEqual({ id: 5, group: 5, text: 'changed' });
    expect(await nodes.run(b.db.get(wide, 6))).toBeUndefined();
    await nodes.run(b.db.checkpoint());
    expect(await nodes.run(b.db.get(wide, 5))).toEqual({ id: 5, group: 5, text: 'changed' });
    const report = await nodes.run(b.db.verify());
    expect(report).toMatchObject({ ok: true, findings: [], pendingCommits: 0 });
    expect(report.tables[0]).toMatchObject({ rows: count - 1, indexes: [{ name: 'group', entries: count - 1 }] });
    const c = await start(nodes, 2);
    for (let id = 7; id < count; id += 997) expect((await nodes.run(c.db.get(wide, id)))?.text).toBe(textOf(id));
  });

  it('is merged soon by itself, since reading through it is slow', async () => {
    const nodes = new Nodes();
    const a = await start(nodes, 0);
    await nodes.run(largeBatch(a).flush());
    await nodes.run(a.db.stop());
    expect((await nodes.block0()).appliedSeq).toBe(1);
  });

  it('that loses its slot is validated and staged again; an answer that was lost costs nothing', async () => {
    const nodes = new Nodes();
    const a = await start(nodes, 0);
    const b = await start(nodes, 1);
    a.driver.onPut(
      /^committed\/1$/,
      after(async () => {
        const batch = b.db.batch();
        void batch.upsert(wide, { id: count + 1, text: 'first' });
        await batch.flush();
      }),
    );
    a.driver.onPut(/^committed\/2$/, answerLost);
    await nodes.run(largeBatch(a).flush());
    await nodes.run(a.db.checkpoint());
    expect(await nodes.run(a.db.verify())).toMatchObject({ ok: true });
    expect((await nodes.run(a.db.get(wide, count + 1)))?.text).toBe('first');
    expect((await nodes.block0()).tables[0]?.versions[0]?.root?.count).toBe(count + 1);
  });

  it('is rejected as a whole for one duplicate', async () => {
    const nodes = new Nodes();
    const a = await start(nodes, 0);
    const first = a.db.batch();
    void first.insert(wide, { id: count - 1, text: 'here before' });
    await nodes.run(first.flush());
    const batch = largeBatch(a);
    expect(await nodes.failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY', primaryKey: count - 1 });
    expect(batch.size).toBe(count);
    expect(await nodes.run(a.db.get(wide, 0))).toBeUndefined();
  });

  it('whose staged runs are gone is damage that is named', async () => {
    const nodes = new Nodes();
    const a = await start(nodes, 0);
    a.driver.onPut(/^data/, () => Promise.reject(new Error('not now')), 1);
    await nodes.run(largeBatch(a).flush());
    const staged = (await nodes.keys()).filter((key) => key.startsWith('staged/'));
    expect(staged.length).toBeGreaterThan(0);
    await nodes.store.delete(staged.map((key) => `${prefix}/${key}`));
    const b = await start(nodes, 1);
    const error = await nodes.failure(b.db.get(wide, 5));
    expect(error).toMatchObject({ code: 'CORRUPTION' });
    expect(staged).toContain((error as Error & { key: string }).key);
  });
});
