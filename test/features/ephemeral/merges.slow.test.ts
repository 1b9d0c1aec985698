/** Who merges where every instance lives as long as a request, and how many commits wait meanwhile. */
import { beforeEach, describe, expect, it } from 'vitest';
import { people } from '../protocol/nodes.ts';
import { after, requestLost } from '../protocol/scripted-driver.ts';
import { mostReadToOpen, RequestNodes } from './requests.ts';

let nodes: RequestNodes;

beforeEach(() => {
  nodes = new RequestNodes();
});

async function pending(): Promise<number> {
  const { appliedSeq } = await nodes.block0();
  const { entries } = await nodes.store.list('db/committed/');
  return entries.length - appliedSeq;
}

async function expectRows(ids: number): Promise<void> {
  const { db } = nodes.ephemeral();
  await nodes.run(db.start());
  expect(await nodes.run(db.query(people).count())).toBe(ids);
  expect(await nodes.run(db.verify())).toMatchObject({ ok: true, findings: [] });
  await nodes.run(db.stop());
}

describe('requests one after the other', () => {
  it('merge with every eighth commit', async () => {
    const waited: number[] = [];
    for (let id = 1; id <= 20; id++) {
      await nodes.run(nodes.upsert(id));
      waited.push(await pending());
    }
    expect(waited).toEqual([1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4]);
    await expectRows(20);
  });

  it('merge with every eighth commit of a load, too', async () => {
    const waited: number[] = [];
    for (let id = 1; id <= 10; id++) {
      const { db } = nodes.ephemeral();
      await nodes.run(db.start());
      await nodes.run(db.load(people, [{ id, name: `row ${id}` }]));
      await nodes.run(db.stop());
      waited.push(await pending());
    }
    expect(waited).toEqual([1, 2, 3, 4, 5, 6, 7, 0, 1, 2]);
    await expectRows(10);
  });

  it('merge as often as mergePolicy says', async () => {
    for (const [minCommits, most] of [
      [1, 0],
      [2, 0],
      [3, 1],
      [100, 49],
    ] as const) {
      nodes = new RequestNodes();
      const waited: number[] = [];
      for (let id = 1; id <= 110; id++) {
        await nodes.run(nodes.upsert(id, { mergePolicy: { minCommits } }));
        waited.push(await pending());
      }
      expect([minCommits, Math.max(...waited)]).toEqual([minCommits, most]);
    }
  });

  it('merge what other instances have left', async () => {
    const writer = await nodes.start(0);
    for (let id = 1; id <= 30; id++) await nodes.run(nodes.insert(writer, id));
    expect(await pending()).toBe(30);
    await nodes.run(nodes.upsert(31));
    expect(await pending()).toBe(1);
    await expectRows(31);
  });
});

describe('requests at once', () => {
  it('commit each once, open with nineteen reads at most, and waste no merge', async () => {
    const count = 150;
    await nodes.run(nodes.upsert(0));
    const lines: string[][] = [];
    let next = 1;
    const client = async (): Promise<void> => {
      while (next < count) lines.push(await nodes.upsert(next++, {}, 40));
    };
    await nodes.run(Promise.all(Array.from({ length: 50 }, client)));
    expect(lines).toHaveLength(count - 1);
    expect(Math.max(...lines.map(mostReadToOpen))).toBeLessThanOrEqual(19);
    expect(await pending()).toBeLessThanOrEqual(16);
    expect((await nodes.store.list('db/committed/')).entries).toHaveLength(count);
    expect(lines.flat().filter((line) => line.startsWith('put block0 lost'))).toEqual([]);
    await expectRows(count);
  });
});

describe('an instance that should have merged and ended too early', () => {
  it('is replaced by the fourth commit after it', async () => {
    for (let id = 1; id <= 7; id++) await nodes.run(nodes.upsert(id));
    const gone = nodes.ephemeral();
    await nodes.run(gone.db.start());
    gone.driver.onPut(/^block0/, requestLost, Infinity);
    gone.driver.onGet(/^data/, requestLost, Infinity);
    const batch = gone.db.batch();
    void batch.upsert(people, { id: 8, name: 'row 8', age: 8 });
    await nodes.run(batch.flush());
    expect(await pending()).toBe(8);
    for (let id = 9; id <= 11; id++) await nodes.run(nodes.upsert(id));
    expect(await pending()).toBe(11);
    await nodes.run(nodes.upsert(12));
    expect(await pending()).toBe(0);
    await expectRows(12);
  });
});

describe('a log that is full', () => {
  /** Sixteen commits that wait, since none of their writers could merge. */
  async function fill(): Promise<void> {
    const writer = await nodes.start(0);
    for (let id = 1; id <= 16; id++) await nodes.run(nodes.insert(writer, id));
  }

  it('is merged before the next commit', async () => {
    await fill();
    const lines = await nodes.run(nodes.upsert(17));
    const merged = lines.findIndex((line) => line.startsWith('put block0 written'));
    expect(merged).toBeGreaterThan(0);
    expect(lines.findIndex((line) => line.startsWith('put committed'))).toBeGreaterThan(merged);
    await expectRows(17);
  });

  it('is merged before a commit that has lost its slot goes on', async () => {
    const writer = await nodes.start(0);
    for (let id = 1; id <= 15; id++) await nodes.run(nodes.insert(writer, id));
    const request = nodes.ephemeral();
    await nodes.run(request.db.start());
    request.driver.onPut(
      /^committed/,
      after(() => nodes.insert(writer, 16)),
    );
    const batch = request.db.batch();
    void batch.upsert(people, { id: 17, name: 'row 17', age: 17 });
    await nodes.run(batch.flush());
    const puts = request.driver.takeLines().filter((line) => /^put (committed|block0)/.test(line));
    expect(puts).toEqual(['put committed/16 lost', 'put block0 written', 'put committed/17 written']);
    await expectRows(17);
  });

  it('takes commits all the same while merging fails', async () => {
    await fill();
    const request = nodes.ephemeral();
    await nodes.run(request.db.start());
    request.driver.onPut(/^block0/, () => Promise.reject(new Error('broken')), Infinity);
    const batch = request.db.batch();
    void batch.upsert(people, { id: 17, name: 'row 17', age: 17 });
    await nodes.run(batch.flush());
    expect(await pending()).toBe(17);
    request.driver.heal();
    await expectRows(17);
  });
});
