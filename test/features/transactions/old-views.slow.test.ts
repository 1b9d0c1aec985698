/** Transactions whose view is left behind: by merges, by trimming, by garbage collection, by more than they can follow. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import { Cluster, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { caught, Nodes, people } from '../protocol/nodes.ts';
import { after } from '../protocol/scripted-driver.ts';

describe('commits that were merged meanwhile', () => {
  let nodes: Nodes;

  beforeEach(() => {
    nodes = new Nodes();
  });

  /** How often a transaction is run that reads row 1, while `meanwhile` happens the first time. */
  async function attemptsOf(
    meanwhile: (a: ReturnType<typeof nodes.make>, b: ReturnType<typeof nodes.make>) => Promise<void>,
  ): Promise<number> {
    const a = await nodes.start(0);
    const b = await nodes.start(1);
    await nodes.run(nodes.insert(a, 1, 'first', 10));
    await nodes.run(b.db.refresh());
    let attempts = 0;
    await nodes.run(
      a.db.transaction(async (tx) => {
        attempts++;
        const row = await tx.get(people, 1);
        await tx.query(people).where('age', '=', 11).count();
        if (attempts === 1) await meanwhile(a, b);
        await tx.insert(people, { id: 60, name: row?.name ?? 'none' });
      }),
    );
    const [name, result] = await nodes.names(a, [1, 60]);
    expect(result).toBe(name);
    expect(await nodes.run(a.db.verify())).toMatchObject({ ok: true });
    return attempts;
  }

  it('are conflicts if they change rows that were read', async () => {
    const attempts = await attemptsOf(async (a, b) => {
      await b.db.transaction((tx) => tx.update(people, { id: 1, name: 'changed' }));
      await a.db.refresh();
      await a.db.checkpoint();
    });
    expect(attempts).toBe(2);
  });

  it('are none if they do not', async () => {
    const attempts = await attemptsOf(async (a, b) => {
      await nodes.insert(b, 2, 'another', 20);
      await a.db.refresh();
      await b.db.checkpoint();
      await nodes.insert(b, 3, 'another', 20);
      await a.db.refresh();
      await a.db.checkpoint();
      expect(a.db.stats().log).toMatchObject({ tail: 3, appliedSeq: 3 });
    });
    expect(attempts).toBe(1);
  });

  it('are none if they do not, also where they are read after they were merged', async () => {
    const attempts = await attemptsOf(async (a, b) => {
      await nodes.insert(b, 2, 'another', 20);
      await nodes.insert(b, 3, 'another', 20);
      await b.db.checkpoint();
      await a.db.refresh();
      expect(a.db.stats().log).toMatchObject({ tail: 3, appliedSeq: 3 });
    });
    expect(attempts).toBe(1);
  });

  it('are conflicts if they change rows that were read, even if they are read after their merge', async () => {
    const attempts = await attemptsOf(async (a, b) => {
      await nodes.insert(b, 2, 'another', 20);
      await b.db.transaction((tx) => tx.update(people, { id: 1, name: 'changed' }));
      await b.db.checkpoint();
      await a.db.refresh();
      expect(a.db.stats().log).toMatchObject({ tail: 3, appliedSeq: 3 });
    });
    expect(attempts).toBe(2);
  });

  it('and trimmed, so that nobody knows their changes, are conflicts', async () => {
    const attempts = await attemptsOf(async (a, b) => {
      await nodes.insert(b, 2, 'another', 20);
      await b.db.checkpoint();
      await nodes.trimLog();
      await nodes.insert(b, 3, 'another', 20);
      await a.db.refresh();
      expect(a.db.stats().log).toMatchObject({ tail: 3 });
    });
    expect(attempts).toBe(2);
  });

  it('are conflicts where there is more of them than is worth keeping', async () => {
    const text = 'x'.repeat(3 * 1024 * 1024);
    const load = async (b: ReturnType<typeof nodes.make>, from: number, count: number): Promise<void> => {
      for (let id = from; id < from + count; id++) await nodes.insert(b, id, text, 20);
    };
    const few = attemptsOf(async (a, b) => {
      await load(b, 100, 5);
      await a.db.refresh();
    });
    expect(await few).toBe(1);
    nodes = new Nodes();
    const many = attemptsOf(async (a, b) => {
      await load(b, 100, 6);
      await a.db.refresh();
    });
    expect(await many).toBe(2);
  });

  it('and were won in a slot that is dead by now are looked for in the merged commits', async () => {
    const a = await nodes.start(0);
    const b = await nodes.start(1);
    await nodes.run(nodes.insert(a, 1, 'first', 10));
    await nodes.run(b.db.refresh());
    // The put lands in a slot that was used, merged and trimmed while it was on its way.
    a.driver.onPut(
      /^committed\/2$/,
      after(async () => {
        await b.db.transaction((tx) => tx.update(people, { id: 1, name: 'changed' }));
        await b.db.checkpoint();
        await nodes.trimLog();
      }),
    );
    const seen: unknown[] = [];
    await nodes.run(
      a.db.transaction(async (tx) => {
        seen.push((await tx.get(people, 1))?.name);
        await tx.insert(people, { id: 60, name: 'last' });
      }),
    );
    expect(seen).toEqual(['first', 'changed']);
  });
});

describe('commits with staged rows', () => {
  it('are conflicts with all reads of their tables, and with nothing else', async () => {
    const nodes = new Nodes();
    const a = await nodes.start(0);
    const b = await nodes.start(1);
    const others = { name: 'others', version: 1, fields: people.fields, primaryKey: 'id' } as const;
    for (const { db } of [a, b]) db.registerSchema(others);
    await nodes.run(nodes.insert(a, 1, 'first', 10));
    await nodes.run(b.db.refresh());
    const load = async (): Promise<void> => {
      const batch = b.db.batch();
      for (let id = 100; id < 104; id++) void batch.insert(others, { id, name: `${id}`.repeat(1_000_000) });
      await batch.flush();
    };
    const attemptsOf = async (read: (tx: Transaction) => Promise<unknown>): Promise<number> => {
      let attempts = 0;
      const running = a.db.transaction(async (tx) => {
        await read(tx);
        if (++attempts === 1) await load();
        await tx.upsert(people, { id: 60 });
      });
      await nodes.run(running);
      const emptying = b.db.batch();
      await nodes.run(emptying.deleteWhere(b.db.query(others)));
      await nodes.run(emptying.flush());
      await nodes.run(b.db.checkpoint());
      await nodes.run(a.db.refresh());
      return attempts;
    };
    expect(await attemptsOf((tx) => tx.get(people, 1))).toBe(1);
    expect(await attemptsOf((tx) => tx.get(others, 1))).toBe(2);
  });
});

describe('a view whose blocks were collected', () => {
  let cluster: Cluster;
  let a: ClusterNode;
  let b: ClusterNode;

  beforeEach(async () => {
    cluster = new Cluster();
    b = await cluster.withRows(200);
    // It starts with nothing in its cache.
    a = await cluster.start(1);
  });

  /** Changes every row, and collects what was before. */
  async function replaceAll(text: string): Promise<void> {
    await cluster.put(b, range(0, 200), text);
    await b.db.checkpoint();
    await b.db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
  }

  it('ends the attempt, and the next one is on a newer view', async () => {
    const texts: unknown[] = [];
    await cluster.run(
      a.db.transaction(async (tx) => {
        if (texts.length === 0) {
          texts.push((await tx.get(items, 1))?.text);
          await replaceAll('second');
        } else texts.push((await tx.get(items, 1))?.text);
        texts.push((await tx.get(items, 150))?.text);
        await tx.upsert(items, { id: 500, text: 'done' });
      }),
    );
    expect(texts).toEqual(['first 1', 'second 1', 'second 150']);
    expect(a.db.stats().transactions).toEqual({ committed: 1, conflicts: 1, failed: 0 });
  });

  it.each(['first', 'none'])(
    'ends it also if the function goes on as if nothing had happened, and %s writes',
    async (w) => {
      let attempts = 0;
      const failures: string[] = [];
      const found = await cluster.run(
        a.db.transaction(async (tx) => {
          attempts++;
          if (attempts === 1) await replaceAll('second');
          if (w === 'first' && attempts === 1) await tx.upsert(items, { id: 500, text: 'wrong' });
          try {
            return (await tx.get(items, 150))?.text;
          } catch (error) {
            failures.push((error as { code: string }).code);
            return 'swallowed';
          }
        }),
      );
      expect([found, attempts]).toEqual(['second 150', 2]);
      expect(failures).toEqual(['TRANSACTION_CONFLICT']);
      expect(await cluster.run(a.db.get(items, 500))).toBeUndefined();
    },
  );

  it('ends it even if the function catches the error', async () => {
    let attempts = 0;
    const text = await cluster.run(
      a.db.transaction(async (tx) => {
        if (++attempts === 1) await replaceAll('second');
        try {
          return (await tx.get(items, 150))?.text;
        } catch {
          throw new Error('something else');
        }
      }),
    );
    expect([text, attempts]).toEqual(['second 150', 2]);
  });

  it('ends it in the middle of a loop, too', async () => {
    let attempts = 0;
    const texts = await cluster.run(
      a.db.transaction(async (tx) => {
        attempts++;
        const found: (string | null)[] = [];
        for await (const { text } of tx.query(items)) {
          if (found.length === 0 && attempts === 1) await replaceAll('second');
          found.push(text);
        }
        return found;
      }),
    );
    expect(attempts).toBe(2);
    expect(texts).toEqual(range(0, 200).map((id) => `second ${id}`));
  });

  it.each(['before', 'after'])(
    'ends it if the earlier rows are not known any more: seen %s it is gone',
    async (seen) => {
      let attempts = 0;
      await cluster.run(
        a.db.transaction(async (tx) => {
          // By the index alone: no row is in memory.
          const count = await tx.query(items).where('group', '=', 77).count();
          if (++attempts === 1) {
            await cluster.put(b, range(0, 200), 'second');
            if (seen === 'before') await a.db.refresh();
            await b.db.checkpoint();
            await b.db.gc({ loopGraceMs: 0, graceMs: 0 });
            if (seen === 'after') await a.db.refresh();
          }
          await tx.upsert(items, { id: 500, text: `${count}`, group: 1 });
        }),
      );
      expect(attempts).toBe(2);
      expect(a.db.stats().transactions).toEqual({ committed: 1, conflicts: 1, failed: 0 });
      expect(await cluster.run(a.db.verify())).toMatchObject({ ok: true });
    },
  );

  it.each([
    ['none of those that match', 77, range(0, 200), 1],
    ['one that matches, and no other', 9, [189], 2],
    ['one that matches, among many that do not', 0, range(0, 200), 2],
  ])('is looked at for how rows were before, where it is still there: %s', async (_, group, ids, expected) => {
    const changed = ids.filter((id) => id % 10 !== group || id === ids.at(-1) || id === 100);
    let attempts = 0;
    await cluster.run(
      a.db.transaction(async (tx) => {
        // By the index alone: no row is in memory.
        const count = await tx.query(items).where('group', '=', group).count();
        if (++attempts === 1) {
          await cluster.flush(b, (batch) => {
            for (const id of changed) void batch.upsert(items, { id, text: 'second', group: 50 });
          });
          await b.db.checkpoint();
        }
        await tx.upsert(items, { id: 500, text: `${count}`, group: 1 });
      }),
    );
    expect(attempts).toBe(expected);
  });

  it('is damage where nothing was collected past it', async () => {
    for (const name of await cluster.namesIn('data')) await cluster.remove(name);
    const reading = cluster.run(caught(a.db.transaction((tx) => tx.get(items, 150))));
    expect(await reading).toMatchObject({ code: 'CORRUPTION' });
  });
});
