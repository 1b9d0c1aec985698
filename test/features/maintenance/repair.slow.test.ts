/** The parts that `db.repair()` rebuilds, the parts that it only names, and that it loses nothing while others go on. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { RepairOptions, RepairReport } from '../../../src/index.ts';
import { sleep } from '../../../src/base/env.ts';
import { StorageError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/index.ts';
import { items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { after } from '../protocol/scripted-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { DamagedCluster, itemsIndex } from './damaged-cluster.ts';

const itemsTable = { table: 'items' };

let cluster: DamagedCluster;
let node: ClusterNode;

beforeEach(async () => {
  cluster = new DamagedCluster();
  node = await cluster.start(0);
  await cluster.run(cluster.put(node, range(0, 1000), 'first'));
  await cluster.run(node.db.checkpoint());
});

function repair(options: RepairOptions = {}, { db }: ClusterNode = node): Promise<RepairReport> {
  return cluster.run(db.repair(options));
}

function only<T>(values: readonly T[]): T {
  expect(values).toHaveLength(1);
  return values[0] as T;
}

/** Opened anew, the database is sound, and the index finds what a scan finds. */
async function expectSound(rows = 1000): Promise<void> {
  const fresh = await cluster.start(50);
  expect(await cluster.findings(fresh)).toEqual([]);
  expect(await cluster.checkIndex(fresh)).toBe(rows);
  await cluster.run(fresh.db.stop());
}

async function leafAt(position: number, place = itemsIndex as { table: string; index?: string }): Promise<string> {
  return (await cluster.leaves(place)).at(position) as string;
}

const damages: readonly (readonly [string, () => Promise<void>])[] = [
  ['a leaf is damaged', async () => cluster.damage(await leafAt(2))],
  ['a leaf is missing', async () => cluster.remove(await leafAt(0))],
  [
    'all leaves are missing',
    async () => {
      for (const leaf of await cluster.leaves(itemsIndex)) await cluster.remove(leaf);
    },
  ],
  [
    'a leaf holds another entry, under a right checksum',
    async () => cluster.reseal(await leafAt(3), (bytes) => (bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1)),
  ],
  [
    'one leaf lies in the place of another, under a right checksum',
    async () => {
      const [first, second] = [await cluster.bytes(await leafAt(1)), await leafAt(2)];
      if (first.length === (await cluster.bytes(second)).length)
        return cluster.reseal(second, (bytes) => bytes.set(first));
      return cluster.putObject(second, first);
    },
  ],
  ['Block 0 names no root', () => cluster.rewriteRoot(itemsIndex, () => null)],
  ['Block 0 gives a wrong count', () => cluster.rewriteRoot(itemsIndex, (root) => ({ ...root, count: 999 }))],
  [
    'Block 0 names a root that is not there',
    () => cluster.rewriteRoot(itemsIndex, (root) => ({ ...root, id: 'e'.repeat(16) })),
  ],
];

describe('an index', () => {
  it.each(damages)('is rebuilt if %s', async (_, damage) => {
    await damage();
    const before = await cluster.block0();
    expect((await cluster.findings(node)).length).toBeGreaterThan(0);
    expect(await repair()).toEqual({
      ok: true,
      repaired: [{ ...itemsIndex, entries: 1000 }],
      unrepairable: [],
    });
    const present = await cluster.block0();
    expect(present).toMatchObject({ generation: before.generation + 1, appliedSeq: before.appliedSeq });
    expect(await cluster.checkIndex(node)).toBe(1000);
    await expectSound();
    // There is nothing left to do, and what was replaced is garbage.
    expect(await repair()).toEqual({ ok: true, repaired: [], unrepairable: [] });
    expect((await cluster.block0()).generation).toBe(present.generation);
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectSound();
  });

  it('that is right is left alone', async () => {
    const { revision } = await cluster.block0();
    expect(await repair()).toEqual({ ok: true, repaired: [], unrepairable: [] });
    expect(await cluster.block0()).toMatchObject({ revision });
  });

  it('is reported, and left alone, by a dry run', async () => {
    await cluster.damage(await leafAt(2));
    const names = await cluster.names();
    const { revision } = await cluster.block0();
    const report = await repair({ dryRun: true });
    expect(report).toEqual({ ok: false, repaired: [{ ...itemsIndex, entries: 1000 }], unrepairable: [] });
    expect(await cluster.names()).toEqual(names);
    expect(await cluster.block0()).toMatchObject({ revision });
  });

  it('can be asked for alone', async () => {
    await cluster.storeBlobs(node, { 5: 'five' });
    await cluster.run(node.db.checkpoint());
    await cluster.damage(await leafAt(2));
    expect(await repair({ table: '_blobs' })).toMatchObject({ ok: true, repaired: [] });
    expect(await repair({ table: 'items', index: 'group', dryRun: true })).toMatchObject({ repaired: [itemsIndex] });
    expect(await repair({ table: 'items' })).toMatchObject({ ok: true, repaired: [itemsIndex] });
    await expectSound();
  });

  it('is rebuilt, and others of its table are left alone', async () => {
    const pairs = { ...items, name: 'pairs', fields: { ...items.fields, id: { typeId: Types.varchar } } } as const;
    const schema = { ...pairs, indexes: ['group', 'text'] } as const;
    node.db.registerSchema(schema);
    await cluster.run(
      cluster.flush(node, (batch) => {
        for (const id of range(0, 500))
          void batch.insert(schema, { id: `row ${id}`, group: id % 7, text: `${id % 11}` });
      }),
    );
    await cluster.run(node.db.checkpoint());
    const [group, text] = [
      { table: 'pairs', index: 'group' },
      { table: 'pairs', index: 'text' },
    ];
    await cluster.remove(await leafAt(1, group));
    const leaf = await leafAt(1, text);
    await cluster.damage(leaf);
    expect(await repair(group)).toEqual({ ok: true, repaired: [{ ...group, entries: 500 }], unrepairable: [] });
    expect(only(await cluster.findings(node))).toMatchObject({ name: leaf, ...text });
    expect(await repair()).toEqual({ ok: true, repaired: [{ ...text, entries: 500 }], unrepairable: [] });
    expect(await cluster.findings(node)).toEqual([]);
    expect(await cluster.run(node.db.query('pairs').where('text', '=', '3').count())).toBe(46);
    expect(await cluster.run(node.db.query('pairs').where('group', '=', 3).count())).toBe(71);
  });

  it('of many entries is made in rounds that fit in memory', async () => {
    const small = await cluster.start(3, { maxMemoryBytes: 1024 * 1024, blockSizeBytes: 4096 });
    await cluster.run(cluster.put(small, range(1000, 30_000), 'more'));
    await cluster.run(small.db.checkpoint());
    await cluster.damage(await leafAt(2));
    small.driver.takeLines();
    expect(await repair({}, small)).toMatchObject({ ok: true, repaired: [{ entries: 30_000 }] });
    // Each round writes anew what the one before it has written.
    const puts = small.driver.takeLines().filter((line) => line.startsWith('put indexes/'));
    expect(puts.length).toBeGreaterThan((await cluster.leaves(itemsIndex)).length * 1.5);
    await expectSound(30_000);
  });

  it('that keeps merges from going on is rebuilt without them, and they go on', async () => {
    await cluster.damage(await leafAt(0));
    const cold = await cluster.start(1);
    await cluster.run(
      cluster.flush(cold, (batch) => {
        for (const id of range(0, 200)) void batch.update(items, { id, group: 0 });
      }),
    );
    expect(await cluster.failure(cold.db.checkpoint())).toMatchObject({ code: 'CORRUPTION' });
    expect(await repair({}, cold)).toMatchObject({ ok: true, repaired: [{ entries: 1000 }] });
    // Queries see the pending commit over the new index, before and after it is merged.
    expect(await cluster.checkIndex(cold)).toBe(1000);
    expect((await cluster.block0()).appliedSeq).toBe(1);
    await cluster.run(cold.db.checkpoint());
    expect(await cluster.run(cold.db.query(items).where('group', '=', 0).count())).toBe(200 + 80);
    await expectSound();
  });

  it('stays as it was in states that are kept', async () => {
    const keeper = await cluster.start(1, { history: '1d' });
    const { generation } = await cluster.block0();
    const leaf = await leafAt(2);
    await cluster.remove(leaf);
    const first = await repair({}, keeper);
    // The state before it is history now, and shows the damage; it can be read as far as it could before.
    expect(first).toMatchObject({ ok: true, repaired: [itemsIndex] });
    const { ok, repaired, unrepairable } = await repair({}, keeper);
    expect([ok, repaired]).toEqual([false, []]);
    expect(unrepairable).toHaveLength(1);
    expect(unrepairable[0]).toMatchObject({ name: leaf, ...itemsIndex, generation });
    // Damaged here too, it is made anew, and there it is named.
    await cluster.damage(await leafAt(2));
    const third = await repair({}, keeper);
    expect(third).toMatchObject({ ok: false, repaired: [itemsIndex], unrepairable });
    const earlier = await cluster.run(node.db.at(generation));
    expect(await cluster.run(earlier.query(items).count())).toBe(1000);
    expect(await cluster.checkIndex(keeper)).toBe(1000);
  });
});

describe('damage that cannot be repaired', () => {
  it('are rows: an index is not rebuilt from the rest, and the losses are reported', async () => {
    const leaf = await leafAt(5, itemsTable);
    const indexLeaf = await leafAt(2);
    await cluster.damage(leaf);
    await cluster.remove(indexLeaf);
    const before = await cluster.block0();
    for (const dryRun of [true, false]) {
      const { ok, repaired, unrepairable } = await repair({ dryRun });
      expect([ok, repaired]).toEqual([false, []]);
      const of = (name: string): string[] =>
        unrepairable.filter((each) => each.name === name).map((each) => each.message);
      expect(of('indexes/items/group')).toEqual([
        'The index cannot be made anew from its table: some of its rows cannot be read',
      ]);
      expect(of(indexLeaf)).toHaveLength(1);
      const [how, lost] = of(leaf);
      expect(how).toContain('does not match its checksum');
      expect(lost).toMatch(/^(\d+) rows of table 'items' cannot be read, from primary key \d+ to before \d+\. Restore/);
      expect(lost).toContain('no earlier state that is kept shows them');
      const [, count, from, to] = /^(\d+) rows .* key (\d+) to before (\d+)/.exec(
        lost as string,
      ) as unknown as string[];
      expect(Number(to) - Number(from)).toBe(Number(count));
      // Just these: whoever has nothing in memory can read the ones on either side.
      const { db } = await cluster.start(dryRun ? 1 : 2);
      expect((await cluster.run(db.get(items, Number(from) - 1)))?.id).toBe(Number(from) - 1);
      expect(await cluster.failure(db.get(items, Number(from)))).toMatchObject({ code: 'CORRUPTION' });
      expect(await cluster.failure(db.get(items, Number(to) - 1))).toMatchObject({ code: 'CORRUPTION' });
      expect((await cluster.run(db.get(items, Number(to))))?.id).toBe(Number(to));
    }
    expect(await cluster.block0()).toEqual(before);
  });

  it('are all rows, where the root is lost', async () => {
    await cluster.rewriteRoot(itemsTable, (root) => ({ ...root, id: 'e'.repeat(16) }));
    const { unrepairable } = await repair();
    expect(unrepairable.map(({ message }) => message).join()).toContain(
      "1000 rows of table 'items' cannot be read, from the first to the last",
    );
  });

  it('are rows out of order: they would be in an index, and not be found', async () => {
    await cluster.remove(await leafAt(2));
    const [first, second] = [await leafAt(3, itemsTable), await leafAt(4, itemsTable)];
    const bytes = await cluster.bytes(first);
    expect((await cluster.bytes(second)).length).toBe(bytes.length);
    await cluster.reseal(second, (target) => target.set(bytes));
    const { repaired, unrepairable } = await repair();
    expect(repaired).toEqual([]);
    expect(unrepairable.some(({ name, message }) => name === 'indexes/items/group' && /anew/.test(message))).toBe(true);
  });

  it('are rows in order, and not where their separators say: they are not found either', async () => {
    const [, [inner]] = (await cluster.blocks(itemsTable)) as [string[], string[]];
    await cluster.reseal(inner as string, (bytes, block) => {
      const last = block.suffixEnd(2) - 1;
      bytes[last] = (bytes[last] as number) + 1;
    });
    const { repaired, unrepairable } = await repair();
    expect(repaired).toEqual([]);
    const why = unrepairable.filter(({ name }) => name === 'indexes/items/group').map(({ message }) => message);
    expect(why).toEqual([expect.stringContaining('Row 0 is not where the nodes above say')]);
  });

  it('are rows that an earlier state still has: it is named', async () => {
    const snapshot = await cluster.run(node.db.snapshot());
    await cluster.run(cluster.put(node, range(0, 1000), 'second'));
    await cluster.run(node.db.checkpoint());
    const leaf = await leafAt(5, itemsTable);
    await cluster.damage(leaf);
    const messages = async (): Promise<string> => {
      const { unrepairable } = await repair();
      return unrepairable
        .filter(({ name }) => name === leaf)
        .map(({ message }) => message)
        .join();
    };
    expect(await messages()).toMatch(
      new RegExp(`\\d+ rows of that range .* generation ${snapshot.generation}, with snapshot ${snapshot.id}`),
    );
    await cluster.run(snapshot.release());
    expect(await messages()).toContain('no earlier state');
  });

  it('are rows that several earlier states have: the newest is named', async () => {
    const snapshots = [await cluster.run(node.db.snapshot())];
    for (const text of ['second', 'third']) {
      await cluster.run(cluster.put(node, range(0, 1000), text));
      snapshots.push(await cluster.run(node.db.snapshot()));
    }
    await cluster.damage(await leafAt(5, itemsTable));
    const { unrepairable } = await repair();
    expect(unrepairable.map(({ message }) => message).join()).toContain(`with snapshot ${snapshots[1]?.id}`);
  });

  it('are rows that only history still has', async () => {
    const keeper = await cluster.start(1, { history: '1d' });
    const { generation } = await cluster.block0();
    await cluster.run(cluster.put(keeper, range(0, 1000), 'second'));
    await cluster.run(keeper.db.checkpoint());
    await cluster.remove(await leafAt(5, itemsTable));
    const { unrepairable } = await repair();
    expect(unrepairable.map(({ message }) => message).join()).toContain(
      `as they were in generation ${generation}, with db.at(${generation})`,
    );
    // The same block in an earlier state is no help.
    await cluster.run(cluster.put(keeper, [999], 'third'));
    await cluster.run(keeper.db.checkpoint());
    const again = await repair();
    expect(again.unrepairable.map(({ message }) => message).join()).toContain(`with db.at(${generation})`);
  });

  it('are counts of a table: they are reported, and its index is right', async () => {
    await cluster.rewriteRoot(itemsTable, (root) => ({ ...root, count: 1001 }));
    const { ok, repaired, unrepairable } = await repair();
    expect([ok, repaired]).toEqual([false, []]);
    expect(unrepairable).toHaveLength(1);
    expect(unrepairable[0]).toMatchObject({
      table: 'items',
      message: expect.stringContaining('1000 entries') as string,
    });
    // An index is made anew from the rows that there are.
    await cluster.remove(await leafAt(2));
    expect(await repair()).toMatchObject({ ok: false, repaired: [{ ...itemsIndex, entries: 1000 }] });
    expect(await repair()).toMatchObject({ ok: false, repaired: [], unrepairable: [{ table: 'items' }] });
  });

  it('are blobs: their rows are named, and an index is rebuilt all the same', async () => {
    const [blob] = await cluster.storeBlobs(node, { 5: 'five' });
    await cluster.run(node.db.checkpoint());
    await cluster.remove(blob as string);
    await cluster.damage(await leafAt(2));
    expect(await repair()).toMatchObject({
      ok: false,
      repaired: [itemsIndex],
      unrepairable: [{ name: blob, message: "The blob of field 'file' of row 5 of table 'items' is missing" }],
    });
  });

  it.each([
    ['table', { table: 'nothing' }],
    ['index', { table: 'items', index: 'nothing' }],
    ['index', { index: 'group' }],
    ['dryRun', { dryRun: 1 }],
    ['deep', { deep: true }],
  ])('is a wrong option: %s', async (option, options) => {
    const error = await cluster.failure(node.db.repair(options as unknown as RepairOptions));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option });
  });
});

describe('while others go on', () => {
  it('begins again when another node merges first', async () => {
    const other = await cluster.start(1);
    // No row that comes belongs there, so that others can merge.
    await cluster.damage(await leafAt(-1));
    node.driver.onPut(
      /^block0$/,
      after(async () => {
        await cluster.put(other, [1000, 1010], 'meanwhile');
        await other.db.checkpoint();
      }),
    );
    const before = await cluster.block0();
    node.driver.takeLines();
    expect(await repair()).toMatchObject({ ok: true, repaired: [{ ...itemsIndex, entries: 1002 }] });
    const puts = node.driver.takeLines().filter((line) => line.startsWith('put indexes/'));
    const births = new Set(puts.map((line) => Number.parseInt(/group\/([0-9a-f]{12})/.exec(line)?.[1] as string, 16)));
    expect([...births]).toEqual([before.generation + 1, before.generation + 2]);
    // Of the first attempt nothing is used.
    const used = (await cluster.leaves(itemsIndex)).map((name) => name.split('/')[3]?.slice(0, 12));
    expect([...new Set(used)].map((birth) => Number.parseInt(birth as string, 16))).toEqual([before.generation + 2]);
    await expectSound(1002);
  });

  it('gives up where others merge before every attempt, and has changed nothing', async () => {
    const other = await cluster.start(1);
    await cluster.damage(await leafAt(-1));
    let id = 1000;
    node.driver.onPut(
      /^block0$/,
      after(async () => {
        await cluster.put(other, [id], 'meanwhile');
        id += 10;
        await other.db.checkpoint();
      }),
      Infinity,
    );
    expect(await cluster.failure(node.db.repair())).toMatchObject({ code: 'CONTENTION' });
    node.driver.heal();
    expect(await repair()).toMatchObject({ ok: true, repaired: [itemsIndex] });
    await expectSound(1000 + (id - 1000) / 10);
  });

  it('is not outdated by its own node', async () => {
    await cluster.damage(await leafAt(-1));
    let merging: Promise<void> | undefined;
    node.driver.onPut(
      /^indexes/,
      after(async () => {
        await cluster.put(node, [1000], 'meanwhile');
        merging ??= node.db.checkpoint();
      }),
    );
    // There is time enough for a merge.
    node.driver.onPut(
      /^block0/,
      after(() => sleep(node.environment, 5000)),
    );
    expect(await repair()).toMatchObject({ ok: true, repaired: [{ entries: 1000 }] });
    await cluster.run(merging as unknown as Promise<void>);
    expect(node.db.stats().merges).toMatchObject({ lostMerges: 0 });
    expect((await cluster.block0()).appliedSeq).toBe(2);
    await expectSound(1001);
  });

  it.each([1, 2, 3])('two nodes write, merge and collect: seed %s', async (seed) => {
    const random = new SeededRandom(`repair ${seed}`);
    const other = await cluster.start(1);
    const model = new Map(range(0, 1000).map((id) => [id, id % 10]));
    const writing = { goesOn: true };
    const write = async (writer: ClusterNode): Promise<void> => {
      while (writing.goesOn) {
        const ids = range(0, random.integer(1, 20)).map(() => random.integer(0, 1100));
        const group = random.integer(0, 9);
        await cluster.flush(writer, (batch) => {
          for (const id of ids) void batch.upsert(items, { id, text: 'new', group });
        });
        for (const id of ids) model.set(id, group);
        await sleep(writer.environment, random.integer(1, 200));
        if (random.chance(0.3)) await writer.db.checkpoint().catch(() => undefined);
        if (random.chance(0.1)) await writer.db.gc({ loopGraceMs: 0 }).catch(() => undefined);
      }
    };
    const repairs = async (): Promise<void> => {
      for (let round = 0; round < 6; round++) {
        const leaves = await cluster.leaves(itemsIndex);
        const leaf = random.pick(leaves);
        if (random.chance(0.5)) await cluster.remove(leaf);
        else await cluster.damage(leaf);
        const { unrepairable } = await random.pick([node, other]).db.repair();
        expect(unrepairable).toEqual([]);
      }
      writing.goesOn = false;
    };
    // Requests take a while, so that all of this happens at the same time.
    for (const { driver, environment } of [node, other]) {
      driver.onAll(async (pass) => {
        await sleep(environment, random.integer(0, 3));
        return pass();
      });
    }
    await cluster.run(Promise.all([write(other), repairs()]));
    await cluster.run(node.db.repair());
    await expectSound(model.size);
    for (const [id, group] of model) expect((await cluster.run(other.db.get(items, id)))?.group).toBe(group);
  });

  it.each(['its own', 'another'])('a query goes on where %s node collects the old index under it', async (whose) => {
    // Its last leaf: a query of the first groups never comes to it.
    await cluster.damage(await leafAt(-1));
    const cold = await cluster.start(1);
    const repairing = whose === 'its own' ? cold : node;
    let report: RepairReport | undefined;
    cold.driver.onGet(
      /^indexes\/items\/group/,
      after(async () => {
        report = await repairing.db.repair();
        await repairing.db.gc({ loopGraceMs: 0 });
      }),
    );
    // By the index: it holds all that is asked for.
    const query = cold.db.query(items).where('group', '=', 1).select('id', 'group');
    const rows = await cluster.run(query.execute());
    expect(report).toMatchObject({ ok: true, repaired: [itemsIndex] });
    expect(rows.map(({ id }) => id)).toEqual(range(0, 100).map((i) => i * 10 + 1));
  });
});

describe('a crash in the middle', () => {
  it('at any request loses nothing, and the next repair does it', { timeout: 120_000 }, async () => {
    await cluster.damage(await leafAt(2));
    const before = await cluster.names();
    let crashes = 0;
    for (let at = 1; crashes < 200; at += 3) {
      const crashing = await cluster.start(100 + crashes);
      let left = at;
      crashing.driver.onAll(async (pass) => {
        if (--left === 0) crashing.environment.freeze();
        return pass();
      });
      let done = false;
      const repairing = async (): Promise<void> => {
        await crashing.db.repair();
        done = true;
      };
      void repairing();
      await cluster.advance(60_000);
      if (done) break;
      crashes++;
      const names = await cluster.names();
      expect(before.filter((name) => !names.includes(name))).toEqual([]);
    }
    expect(crashes).toBeGreaterThan(10);
    await cluster.run(node.db.refresh());
    expect(await repair()).toMatchObject({ ok: true });
    await expectSound();
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it.each(['the request is lost', 'the answer is lost'])('is none where %s', async (what) => {
    await cluster.damage(await leafAt(2));
    const { generation } = await cluster.block0();
    node.driver.onPut(/^block0$/, async (pass, { key }) => {
      if (what === 'the answer is lost') await pass();
      throw new StorageError(key, 'unknown', 'There was no answer.');
    });
    expect(await repair()).toMatchObject({ ok: true, repaired: [itemsIndex] });
    expect((await cluster.block0()).generation).toBe(generation + 1);
    await expectSound();
  });

  it('is none where it is given up, or the database is stopped', async () => {
    await cluster.damage(await leafAt(2));
    const before = await cluster.block0();
    const controller = new AbortController();
    node.driver.onGet(
      /^data/,
      after(async () => controller.abort()),
    );
    expect(await cluster.failure(node.db.repair({ signal: controller.signal }))).toMatchObject({ code: 'ABORTED' });
    // Once every block was read by the check, the rows are read to make the index anew.
    const blocks = (await cluster.namesIn('data/items')).length;
    let stopped: Promise<void> | undefined;
    let reads = 0;
    node.driver.onGet(
      /^data\/items/,
      after(async () => {
        if (++reads > blocks + 3) stopped ??= node.db.stop();
      }),
      Infinity,
    );
    expect(await cluster.failure(node.db.repair())).toMatchObject({ code: 'NOT_STARTED' });
    await cluster.run(stopped as unknown as Promise<void>);
    // It was left, and nothing else was done to it.
    const { revision } = before;
    const after0 = await cluster.block0();
    expect(after0).toEqual({
      ...before,
      revision: revision + 1,
      nodes: [],
      nonce: after0.nonce,
      writer: after0.writer,
    });
  });
});
