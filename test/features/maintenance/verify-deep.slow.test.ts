/** The findings of `db.verify({ deep: true })`, and the objects that it leaves to garbage collection. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Finding, VerifyOptions, VerifyProgress } from '../../../src/index.ts';
import { commitName, historyName, rootId, rootName } from '../../../src/format/object-names.ts';
import { items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { after, refused } from '../protocol/scripted-driver.ts';
import { DamagedCluster, itemsIndex } from './damaged-cluster.ts';

let cluster: DamagedCluster;
let node: ClusterNode;
/** Names of the blobs of rows 0 to 4. */
let blobs: string[];

/** 1,000 rows in trees of three levels, five of them with blobs, all of it merged. */
beforeEach(async () => {
  cluster = new DamagedCluster();
  node = await cluster.start(0);
  await cluster.run(cluster.put(node, range(0, 1000), 'first'));
  const large = new Uint8Array(5_000_000).fill(7);
  blobs = await cluster.storeBlobs(node, { 0: 'zero', 1: 'one', 2: '', 3: large, 4: 'four' });
  await cluster.run(node.db.checkpoint());
});

const idOf = (blob: string): string => blob.slice('blobs/'.length);

function only(findings: readonly Finding[]): Finding {
  expect(findings).toHaveLength(1);
  return findings[0] as Finding;
}

/** Finds the one finding, which without `deep` is found as well, or is not. */
async function finding(byAny: boolean): Promise<Finding> {
  const found = only(await cluster.findings(node));
  expect((await cluster.findings(node, false)).length).toBe(byAny ? 1 : 0);
  return found;
}

describe('a database that is as it should be', () => {
  it('has no findings, and its blobs are counted', async () => {
    await cluster.collectAll(node);
    expect(await cluster.verify(node)).toMatchObject({
      ok: true,
      findings: [],
      blobs: { objects: 5, bytes: 5_000_011 },
      keptStates: 0,
      garbage: { objects: 0, bytes: 0 },
      unknownObjects: [],
    });
  });

  it('is reported no further than before without deep, and no blob is read', async () => {
    node.driver.takeLines();
    const report = await cluster.verify(node, false);
    expect(Object.keys(report).toSorted()).toEqual(['findings', 'ok', 'pendingCommits', 'tables']);
    expect(node.driver.takeLines().filter((line) => /get blobs\/|^list/.test(line))).toEqual(['list committed/']);
  });

  it('is so with blobs in commits that are not merged, and rows that replace each other there', async () => {
    await cluster.storeBlobs(node, { 1: 'again', 7: 'seven' });
    await cluster.storeBlobs(node, { 7: 'seven again', 8: 'eight' });
    await cluster.run(cluster.flush(node, (batch) => void batch.delete(items, 8)));
    const report = await cluster.verify(node);
    // Those that are replaced are read as well: they are what merged states show.
    expect(report).toMatchObject({ ok: true, findings: [], pendingCommits: 3, blobs: { objects: 7 } });
  });

  it('reads large blobs in ranges', async () => {
    node.driver.takeLines();
    await cluster.verify(node);
    const reads = node.driver.takeLines().filter((line) => line.includes(blobs[3] as string));
    expect(reads).toHaveLength(2);
  });
});

describe('damage in an index', () => {
  it('of a leaf that does not match its checksum', async () => {
    const [leaf] = await cluster.leaves(itemsIndex);
    await cluster.damage(leaf as string);
    expect(await finding(true)).toMatchObject({ name: leaf, ...itemsIndex });
  });

  it('of a leaf that does', async () => {
    const leaf = (await cluster.leaves(itemsIndex))[3] as string;
    await cluster.reseal(leaf, (bytes) => {
      bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1;
    });
    const findings = await cluster.findings(node);
    expect(findings.length).toBeGreaterThan(0);
    for (const each of findings) expect(each).toMatchObject({ name: leaf, ...itemsIndex });
  });

  it('of a block that is missing', async () => {
    const [leaf] = await cluster.leaves(itemsIndex);
    await cluster.remove(leaf as string);
    expect(await finding(true)).toMatchObject({ name: leaf, ...itemsIndex });
  });
});

it('damage in a root that Block 0 holds is found, and nothing else can be', async () => {
  await cluster.replaceBlock0(({ inlined: [first, ...rest] }) => {
    const { name, block } = first as { name: string; block: string };
    const bytes = Buffer.from(block, 'base64');
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1;
    return { inlined: [{ name, block: bytes.toString('base64') }, ...rest] };
  });
  const report = await cluster.verify(node);
  expect(only(report.findings).message).toContain('does not match its checksum');
  expect(report).toMatchObject({ ok: false, tables: [] });
  expect(await cluster.run(node.db.repair())).toMatchObject({ ok: false, repaired: [], unrepairable: report.findings });
});

describe('blobs', () => {
  it('that are missing, cut off, grown, changed or swapped are named, and whose they are', async () => {
    const [zero, one, empty, large, four] = blobs as [string, string, string, string, string];
    await cluster.remove(zero);
    expect(await finding(false)).toMatchObject({
      name: zero,
      message: "The blob of field 'file' of row 0 of table 'items' is missing",
    });
    await cluster.putObject(zero, Buffer.from('zero'));
    expect(await cluster.findings(node)).toEqual([]);

    await cluster.putObject(large, new Uint8Array(4_999_999).fill(7));
    expect((await finding(false)).message).toMatch(/4999999 bytes long, and not 5000000 .* row 3 of/);
    const flipped = new Uint8Array(5_000_000).fill(7);
    flipped[4_800_000] = 8;
    await cluster.putObject(large, flipped);
    expect((await finding(false)).message).toMatch(/does not match its checksums.* row 3 of/);
    await cluster.putObject(large, new Uint8Array(5_000_000).fill(7));

    await cluster.putObject(empty, Buffer.from('x'));
    expect((await finding(false)).name).toBe(empty);
    await cluster.remove(empty);
    expect((await finding(false)).name).toBe(empty);
    await cluster.putObject(empty, new Uint8Array());

    await cluster.putObject(one, Buffer.from('four'));
    await cluster.putObject(four, Buffer.from('one'));
    const swapped = await cluster.findings(node);
    expect(swapped.map(({ name }) => name).toSorted()).toEqual([one, four].toSorted());
  });

  it('that only a pending commit names are read as well', async () => {
    const [name] = await cluster.storeBlobs(node, { 9: 'pending' });
    await cluster.remove(name as string);
    expect(await finding(false)).toMatchObject({ name });
  });

  it.each([['merged'], ['pending']])('of a record whose owner does not refer to them are named: %s', async (how) => {
    const record = { sizeBytes: 4, contentType: 'x/y', checksums: Buffer.alloc(4), createdAt: new Date(0) };
    const stray = 'ffffffff-0000-4000-8000-000000000000';
    const owner = { table: 'items', key: Buffer.from([1, 0x80, 0, 0, 5]), field: 'file' };
    await cluster.commitRows({ _blobs: [{ id: stray, ...record, ...owner }] });
    await cluster.run(how === 'merged' ? node.db.checkpoint() : node.db.refresh());
    const findings = await cluster.findings(node);
    expect(findings.map(({ message }) => message)).toEqual([
      `Blob ${stray} is listed as that of field 'file' of row 5 of table 'items', which does not refer to it`,
      "The blob of field 'file' of row 5 of table 'items' is missing",
    ]);
    expect(await cluster.findings(node, false)).toEqual([]);
  });

  it('whose record names a table, a field or a key that is not there', async () => {
    const owners = [
      { table: 'nowhere', key: Buffer.from([1, 0x80, 0, 0, 5]), field: 'file' },
      { table: 'items', key: Buffer.from([1, 0x80, 0, 0, 5]), field: 'text' },
      { table: 'items', key: Buffer.from([1, 0x80]), field: 'file' },
    ];
    for (const [i, owner] of owners.entries()) {
      const id = `ffffffff-0000-4000-8000-00000000000${i}`;
      const record = { id, sizeBytes: 0, contentType: 'x/y', checksums: Buffer.alloc(0), createdAt: new Date(0) };
      await cluster.commitRows({ _blobs: [{ ...record, ...owner }] });
      await cluster.putObject(`blobs/${id}`, new Uint8Array());
    }
    const findings = await cluster.findings(node);
    expect(findings).toHaveLength(3);
    for (const { message } of findings) expect(message).toContain('does not refer to it');
  });

  it.each([['merged'], ['pending']])('that a row refers to and has no right to: %s', async (how) => {
    const other = idOf(blobs[1] as string);
    const nobody = 'ffffffff-0000-4000-8000-000000000000';
    const ofAnotherField = 'ffffffff-0000-4000-8000-000000000001';
    const record = { sizeBytes: 0, contentType: 'x/y', checksums: Buffer.alloc(0), createdAt: new Date(0) };
    await cluster.commitRows({
      items: [
        { id: 20, group: 0, file: other },
        { id: 21, group: 1, file: nobody },
        { id: 22, group: 2, file: ofAnotherField },
      ],
      _blobs: [{ id: ofAnotherField, ...record, table: 'items', key: Buffer.from([1, 0x80, 0, 0, 22]), field: 'text' }],
    });
    await cluster.putObject(`blobs/${ofAnotherField}`, new Uint8Array());
    await cluster.run(how === 'merged' ? node.db.checkpoint() : node.db.refresh());
    const findings = await cluster.findings(node);
    expect(findings.map(({ message }) => message).toSorted()).toEqual([
      `Blob ${ofAnotherField} is listed as that of field 'text' of row 22 of table 'items', which does not refer to it`,
      `Field 'file' of row 20 of table 'items' refers to blob ${other}, which belongs to another row or field`,
      `Field 'file' of row 21 of table 'items' refers to blob ${nobody}, which is not listed`,
      `Field 'file' of row 22 of table 'items' refers to blob ${ofAnotherField}, which belongs to another row or field`,
    ]);
    expect(await cluster.findings(node, false)).toEqual([]);
  });

  it('that are listed as deleted, and not', async () => {
    const id = idOf(blobs[1] as string);
    await cluster.commitRows({ _deleted_blobs: [{ id, deletedAt: new Date(0) }] });
    await cluster.run(node.db.checkpoint());
    expect((await finding(false)).message).toBe(`Blob ${id} is listed as deleted, and as one that a row refers to`);
  });

  it('that the store does not give are no finding: the check rejects', async () => {
    node.driver.onGet(/^blobs/, refused, Infinity);
    expect(await cluster.failure(node.db.verify({ deep: true }))).toMatchObject({ code: 'STORAGE' });
  });

  it('whose list is damaged are found as far as it can be read', async () => {
    await cluster.storeBlobs(node, Object.fromEntries(range(10, 60).map((id) => [id, `blob ${id}`])));
    await cluster.run(node.db.checkpoint());
    const [leaf] = await cluster.leaves({ table: '_blobs' });
    await cluster.damage(leaf as string);
    const report = await cluster.verify(node);
    expect(only(report.findings)).toMatchObject({ name: leaf, table: '_blobs' });
    expect(report.blobs?.objects).toBeGreaterThan(20);
    expect(report.blobs?.objects).toBeLessThan(55);
  });
});

describe('snapshots and history', () => {
  /** Every row changed, blobs 0 and 1 replaced, and what is needed no longer collected. */
  async function moveOn(): Promise<void> {
    await cluster.run(cluster.put(node, range(5, 1000), 'second'));
    await cluster.storeBlobs(node, { 0: 'new', 1: 'newer' });
    await cluster.collectAll(node);
  }

  it('are read, each block once', async () => {
    // More than fits in memory, so that a block that is read twice is asked for twice.
    const small = await cluster.start(2, { maxMemoryBytes: 1024 * 1024, blockSizeBytes: 4096 });
    const write = (ids: readonly number[], text: string): Promise<void> => {
      const fill = cluster.flush(small, (batch) => {
        for (const id of ids) void batch.upsert(items, { id, text: text.padEnd(400, '.') });
      });
      return cluster.run(fill);
    };
    await write(range(0, 3000), 'first');
    const snapshots = [await cluster.run(small.db.snapshot())];
    await write(range(1000, 1500), 'second');
    await cluster.storeBlobs(small, { 0: 'new', 1: 'newer' });
    snapshots.push(await cluster.run(small.db.snapshot()));
    await cluster.collectAll(small);
    small.driver.takeLines();
    expect(await cluster.verify(small)).toMatchObject({ ok: true, keptStates: 2, garbage: { objects: 0 } });
    const reads = small.driver.takeLines().filter((line) => line.startsWith('get data/items/'));
    const blocks = await cluster.namesIn('data/items');
    expect(blocks.length).toBeGreaterThan(300);
    // Rows are read again for the index, which is in their order.
    expect(reads.length).toBeLessThan(blocks.length * 2.5);
    for (const snapshot of snapshots) await cluster.run(snapshot.release());
  });

  it('are named by objects that only they show', async () => {
    const before = await cluster.leaves({ table: 'items' });
    const snapshot = await cluster.run(node.db.snapshot());
    await moveOn();
    const [leaf] = before.slice(2);
    await cluster.damage(leaf as string);
    const shown = { snapshot: snapshot.id, generation: snapshot.generation };
    expect(await finding(false)).toMatchObject({ name: leaf, table: 'items', ...shown });
    await cluster.damage(leaf as string);
    await cluster.remove(blobs[1] as string);
    expect(await finding(false)).toMatchObject({ name: blobs[1], ...shown });
    await cluster.putObject(blobs[1] as string, Buffer.from('one'));
    const root = await cluster.bytes(rootName(snapshot.id));
    await cluster.damage(rootName(snapshot.id));
    expect(await finding(false)).toMatchObject({ name: rootName(snapshot.id), ...shown });
    await cluster.remove(rootName(snapshot.id));
    expect(await finding(false)).toMatchObject({ name: rootName(snapshot.id), ...shown });
    // What is hidden by that is not taken for garbage.
    expect((await cluster.verify(node)).garbage).toEqual({ objects: 0, bytes: 0 });
    await cluster.putObject(rootName(snapshot.id), root);
    expect(await cluster.findings(node)).toEqual([]);
  });

  it('that are damaged in objects shared with the present state are not named again', async () => {
    await cluster.run(node.db.snapshot());
    const [leaf] = await cluster.leaves({ table: 'items' });
    await cluster.damage(leaf as string);
    const found = only(await cluster.findings(node));
    expect(found).toMatchObject({ name: leaf, table: 'items' });
    expect(found).not.toHaveProperty('snapshot');
  });

  it('are distinguished: history has a generation', async () => {
    const keeper = await cluster.start(1, { history: '1d' });
    const { generation } = await cluster.block0();
    const [leaf] = await cluster.leaves({ table: 'items' });
    await cluster.run(cluster.put(keeper, range(0, 300), 'second'));
    await cluster.run(keeper.db.checkpoint());
    expect(await cluster.verify(node)).toMatchObject({ ok: true, keptStates: 1 });
    await cluster.damage(leaf as string);
    const found = await finding(false);
    expect(found).toMatchObject({ name: leaf, table: 'items', generation });
    expect(found).not.toHaveProperty('snapshot');
    await cluster.damage(leaf as string);
    await cluster.remove(historyName(generation));
    expect(await finding(false)).toMatchObject({ name: historyName(generation), generation });
  });

  it('are not taken for right because all of their blocks are', async () => {
    const snapshot = await cluster.run(node.db.snapshot());
    await cluster.run(cluster.put(node, [999], 'second'));
    await cluster.run(node.db.checkpoint());
    // The snapshot's first subtree stands in the place of its second one as well; the present state shares both.
    await cluster.rewriteKeptRoot(rootName(snapshot.id), 'items', (root, entries) => {
      for (let i = 0; i < root.count; i++) entries.addChild(root.key(i), root.child(i === 1 ? 0 : i));
    });
    const findings = await cluster.findings(node);
    expect(findings.length).toBeGreaterThan(0);
    for (const each of findings) expect(each).toMatchObject({ table: 'items', snapshot: snapshot.id });
    expect(findings.map(({ message }) => message).join()).toContain('below the separator');
  });
});

describe('objects', () => {
  it('that nothing refers to are counted as garbage, and foreign ones are named; neither is a finding', async () => {
    await cluster.collectAll(node);
    const { generation } = await cluster.block0();
    const birth = (n: number): string => n.toString(16).padStart(12, '0');
    const orphan = `data/items/${birth(generation)}-00000000000000aa`;
    const ofMergeUnderWay = `indexes/items/group/${birth(generation + 1)}-00000000000000aa`;
    const unknown = ['other/y', 'data/items/notes', 'committed/1', 'zzz'];
    for (const name of [orphan, ofMergeUnderWay, 'probe/x', 'staged/y', ...unknown]) {
      await cluster.putObject(name, Buffer.from('12345'));
    }
    const report = await cluster.verify(node);
    expect(report).toMatchObject({ ok: true, findings: [], garbage: { objects: 1, bytes: 5 } });
    expect(report.unknownObjects).toEqual([...unknown, 'staged/y'].toSorted());
  });

  it('are garbage exactly where gc would delete them', async () => {
    const snapshot = await cluster.run(node.db.snapshot());
    const found = new Set<string>();
    // What was staged for slots that the log may still be read for is no garbage.
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    for (let round = 0; round < 8; round++) {
      // Garbage of all kinds before there is history, while there is, and after it.
      const history = round < 3 || round > 5 ? 'off' : '1d';
      const keeper = await cluster.start(1 + round, { history });
      await cluster.run(cluster.put(round % 2 === 0 ? node : keeper, range(0, 300), `round ${round}`));
      await cluster.storeBlobs(keeper, { [10 + round]: 'x'.repeat(round), 30: `replaced ${round}` });
      // Some were about to take a snapshot, and crashed.
      for (const generation of [snapshot.generation, (await cluster.block0()).generation]) {
        const root = rootName(rootId(generation, String(round).repeat(16)));
        await cluster.putObject(root, await cluster.bytes('block0'));
      }
      const staged = `staged/0000000000000001-ffffffff-0000-4000-8000-00000000000${round}`;
      await cluster.putObject(staged, Buffer.from('123'));
      await cluster.run(keeper.db.checkpoint());
      if (round % 3 === 1) await cluster.run(keeper.db.gc({ loopGraceMs: 0 }));
      await cluster.run(keeper.db.stop());
      const { garbage } = await cluster.run(node.db.gc({ dryRun: true }));
      // How far the log may be trimmed only a clock can tell.
      const wanted = garbage.filter(({ kind }) => kind !== 'commit');
      const report = await cluster.verify(node);
      expect(report.findings).toEqual([]);
      const bytes = wanted.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      expect(report.garbage).toEqual({ objects: wanted.length, bytes });
      for (const { kind } of wanted) found.add(kind);
    }
    expect(found).toEqual(new Set(['blob', 'block', 'history', 'root', 'staged']));
    await cluster.run(snapshot.release());
    await cluster.collectAll(node);
    expect((await cluster.verify(node)).garbage).toEqual({ objects: 0, bytes: 0 });
  });

  it('of the base of a migration are no garbage, and are checked', async () => {
    await cluster.collectAll(node);
    const { tables, inlined } = await cluster.block0();
    const [leaf] = await cluster.leaves({ table: 'items' });
    await cluster.run(cluster.put(node, range(5, 1000), 'second'));
    await cluster.run(node.db.checkpoint());
    const earlier = tables.find(({ name }) => name === 'items')?.versions[0];
    const state = { phase: 'beside', built: '', users: [], problems: [], birth: 0 } as const;
    await cluster.replaceBlock0((present) => ({
      inlined: [...inlined, ...present.inlined.filter(({ name }) => inlined.every((other) => other.name !== name))],
      tables: present.tables.map(({ name, versions }) => {
        const empty = versions.map(({ schema, indexes }) => {
          return {
            schema: { ...schema, version: 2 },
            root: null,
            indexes: indexes.map((index) => ({ ...index, root: null })),
          };
        });
        return { name, versions: name === 'items' ? [...versions, ...empty] : versions };
      }),
      migrations: [{ table: 'items', from: 1, to: 2, base: earlier?.root ?? null, ...state }],
    }));
    const { garbage } = await cluster.run(node.db.gc({ dryRun: true }));
    const blocks = garbage.filter(({ kind }) => kind === 'block');
    expect(await cluster.verify(node)).toMatchObject({ ok: true, garbage: { objects: blocks.length } });
    await cluster.damage(leaf as string);
    expect(await finding(true)).toMatchObject({ name: leaf, table: 'items' });
  });

  it('below a damaged block are not taken for garbage', async () => {
    await cluster.collectAll(node);
    const [leaves, [inner]] = (await cluster.blocks({ table: 'items' })) as [string[], string[]];
    expect(leaves.length).toBeGreaterThan(20);
    await cluster.damage(inner as string);
    expect(await cluster.verify(node)).toMatchObject({ ok: false, garbage: { objects: 0 } });
  });

  it('are commits, and one is missing before others', async () => {
    const { appliedSeq } = await cluster.block0();
    for (const id of [1, 2, 3]) await cluster.run(cluster.put(node, [id], 'pending'));
    const gone = commitName(appliedSeq + 2);
    const bytes = await cluster.bytes(gone);
    await cluster.remove(gone);
    expect(await finding(true)).toMatchObject({
      name: gone,
      message: `The commit is missing, and there are later ones (up to slot ${appliedSeq + 3})`,
    });
    await cluster.putObject(gone, bytes);
    expect(await cluster.findings(node)).toEqual([]);
  });

  it('are not missing where a listing shows a commit before the one before it', async () => {
    const { appliedSeq } = await cluster.block0();
    for (const id of [1, 2, 3]) await cluster.run(cluster.put(node, [id], 'pending'));
    const unlisted = commitName(appliedSeq + 2);
    node.driver.onList(async (pass) => {
      const page = await pass();
      return { ...page, entries: page.entries.filter(({ key }) => !key.endsWith(unlisted)) };
    });
    expect(await cluster.findings(node)).toEqual([]);
  });
});

describe('while others go on', () => {
  /** When the check begins to read a state, another node changes everything, merges and collects. */
  async function mergeMeanwhile(times: number): Promise<void> {
    const other = await cluster.start(1);
    let left = 0;
    const arm = async <R>(pass: () => Promise<R>): Promise<R> => {
      left = 1;
      return pass();
    };
    node.driver.onGet(/^block0$/, arm, Infinity);
    let merges = 0;
    const event = async (): Promise<void> => {
      if (left-- !== 1 || merges++ >= times) return;
      await cluster.put(other, range(5, 1000), `merges ${merges} times`);
      await other.db.checkpoint();
      await other.db.gc({ loopGraceMs: 0 });
    };
    node.driver.onGet(/^data\/items/, after(event), Infinity);
  }

  it.each([false, true])('finds nothing where garbage is collected past it: deep %s', async (deep) => {
    await mergeMeanwhile(1);
    expect(await cluster.verify(node, deep)).toMatchObject({ ok: true, findings: [] });
    // The second time it held on to what it read, and let go of it again.
    expect((await cluster.block0()).snapshots).toEqual([]);
    expect(await cluster.namesIn('roots')).toEqual([]);
  });

  it('holds on to the state when it checks again', async () => {
    await mergeMeanwhile(4);
    node.driver.takeLines();
    expect(await cluster.verify(node)).toMatchObject({ ok: true, findings: [] });
    const pins = node.driver.takeLines().filter((line) => line.startsWith('put roots/'));
    expect(pins).toHaveLength(1);
  });

  it('says so if it may not pin it, and its state is collected every time', async () => {
    await mergeMeanwhile(Infinity);
    node.driver.onPut(/^roots\//, refused, Infinity);
    expect(await cluster.failure(node.db.verify({ deep: true }))).toMatchObject({ code: 'CONTENTION' });
  });

  it('finds the damage all the same', async () => {
    await mergeMeanwhile(1);
    await cluster.remove(blobs[4] as string);
    expect(only(await cluster.findings(node))).toMatchObject({ name: blobs[4] });
  });

  it('says nothing of a snapshot that has ended meanwhile', async () => {
    const other = await cluster.start(1);
    const snapshot = await cluster.run(other.db.snapshot());
    const [leaf] = await cluster.leaves({ table: 'items' });
    await cluster.run(cluster.put(node, range(0, 300), 'second'));
    await cluster.run(node.db.checkpoint());
    await cluster.damage(leaf as string);
    node.driver.onList(after(() => snapshot.release()));
    expect(await cluster.findings(node)).toEqual([]);
  });
});

describe('a check', () => {
  it('reports its progress', async () => {
    await cluster.storeBlobs(node, { 9: 'pending' });
    await cluster.run(node.db.snapshot());
    const seen: VerifyProgress[] = [];
    await cluster.run(node.db.verify({ deep: true, onProgress: (progress) => seen.push(progress) }));
    const last = seen.at(-1) as VerifyProgress;
    // 1,000 rows, as many entries of the index, six records of blobs, and the blobs.
    expect(last).toEqual({ done: 2012, total: 2012 });
    expect(seen.length).toBeGreaterThan(50);
    for (const [i, { done, total }] of seen.entries()) {
      expect(done).toBeGreaterThan(seen[i - 1]?.done ?? 0);
      expect(done).toBeLessThanOrEqual(total);
    }
  });

  it('is given up by its signal, and by stop()', async () => {
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const options = { deep: true, signal: controller.signal, onProgress: abort };
    expect(await cluster.failure(node.db.verify(options))).toMatchObject({ code: 'ABORTED' });
    let stopped: Promise<void> | undefined;
    const onProgress = (): void => {
      stopped ??= node.db.stop();
    };
    expect(await cluster.failure(node.db.verify({ deep: true, onProgress }))).toMatchObject({ code: 'NOT_STARTED' });
    await cluster.run(stopped as unknown as Promise<void>);
  });

  it('lets others run', async () => {
    let turns = 0;
    const { environment } = node;
    const yielding = environment.yieldToEventLoop.bind(environment);
    environment.yieldToEventLoop = () => {
      turns++;
      return yielding();
    };
    let nowMs = 0;
    environment.monotonicMs = () => (nowMs += 1);
    await cluster.verify(node);
    expect(turns).toBeGreaterThan(50);
  });

  it.each([
    ['deep', { deep: 'yes' }],
    ['onProgress', { onProgress: 1 }],
    ['depth', { depth: 1 }],
  ])('refuses a wrong option: %s', async (option, options) => {
    const error = await cluster.failure(node.db.verify(options as unknown as VerifyOptions));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option });
  });
});
