/** Loads that are resumed: what an interrupted call has stored stays, and the next call with the name goes on behind it. */
import { describe, expect, it } from 'vitest';
import type { LoadPosition } from '../../../src/load/row-source.ts';
import { Cluster, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { expectLoaded, interrupted, partOf, parts, PartSource, shuffled, small } from './resumed-loads.ts';

/** Rows of a load that is recorded some times. */
const count = 9000;

/** The requests of a load up to its commit, without reads of what it has staged: gets, puts and deletions, in their order. */
function requestsOf(node: ClusterNode): string[] {
  const lines = node.driver.takeLines();
  const committed = lines.findLastIndex((line) => line.startsWith('put committed/'));
  const isOfLoad = (line: string, i: number): boolean => !/^get staged|data|indexes/.test(line) && i <= committed;
  return lines.filter(isOfLoad).map((line) => line.replace(/(staged\/)\S+/, '$1…'));
}

/** The requests of a look at the log. */
const look = (slot: number): string[] => [`get committed/${slot} missing`, 'get block0 unchanged'];
const pinned = ['put roots/000000000000 written', 'get block0 unchanged', 'put block0 written'];
/** The sorted entries of a unique index, in two runs that are merged. */
const entries = [...Array.from({ length: 3 }, () => 'put staged/… written'), 'delete 2'];

describe('a load with a name', () => {
  it.each([
    ['in no order', shuffled(count)],
    ['in order', range(0, count)],
    ['backwards', range(0, count).toReversed()],
  ])('goes on behind the rows that are stored, which come %s', async (_, ids) => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const source = await interrupted(cluster, node, ids, 8000);
    const [load] = await cluster.run(other.db.unfinishedLoads());
    expect(load).toMatchObject({ name: 'parts', table: 'parts', nodeId: 0 });
    const rows = load?.rows ?? 0;
    expect(rows).toBeGreaterThan(4000);
    expect(rows).toBeLessThan(8000);
    expect(await cluster.run(other.db.query(parts).count())).toBe(0);
    const told: number[] = [];
    const onProgress = (progress: { rows: number }): void => void told.push(progress.rows);
    const report = await cluster.run(other.db.load(parts, source.from, { resume: 'parts', onProgress }));
    expect(report).toEqual({ rows: count });
    const position: LoadPosition = { rows, lastKey: ids[rows - 1] };
    expect(source.begun).toEqual([{ rows: 0, lastKey: undefined }, position]);
    expect(told[0]).toBeGreaterThan(rows);
    expect(told.at(-1)).toBe(count);
    await expectLoaded(cluster, other, count);
    await cluster.collectAll(other);
    // The run that the commit names goes once the log has passed its name.
    expect(await cluster.namesIn('staged')).toHaveLength(1);
    expect(await cluster.namesIn('roots')).toEqual([]);
  });

  it('passes over the stored rows of an iterable that is made again', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    await interrupted(cluster, node, shuffled(count), 8000);
    const rows = shuffled(count).map(partOf);
    expect(await cluster.run(node.db.load(parts, rows, { resume: 'parts' }))).toEqual({ rows: count });
    await expectLoaded(cluster, node, count);
  });

  it('is interrupted again and again, and comes to its end', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const source = new PartSource(shuffled(count));
    for (const failBefore of [4000, 4100, 7000, 8999]) {
      source.failBefore = failBefore;
      await cluster.failure(node.db.load(parts, source.from, { resume: 'parts' }));
    }
    source.failBefore = Number.POSITIVE_INFINITY;
    expect(await cluster.run(node.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.map(({ rows }) => rows)).toEqual(
      source.begun.map(({ rows }) => rows).toSorted((a, b) => a - b),
    );
    expect(source.begun.at(-1)?.rows).toBeGreaterThan(5000);
    await expectLoaded(cluster, node, count);
  });

  it('that is given up by its signal, or by a stop, goes on later', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const controller = new AbortController();
    const source = new PartSource(shuffled(count));
    const onProgress = ({ rows }: { rows: number }): void => {
      if (rows > 5000) controller.abort();
    };
    const { signal } = controller;
    const given = cluster.failure(node.db.load(parts, source.from, { resume: 'parts', signal, onProgress }));
    expect(await given).toMatchObject({ code: 'ABORTED' });
    let stopping: Promise<void> | undefined;
    const stop = ({ rows }: { rows: number }): void => {
      if (rows > 8000) stopping ??= node.db.stop();
    };
    const stopped = cluster.failure(node.db.load(parts, source.from, { resume: 'parts', onProgress: stop }));
    expect(await stopped).toMatchObject({
      code: 'ABORTED',
      message: 'db.load() was given up because db.stop() was called',
    });
    await cluster.run(stopping as Promise<void>);
    const other = await small(cluster, 1);
    expect(await cluster.run(other.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun[1]?.rows).toBeGreaterThan(0);
    expect(source.begun[2]?.rows).toBeGreaterThan(source.begun[1]?.rows ?? 0);
    await expectLoaded(cluster, other, count);
  });

  it('has a name of its own again once it is finished', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    for (const from of [0, count]) {
      const rows = range(from, from + count).map(partOf);
      expect(await cluster.run(node.db.load(parts, rows, { resume: 'parts' }))).toEqual({ rows: count });
    }
    await expectLoaded(cluster, node, 2 * count);
    const again = node.db.load(parts, range(0, count).map(partOf), { resume: 'parts' });
    expect(await cluster.failure(again)).toMatchObject({ code: 'DUPLICATE_KEY' });
  });

  it('works on an encrypted database', async () => {
    const cluster = new Cluster();
    const encryption = { keys: { one: Uint8Array.from(range(0, 32)) }, current: 'one' };
    const node = await small(cluster, 0, { encryption });
    const source = await interrupted(cluster, node, shuffled(count), 8000);
    expect(await cluster.run(node.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    await expectLoaded(cluster, node, count);
  });
});

describe('the requests of a load', () => {
  it('are the same with a name if its rows are sorted at once', async () => {
    const lines: string[][] = [];
    for (const options of [{}, { resume: 'few' }]) {
      const cluster = new Cluster();
      const node = await small(cluster, 0);
      await cluster.run(node.db.load(parts, shuffled(500).map(partOf), options));
      lines.push(requestsOf(node));
    }
    expect(lines[1]).toEqual(lines[0]);
    const staged = 'put staged/… written';
    expect(lines[0]).toEqual([...look(1), staged, ...look(1), staged, 'put committed/1 written']);
  });

  it('without a name are no more than they were', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    await cluster.run(node.db.load(parts, range(0, 4000).map(partOf)));
    expect(requestsOf(node)).toEqual([
      ...look(1),
      ...look(1),
      ...pinned,
      'put staged/… written',
      ...look(1),
      ...entries,
      'put committed/1 written',
    ]);
  });

  it('with a name are two more for each record, and those of merging the runs', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    await cluster.run(node.db.load(parts, range(0, 4000).map(partOf), { resume: 'parts' }));
    expect(requestsOf(node)).toEqual([
      ...look(1),
      ...look(1),
      ...pinned,
      'put staged/… written',
      // The pin is kept for a week from now on.
      'get block0 unchanged',
      'put block0 written',
      'put committed/1 written',
      'get block0 unchanged',
      'put staged/… written',
      'put committed/2 written',
      'get block0 unchanged',
      'put staged/… written',
      ...look(3),
      ...entries,
      'put committed/3 written',
    ]);
  });
});
