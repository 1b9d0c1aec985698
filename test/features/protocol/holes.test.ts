/** A log with a hole: an acknowledged commit is gone, by a mistake or a store that lags. It is reported, and no later commit is lost. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { RepairReport } from '../../../src/index.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { range, prefix } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { DamagedCluster } from '../maintenance/damaged-cluster.ts';
import { before } from './scripted-driver.ts';

let cluster: DamagedCluster;
let writer: ClusterNode;
/** The first slot that is not merged: a commit for each of rows 1 to 4. */
let first: number;

interface Raced {
  readonly isReached: boolean;
  readonly isAcknowledged: boolean | undefined;
  readonly report: RepairReport | undefined;
}

beforeEach(prepare);

async function prepare(): Promise<void> {
  cluster = new DamagedCluster();
  writer = await cluster.start(0);
  await cluster.run(cluster.put(writer, range(100, 150), 'stored'));
  await cluster.run(writer.db.checkpoint());
  first = (await cluster.block0()).appliedSeq + 1;
  for (const id of [1, 2, 3, 4]) await cluster.run(cluster.put(writer, [id], 'pending'));
  await cluster.run(writer.db.stop());
}

const slotOf = (id: number): string => commitName(first + id - 1);
const ids = async ({ db }: ClusterNode): Promise<unknown[]> =>
  (await cluster.run(db.query('items').where('id', '<', 100).execute())).map(({ id }) => id);

describe('opening', () => {
  it('takes as many requests as ever where the log is whole', async () => {
    const node = cluster.make(1);
    await cluster.run(node.db.start());
    expect(node.driver.takeLines()).toEqual([
      'get block0 found',
      ...range(0, 3).map((i) => `get committed/${first + i} found`),
      ...range(3, 4).map((i) => `get committed/${first + i} found`),
      ...range(4, 7).map((i) => `get committed/${first + i} missing`),
      'get block0 unchanged',
    ]);
    expect(await ids(node)).toEqual([1, 2, 3, 4]);
  });

  it('finds a hole if it reads more than one slot at a time, names it, and says what to do', async () => {
    await cluster.remove(slotOf(2));
    const error = await cluster.failure(cluster.make(1).db.start());
    expect(error).toMatchObject({ code: 'CORRUPTION', key: slotOf(2) });
    expect(error.message).toMatch(
      /missing from the log, and later ones are there.*acknowledged and is lost.*db\.repair/,
    );
  });

  it('and every call after it, on demand, where start() does not wait for the look', async () => {
    await cluster.remove(slotOf(2));
    const node = await cluster.start(1, { polling: 'onDemand' });
    expect(await cluster.failure(node.db.query('items').execute())).toMatchObject({ code: 'CORRUPTION' });
    expect(await cluster.failure(cluster.put(node, [5], 'new'))).toMatchObject({ code: 'CORRUPTION' });
    expect(await cluster.failure(node.db.refresh())).toMatchObject({ code: 'CORRUPTION' });
    expect((await cluster.store.get(`${prefix}/${slotOf(2)}`)).status).toBe('missing');
  });

  it('goes on when the commit is there again: a store that lagged', async () => {
    const bytes = await cluster.bytes(slotOf(2));
    await cluster.remove(slotOf(2));
    const node = await cluster.start(1, { polling: 'onDemand' });
    expect(await cluster.failure(node.db.refresh())).toMatchObject({ code: 'CORRUPTION' });
    await cluster.putObject(slotOf(2), bytes);
    expect(await ids(node)).toEqual([1, 2, 3, 4]);
    await cluster.run(cluster.put(node, [5], 'new'));
    expect(await ids(node)).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('a hole that cannot be seen, since the first slot to read is the missing one', () => {
  beforeEach(() => cluster.remove(slotOf(1)));

  it('lets nobody apply the commits behind it: an acknowledged row that takes the slot stays', async () => {
    const node = await cluster.start(1);
    expect(await ids(node)).toEqual([]);
    await cluster.run(cluster.put(node, [7], 'new'));
    expect(await ids(node)).toEqual([7]);
    // The next slot is taken by a commit that followed the lost one.
    const error = await cluster.failure(cluster.put(node, [8], 'next'));
    expect(error).toMatchObject({ code: 'CORRUPTION', key: slotOf(2) });
    expect(error.message).toMatch(/follows commit [0-9a-f-]{36} in slot \d+, and there is commit [0-9a-f-]{36} now/);
    expect(await ids(node)).toEqual([7]);
    expect(await cluster.failure(cluster.put(node, [8], 'next'))).toMatchObject({ code: 'CORRUPTION' });
    // It is merged, and whoever opens the database sees it and is told.
    await cluster.run(node.db.checkpoint()).catch(() => undefined);
    expect(await cluster.failure(cluster.make(2).db.start())).toMatchObject({ code: 'CORRUPTION' });
    const other = await cluster.start(3, { polling: 'onDemand' });
    await cluster.run(other.db.repair({ log: 'stop' }));
    expect(await ids(other)).toEqual([7]);
  });

  it.each(['skip', 'stop'] as const)(
    'is taken by nobody who has not seen that a repair gave it up (%s)',
    async (way) => {
      const node = await cluster.start(1);
      expect(await ids(node)).toEqual([]);
      const other = await cluster.start(3, { polling: 'onDemand' });
      await cluster.run(other.db.repair({ log: way }));
      // As releases left it that did not fill the slot.
      await cluster.remove(slotOf(1));
      const left = way === 'skip' ? [2, 3, 4] : [];
      expect(await ids(other)).toEqual(left);
      // It still shows the state before the hole, and so puts its commit into the slot.
      node.driver.takeLines();
      await cluster.run(cluster.put(node, [7], 'new'));
      expect(node.driver.takeLines().find((line) => line.startsWith('put'))).toBe(`put committed/${first} written`);
      expect(await ids(node)).toEqual([...left, 7]);
      await cluster.run(other.db.refresh());
      expect(await ids(other)).toEqual([...left, 7]);
      expect(await ids(await cluster.start(2))).toEqual([...left, 7]);
    },
  );

  it.each(['skip', 'stop'] as const)('is filled by a repair, so that nobody takes it later (%s)', async (way) => {
    const node = await cluster.start(1);
    const other = await cluster.start(3, { polling: 'onDemand' });
    const { log } = await cluster.run(other.db.repair({ log: way }));
    expect(log).toMatchObject({ lostSlots: [first], stranded: [2, 3, 4].map((id) => ({ slot: first + id - 1 })) });
    node.driver.takeLines();
    await cluster.run(cluster.put(node, [7], 'new'));
    expect(node.driver.takeLines().find((line) => line.startsWith('put'))).toBe(`put committed/${first} lost`);
    expect(await ids(node)).toEqual([...(way === 'skip' ? [2, 3, 4] : []), 7]);
  });

  it('is found by verify(), which lists the log', async () => {
    const node = await cluster.start(1);
    for (const deep of [false, true]) {
      const findings = await cluster.findings(node, deep);
      expect(findings).toEqual([
        { name: slotOf(1), message: `The commit is missing, and there are later ones (up to slot ${first + 3})` },
      ]);
    }
  });
});

describe('repair()', () => {
  async function damaged(): Promise<ClusterNode> {
    await cluster.remove(slotOf(2));
    return cluster.start(1, { polling: 'onDemand' });
  }

  it('names the lost commit and the commits behind it, and does nothing by itself', async () => {
    const node = await damaged();
    node.driver.takeLines();
    for (const options of [{}, { dryRun: true }, { log: 'stop', dryRun: true }] as const) {
      const report = await cluster.run(node.db.repair(options));
      expect(report).toMatchObject({ ok: false, repaired: [], unrepairable: [{ name: slotOf(2) }] });
      expect(report.log).toMatchObject({ lostSlots: [first + 1], way: 'log' in options ? 'stop' : undefined });
      expect(report.log?.stranded).toMatchObject([
        { slot: first + 2, nodeId: 0, rows: { items: 1 } },
        { slot: first + 3, nodeId: 0, rows: { items: 1 } },
      ]);
      expect(report.log?.stranded[0]?.at).toBeInstanceOf(Date);
    }
    expect(node.driver.takeLines().filter((line) => line.startsWith('put'))).toEqual([]);
  });

  it.each([
    ['stop', [1]],
    ['skip', [1, 3, 4]],
  ] as const)('goes on with log: %s, for all instances', async (log, expected) => {
    const node = await damaged();
    const report = await cluster.run(node.db.repair({ log }));
    expect(report).toMatchObject({ ok: true, unrepairable: [], log: { way: log, lostSlots: [first + 1] } });
    expect(await ids(node)).toEqual(expected);
    expect(await cluster.findings(node)).toEqual([]);
    await cluster.run(cluster.put(node, [9], 'new'));
    const other = await cluster.start(2);
    expect(await ids(other)).toEqual([...expected, 9]);
    await cluster.run(cluster.put(other, [10], 'new'));
    expect(await ids(node).then(() => cluster.run(node.db.refresh()))).toBeUndefined();
    expect(await ids(node)).toEqual([...expected, 9, 10]);
    expect(await cluster.checkIndex(other)).toBe(50 + expected.length + 2);
    expect(await cluster.run(other.db.repair({ log }))).toMatchObject({ ok: true });
    expect((await cluster.run(other.db.repair({ log }))).log).toBeUndefined();
  });

  it('of a slot that another commit has taken goes on in both ways', async () => {
    await cluster.remove(slotOf(1));
    const node = await cluster.start(1);
    await cluster.run(cluster.put(node, [7], 'new'));
    expect((await cluster.run(node.db.repair())).log).toMatchObject({ lostSlots: [], stranded: [{}, {}, {}] });
    expect(await cluster.run(node.db.repair({ log: 'skip' }))).toMatchObject({ ok: true });
    expect(await ids(node)).toEqual([2, 3, 4, 7]);
  });

  it('gives up a commit that cannot be read', async () => {
    await cluster.damage(slotOf(4));
    const node = await cluster.start(1, { polling: 'onDemand' });
    const report = await cluster.run(node.db.repair());
    expect(report.log).toMatchObject({ lostSlots: [first + 3], stranded: [{ slot: first + 3, commitId: undefined }] });
    expect(await cluster.run(node.db.repair({ log: 'skip' }))).toMatchObject({ ok: true });
    expect(await ids(node)).toEqual([1, 2, 3]);
  });

  it('leaves given up commits out of changes()', async () => {
    const node = await damaged();
    await cluster.run(node.db.repair({ log: 'stop' }));
    await cluster.run(cluster.put(node, [9], 'new'));
    const feed = node.db.changes({ after: first - 1 })[Symbol.asyncIterator]();
    const seen: unknown[] = [];
    for (let position = 0; position < first + 4; ) {
      const { value } = await cluster.run(feed.next());
      if (value === undefined) break;
      ({ position } = value);
      for (const { key } of await cluster.run(value.toArray())) seen.push(key);
    }
    expect(seen).toEqual([1, 9]);
  });

  it('tells the writer of the lost commit that it was not applied', async () => {
    const node = await damaged();
    const { log } = await cluster.run(node.db.repair({ log: 'stop' }));
    const [stranded] = log?.stranded ?? [];
    const commit = { commitId: stranded?.commitId as string, slot: stranded?.slot as number };
    const other = await cluster.start(2);
    // The object is still there: what Block 0 has applied decides.
    expect(await cluster.run(other.db.resolveCommit(commit))).toBe(false);
  });

  it.each([
    [{ log: 'drop' as never }, 'log'],
    [{ log: 'stop', table: 'items' }, 'log'],
  ] as const)('refuses %o', async (options, option) => {
    const node = await damaged();
    expect(await cluster.failure(node.db.repair(options))).toMatchObject({ code: 'INVALID_OPTION', option });
  });
});

describe('commits that others put meanwhile are no hole', () => {
  it('where a slot was put between two reads', async () => {
    const bytes = await cluster.bytes(slotOf(2));
    await cluster.remove(slotOf(2));
    const node = cluster.make(1);
    // The slots are read at the same time; this one only seems to be missing.
    node.driver.onGet(new RegExp(`^committed/${first + 1}$`), async (pass) => {
      const result = await pass();
      await cluster.store.put(`${prefix}/${slotOf(2)}`, Uint8Array.from(bytes), { if: 'any' });
      return result;
    });
    await cluster.run(node.db.start());
    expect(await ids(node)).toEqual([1, 2, 3, 4]);
  });

  it('where both were put while the log was listed, and the listing shows the later one only', async () => {
    const other = await cluster.start(2);
    const node = await cluster.start(1);
    node.driver.onList(async (pass) => {
      for (const id of [5, 6]) await cluster.put(other, [id], 'new');
      const page = await pass();
      return { ...page, entries: page.entries.filter(({ key }) => !key.endsWith(slotOf(5))) };
    });
    expect(await cluster.findings(node, false)).toEqual([]);
    expect(node.driver.takeLines()).toContain('list committed/');
  });

  it('where one that still held it merged it while the log was checked', async () => {
    const other = await cluster.start(2);
    await cluster.remove(slotOf(2));
    const node = await cluster.start(1, { polling: 'onDemand' });
    node.driver.onList(before(() => other.db.checkpoint()));
    const report = await cluster.run(node.db.repair());
    expect(report).toMatchObject({ ok: true, unrepairable: [] });
    expect(report.log).toBeUndefined();
    expect(await ids(node)).toEqual([1, 2, 3, 4]);
  });

  it('where it was merged and trimmed between two reads', async () => {
    const other = await cluster.start(2);
    const node = cluster.make(1);
    node.driver.onGet(new RegExp(`^committed/${first + 1}$`), async (pass) => {
      await other.db.checkpoint();
      await cluster.remove(slotOf(2));
      return pass();
    });
    await cluster.run(node.db.start());
    const lines = node.driver.takeLines();
    // It looked missing, and so twice; then Block 0 told that it is merged.
    expect(lines.filter((line) => line === `get committed/${first + 1} missing`)).toHaveLength(2);
    expect(lines).toContain(`get committed/${first + 2} found`);
    expect(await ids(node)).toEqual([1, 2, 3, 4]);
  });
});

describe.each(['skip', 'stop'] as const)(
  'a write of another instance while repair({ log: %j }) is under way',
  (log) => {
    /** Writes row 7 before this request of the repair, and says how the write and the repair ended. */
    async function race(writing: ClusterNode, at: number): Promise<Raced> {
      const repairing = await cluster.start(3, { polling: 'onDemand' });
      let requests = 0;
      let written: Promise<boolean> | undefined;
      repairing.driver.onAll(async (pass) => {
        if (requests++ !== at) return pass();
        written = cluster.put(writing, [7], 'new').then(
          () => true,
          () => false,
        );
        await written;
        return pass();
      });
      const report = await cluster.run(repairing.db.repair({ log })).catch(() => undefined);
      repairing.driver.heal();
      return { isReached: written !== undefined, isAcknowledged: await written, report };
    }

    /** Every request of a repair, one race each on a database of its own. */
    async function raceEach(
      start: () => Promise<ClusterNode>,
      check: (raced: Raced, at: number) => Promise<void>,
    ): Promise<void> {
      let at = 0;
      for (let raced = await race(await start(), at); raced.isReached; raced = await race(await start(), ++at)) {
        await check(raced, at);
        await prepare();
      }
      expect(at).toBeGreaterThan(10);
    }

    /** What an instance shows that opens the database afterwards, once the log is whole. */
    async function shown(): Promise<unknown[]> {
      const node = await cluster.start(5, { polling: 'onDemand' });
      // Where the first repair found the log as others changed it, the decision is asked for once more.
      await cluster.run(node.db.repair({ log }));
      expect(await cluster.findings(node)).toEqual([]);
      return ids(node);
    }

    it('into the slot of the lost commit is kept, or not acknowledged', async () => {
      let acknowledged = 0;
      // It has seen nothing of the commits behind the hole.
      const start = async (): Promise<ClusterNode> => {
        await cluster.remove(slotOf(1));
        return cluster.start(1);
      };
      await raceEach(start, async ({ isAcknowledged }, at) => {
        const left = log === 'skip' ? [2, 3, 4] : [];
        if (isAcknowledged === true) acknowledged++;
        expect(await shown(), `before request ${at}`).toEqual(isAcknowledged === true ? [...left, 7] : left);
      });
      expect(acknowledged).toBeGreaterThan(0);
    });

    it('behind the last commit is kept, or given up with those before it and reported', async () => {
      let acknowledged = 0;
      // It has seen all of the log before the commit was lost.
      const start = async (): Promise<ClusterNode> => {
        const node = await cluster.start(1);
        await cluster.remove(slotOf(2));
        return node;
      };
      await raceEach(start, async ({ isAcknowledged, report }, at) => {
        const rows = await shown();
        const left = log === 'skip' ? [1, 3, 4] : [1];
        if (isAcknowledged === true) acknowledged++;
        const isGivenUp = report?.log?.way === 'stop' && report.log.stranded.some(({ slot }) => slot === first + 4);
        const isKept = isAcknowledged === true && !isGivenUp;
        expect(rows, `before request ${at}`).toEqual(isKept ? [...left, 7] : left);
      });
      expect(acknowledged).toBeGreaterThan(0);
    });
  },
);
