import { describe, expect, it } from 'vitest';
import { TableDroppedError } from '../../../src/base/errors.ts';
import { Nodes, people } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { after, answerLost, hangs, requestLost } from '../protocol/scripted-driver.ts';

const slot4 = /^committed\/0*4$/;

async function threeRows(): Promise<{ nodes: Nodes; a: TestNode; b: TestNode }> {
  const nodes = new Nodes();
  const [a, b] = [await nodes.start(1), await nodes.start(2)];
  for (const id of [1, 2, 3]) await nodes.run(nodes.insert(a, id));
  await nodes.run(b.db.refresh());
  return { nodes, a, b };
}

async function ids(nodes: Nodes, { db }: TestNode): Promise<number[]> {
  await nodes.run(db.refresh());
  return (await nodes.run(db.query(people).execute())).map(({ id }) => id);
}

describe('a drop and a write that want the same slot', () => {
  it('refuses the write if the drop comes first', async () => {
    const { nodes, a, b } = await threeRows();
    b.driver.onPut(
      slot4,
      after(() => a.db.dropTable('people')),
    );
    const failure = await nodes.failure(nodes.insert(b, 4));
    expect(failure).toBeInstanceOf(TableDroppedError);
    expect(failure).toMatchObject({ position: 4 });
    expect(await nodes.hasSlot(5)).toBe(false);
    for (const node of [a, b]) expect(await ids(nodes, node)).toEqual([]);
  });

  it('drops the row too if the write comes first', async () => {
    const { nodes, a, b } = await threeRows();
    a.driver.onPut(
      slot4,
      after(() => nodes.insert(b, 4)),
    );
    expect(await nodes.run(a.db.dropTable('people'))).toBe(true);
    await nodes.run(a.db.checkpoint());
    expect((await nodes.block0()).dropped?.tables).toMatchObject([{ slot: 5 }]);
    for (const node of [a, b, await nodes.start(3)]) expect(await ids(nodes, node)).toEqual([]);
  });

  it('drops the table once if two drop it', async () => {
    const { nodes, a, b } = await threeRows();
    b.driver.onPut(
      slot4,
      after(() => a.db.dropTable('people')),
    );
    const failure = await nodes.failure(b.db.dropTable('people'));
    expect(failure).toMatchObject({ code: 'TABLE_NOT_FOUND' });
    expect(await nodes.hasSlot(5)).toBe(false);
  });

  it('does not drop a table that was created again meanwhile, if it was dropped before by another', async () => {
    const { nodes, a, b } = await threeRows();
    b.driver.onPut(
      slot4,
      after(async () => {
        await a.db.dropTable('people');
        a.db.registerSchema(people);
        await nodes.insert(a, 7);
      }),
    );
    // It names the table that it saw, not its successor.
    const failure = await nodes.failure(b.db.dropTable('people'));
    expect(failure).toMatchObject({ code: 'TABLE_NOT_FOUND' });
    expect(await ids(nodes, a)).toEqual([7]);
  });

  it.each([
    ['the drop first', true],
    ['the write first', false],
  ])('may be of one instance, in one commit: %s', async (_, dropFirst) => {
    const { nodes, a, b } = await threeRows();
    let written: unknown;
    const drop = (): Promise<unknown> => a.db.dropTable('people');
    const write = async (): Promise<void> => {
      written = await nodes.insert(a, 4).then(
        () => 'written',
        (error: unknown) => (error as TableDroppedError).code,
      );
    };
    const calls: Promise<unknown>[] = [];
    // Both wait for the commit that is under way, and share the next one.
    a.driver.onPut(
      slot4,
      after(async () => {
        for (const call of dropFirst ? [drop, write] : [write, drop]) {
          calls.push(call());
          for (let turn = 0; turn < 300; turn++) await Promise.resolve();
        }
      }),
    );
    await nodes.run(nodes.insert(a, 10));
    await nodes.run(Promise.all(calls));
    expect(await nodes.hasSlot(6)).toBe(false);
    expect(written).toBe(dropFirst ? 'TABLE_DROPPED' : 'written');
    await nodes.run(b.db.checkpoint());
    expect(await ids(nodes, a)).toEqual([]);
    expect((await nodes.run(b.db.verify({ deep: true }))).findings).toEqual([]);
  });
});

describe('a transaction', () => {
  it('that has read the table is made again when it is dropped, on the state without it', async () => {
    const { nodes, a, b } = await threeRows();
    const counts: number[] = [];
    b.db.registerSchema({ ...people, name: 'sums' });
    const run = b.db.transaction(async (tx) => {
      const count = await tx.query(people).count();
      counts.push(count);
      if (counts.length === 1) await a.db.dropTable('people');
      await tx.upsert('sums', { id: 1, name: 'count', age: count });
    });
    await nodes.run(run);
    expect(counts).toEqual([3, 0]);
    expect(await nodes.run(b.db.get('sums', 1))).toMatchObject({ age: 0 });
  });

  it('that has read another table is not', async () => {
    const { nodes, a, b } = await threeRows();
    b.db.registerSchema({ ...people, name: 'sums' });
    let attempts = 0;
    const run = b.db.transaction(async (tx) => {
      attempts++;
      await tx.get('sums', 1);
      await a.db.dropTable('people');
      await tx.upsert('sums', { id: 1, name: 'x', age: 1 });
    });
    await nodes.run(run);
    expect(attempts).toBe(1);
  });
});

describe('a drop whose answer is lost', () => {
  it.each([
    ['written', answerLost],
    ['not written', requestLost],
  ])('is made once: %s', async (_, script) => {
    const { nodes, a, b } = await threeRows();
    a.driver.onPut(slot4, script);
    expect(await nodes.run(a.db.dropTable('people'))).toBe(true);
    expect(await nodes.hasSlot(5)).toBe(false);
    expect(await ids(nodes, b)).toEqual([]);
  });

  it('leaves the table whole or gone, wherever the process ends', async () => {
    for (let requests = 0; ; requests++) {
      const { nodes, a, b } = await threeRows();
      await nodes.run(nodes.insert(b, 4));
      await nodes.run(b.db.checkpoint());
      await nodes.run(a.db.refresh());
      let left = requests;
      a.driver.onAll((pass) => (left-- > 0 ? pass() : hangs()));
      let ended = false;
      void a.db
        .dropTable('people')
        .then(() => a.db.checkpoint())
        .then(
          () => (ended = true),
          () => undefined,
        );
      await nodes.environment.advance(1000);
      const shown = await ids(nodes, b);
      expect([[1, 2, 3, 4], []]).toContainEqual(shown);
      await nodes.run(b.db.checkpoint());
      const fresh = await nodes.start(3);
      expect(await ids(nodes, fresh)).toEqual(shown);
      expect((await nodes.run(fresh.db.verify({ deep: true }))).findings).toEqual([]);
      if (!ended) continue;
      expect(shown).toEqual([]);
      expect(requests).toBeGreaterThan(4);
      break;
    }
  });
});
