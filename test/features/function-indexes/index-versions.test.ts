/** Nodes with and without the function, and with different versions of it, on one table. */
import { describe, expect, it } from 'vitest';
import { topDomain, siteOf, Sites, sites } from './sites.ts';
import type { Row } from './sites.ts';

const all = Array.from({ length: 400 }, (_, id) => siteOf(id));
const ofSite = (site: number): number[] => Array.from({ length: 20 }, (_, i) => site + i * 20);
const options = { blockSizeBytes: 1024, writeForwardInterval: 1000 };

describe('a node that has not the function', () => {
  it('merges, and leaves the index as it is, which is out of date then, and not used', async () => {
    const nodes = new Sites();
    const node = await nodes.open(1, 1, options);
    await nodes.write(node, 'insert', all);
    await nodes.merge(node);
    const [before] = await nodes.indexVersions();
    await nodes.run(node.db.stop());
    const without = await nodes.open(2, undefined, options);
    await nodes.write(without, 'update', [{ id: 7, url: 'moved/7' }]);
    await nodes.write(without, 'insert', [{ id: 500, url: 'www.site7.org' }]);
    await nodes.delete(without, [27]);
    await nodes.merge(without);
    const [after] = await nodes.indexVersions();
    const { generation } = await nodes.block0();
    expect(after).toEqual({ ...before, behindFrom: generation });
    expect(after?.base).not.toEqual(await nodes.root());
    const replica = await nodes.open(3, 1, { role: 'replica' });
    const expected = [...ofSite(7).filter((id) => id !== 7 && id !== 27), 500];
    expect(await nodes.find(replica, 'www.site7.org')).toEqual({ ids: expected, index: undefined });
    expect(await nodes.find(replica, 'moved')).toEqual({ ids: [7], index: undefined });
    expect(await nodes.findings(without)).toEqual([]);
    // What the index is of is kept for whoever catches up.
    await nodes.run(without.db.gc({ loopGraceMs: 0 }));
    expect(await nodes.findings(without)).toEqual([]);
    await nodes.run(without.db.stop());
    const again = await nodes.open(1, 1, options);
    await nodes.pass(4000);
    expect(await nodes.indexVersions()).toMatchObject([{ version: 1, built: null, behindFrom: null }]);
    expect((await nodes.indexVersions())[0]?.base).toEqual(await nodes.root());
    for (const reader of [again, replica]) {
      expect(await nodes.find(reader, 'www.site7.org')).toEqual({ ids: expected, index: 'domain' });
      expect(await nodes.find(reader, 'moved')).toEqual({ ids: [7], index: 'domain' });
    }
    expect(await nodes.findings(again)).toEqual([]);
  });

  it('can be the first to merge: others make the index afterwards', async () => {
    const nodes = new Sites();
    const without = await nodes.open(1, undefined, options);
    await nodes.write(without, 'insert', all);
    await nodes.merge(without);
    expect(await nodes.indexVersions()).toEqual([]);
    const node = await nodes.open(2, 1, options);
    await nodes.pass(4000);
    expect(await nodes.find(node, 'www.site7.org')).toEqual({ ids: ofSite(7), index: 'domain' });
    expect(await nodes.findings(node)).toEqual([]);
    expect(await nodes.findings(without)).toEqual([]);
  });

  // One of the two has no turn for a day, so that it merges before it makes anything.
  it.each([0, 2])('has others begin with all rows, and not with those that they merge (node %i)', async (nodeId) => {
    const nodes = new Sites();
    const without = await nodes.open(1, undefined, { blockSizeBytes: 1024 });
    await nodes.write(without, 'insert', all);
    await nodes.merge(without);
    const node = await nodes.open(nodeId, 1, { blockSizeBytes: 1024 });
    await nodes.write(node, 'insert', [{ id: 500, url: 'www.site7.org' }]);
    await nodes.merge(node);
    expect((await nodes.find(node, 'www.site7.org')).ids).toEqual([...ofSite(7), 500]);
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('may come by it while it runs, and by another version of it', async () => {
    const nodes = new Sites();
    const node = await nodes.open(1, undefined, options);
    await nodes.write(node, 'insert', all);
    await nodes.merge(node);
    node.db.registerFunction('domain', topDomain, 2);
    await nodes.pass(4000);
    expect(await nodes.find(node, 'site7.org')).toEqual({ ids: ofSite(7), index: 'domain' });
    node.db.registerFunction('domain', () => 'all', 3);
    expect((await nodes.find(node, 'all')).ids).toHaveLength(400);
    await nodes.pass(4000);
    expect(await nodes.find(node, 'site7.org')).toEqual({ ids: [], index: 'domain' });
    expect((await nodes.indexVersions()).map(({ version }) => version)).toEqual([2, 3]);
  });
});

describe('a new version of the function', () => {
  it('gets an index version of its own, while nodes with the old version go on with theirs', async () => {
    const nodes = new Sites();
    const old = await nodes.open(1, 1, options);
    await nodes.write(old, 'insert', all);
    await nodes.merge(old);
    const next = await nodes.open(2, 2, options);
    expect((await nodes.find(next, 'site7.org')).ids).toEqual(ofSite(7));
    await nodes.pass(4000);
    for (let round = 0; round < 6; round++) {
      const node = round % 2 === 0 ? old : next;
      await nodes.write(node, 'update', [{ id: 7 + round * 20, url: `www.moved.org/${round}` }]);
      await nodes.merge(node);
      const moved = Array.from({ length: round + 1 }, (_, i) => 7 + i * 20);
      expect((await nodes.find(old, 'www.moved.org')).ids).toEqual(moved);
      expect((await nodes.find(next, 'moved.org')).ids).toEqual(moved);
      await nodes.pass(4000);
      expect(await nodes.find(old, 'www.moved.org')).toEqual({ ids: moved, index: 'domain' });
      expect(await nodes.find(next, 'moved.org')).toEqual({ ids: moved, index: 'domain' });
    }
    expect((await nodes.indexVersions()).map(({ version }) => version)).toEqual(expect.arrayContaining([1, 2]));
    expect(await nodes.findings(old)).toEqual([]);
    expect(await nodes.findings(next)).toEqual([]);
  });

  it('has the old index version go once nobody has kept it up for 256 merges, and its blocks with gc()', async () => {
    const nodes = new Sites();
    const quiet = { blockSizeBytes: 1024 };
    const old = await nodes.open(1, 1, quiet);
    await nodes.write(old, 'insert', all);
    await nodes.merge(old);
    await nodes.run(old.db.stop());
    const next = await nodes.open(2, 2, quiet);
    await nodes.pass(1000);
    const versions = async () => (await nodes.indexVersions()).map(({ version }) => version);
    const mergeOften = async (times: number): Promise<void> => {
      for (let round = 0; round < times; round++) {
        await nodes.write(next, 'update', [{ id: 7, hits: times * 1000 + round }]);
        await nodes.merge(next);
      }
    };
    await mergeOften(255);
    expect(await versions()).toEqual([1, 2]);
    await mergeOften(2);
    expect(await versions()).toEqual([2]);
    await nodes.run(next.db.gc({ loopGraceMs: 0 }));
    const blocks = (await nodes.keys()).filter((key) => key.startsWith('indexes/sites/domain/'));
    const [indexVersion] = await nodes.indexVersions();
    // A root that is not in Block 0, and leaves.
    expect(blocks.length).toBeLessThanOrEqual(1 + Math.ceil((indexVersion?.root?.sizeBytes ?? 0) / 24));
    expect(await nodes.findings(next)).toEqual([]);
    // One that comes back with the old version begins anew.
    const again = await nodes.open(1, 1, quiet);
    expect((await nodes.find(again, 'www.site7.org')).ids).toEqual(ofSite(7));
  });

  it('makes room among many by giving up index versions that were left behind first', async () => {
    const nodes = new Sites();
    const node = await nodes.open(1, undefined, options);
    await nodes.write(node, 'insert', all);
    await nodes.merge(node);
    for (let version = 1; version <= 7; version++) {
      node.db.registerFunction('domain', ({ url }) => `${version} ${String(url).split('/')[0]}`, version);
      await nodes.pass(3000);
      expect(await nodes.find(node, `${version} www.site3.org`)).toEqual({ ids: ofSite(3), index: 'domain' });
      await nodes.write(node, 'update', [{ id: 0, hits: version }]);
      await nodes.merge(node);
    }
    expect((await nodes.indexVersions()).map(({ version }) => version)).toEqual([4, 5, 6, 7]);
  });

  it('waits where as many versions are in use', async () => {
    const nodes = new Sites();
    const node = await nodes.open(1, undefined, options);
    await nodes.write(node, 'insert', all);
    await nodes.merge(node);
    for (let version = 1; version <= 5; version++) {
      node.db.registerFunction('domain', () => version, version);
      await nodes.pass(3000);
    }
    // Nothing was written meanwhile: all four are as the table is.
    expect((await nodes.indexVersions()).map(({ version }) => version)).toEqual([1, 2, 3, 4]);
    expect((await nodes.find(node, 5)).index).toBeUndefined();
    expect((await nodes.find(node, 5)).ids).toHaveLength(400);
  });
});

describe('a function without a version', () => {
  it('has no part in the index, which is said once', async () => {
    const nodes = new Sites();
    const node = nodes.make(1, options);
    node.db.registerSchema(sites);
    node.db.registerFunction('domain', () => 'same');
    await nodes.run(node.db.start());
    await nodes.write(node, 'insert', all);
    await nodes.merge(node);
    await nodes.pass(3000);
    expect(await nodes.indexVersions()).toEqual([]);
    expect(await nodes.find(node, 'same')).toEqual({ ids: all.map(({ id }: Row) => id), index: undefined });
    const warnings = node.log.filter(({ message }) => message.includes('registered without a version'));
    expect(warnings).toHaveLength(1);
  });
});
