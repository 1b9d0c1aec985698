/** Replacing Block 0: a merge that wins, loses, or gets no answer (docs/protocol.md, "Merge"). */
import { beforeEach, describe, expect, it } from 'vitest';
import { DatabaseReplacedError } from '../../../src/base/errors.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { historyName } from '../../../src/format/object-names.ts';
import { Nodes, people, prefix } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { after, answerLost, refused, requestLost } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

/** Small blocks, so that a merge writes some. */
const options = { blockSizeBytes: 512 };

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0, options);
  b = await nodes.start(1, options);
});

async function insertMany(node: TestNode, from: number, to: number): Promise<void> {
  const batch = node.db.batch();
  for (let id = from; id < to; id++) void batch.insert(people, { id, name: `row ${id}`, age: id % 100 });
  await batch.flush();
}

async function expectSound(node: TestNode): Promise<void> {
  expect(await nodes.run(node.db.verify())).toMatchObject({ ok: true, findings: [] });
}

function blockPuts({ driver }: TestNode): string[] {
  return driver.lines.filter((line) => /^put (data|indexes)/.test(line));
}

describe('a replacement that another write comes before', () => {
  it('keeps the state that it replaces, where it is history only since then', async () => {
    await nodes.run(insertMany(a, 0, 100));
    const keepHistory = (): Promise<void> =>
      nodes.replaceBlock0(({ generation }) => ({ history: { windowMs: 86_400_000, floor: generation } }));
    a.driver.onPut(/^block0$/, after(keepHistory));
    await nodes.run(a.db.checkpoint());
    expect(a.db.stats().merges).toMatchObject({ merges: 1, lostMerges: 0 });
    expect(await nodes.keys()).toContain(historyName(0));
  });
});

describe('a replacement whose outcome is open', () => {
  it('is recognised as its own by its nonce, and made once', async () => {
    await nodes.run(insertMany(a, 0, 100));
    a.driver.onPut(/^block0$/, answerLost);
    a.driver.takeLines();
    await nodes.run(a.db.checkpoint());
    expect(a.db.stats().merges).toMatchObject({ merges: 1, lostMerges: 0 });
    expect(a.driver.lines.filter((line) => line.startsWith('put block0'))).toEqual(['put block0 failed']);
    expect((await nodes.block0()).generation).toBe(1);
    await expectSound(a);
  });

  it('is recognised as its own if a repeated put learns that the ETag is gone', async () => {
    await nodes.run(insertMany(a, 0, 100));
    a.driver.onPut(/^block0$/, async (pass) => {
      await pass();
      return { status: 'lost' };
    });
    await nodes.run(a.db.checkpoint());
    expect(a.db.stats().merges).toMatchObject({ merges: 1, lostMerges: 0 });
    expect(a.log.filter(({ message }) => message.includes('PreconditionFailed'))).toEqual([]);
  });

  it('is made again where it did not land', async () => {
    await nodes.run(insertMany(a, 0, 100));
    a.driver.onPut(/^block0$/, requestLost, 2);
    await nodes.run(a.db.checkpoint());
    expect(a.db.stats().merges).toMatchObject({ merges: 1, lostMerges: 0 });
    expect((await nodes.block0()).revision).toBe(2);
  });

  it('that landed late, after the node had looked, is still applied once', async () => {
    await nodes.run(insertMany(a, 0, 100));
    let land: (() => Promise<unknown>) | undefined;
    a.driver.onPut(/^block0$/, (pass, request) => {
      land = pass;
      return requestLost(pass, request);
    });
    a.driver.onGet(/^block0$/, async (pass) => {
      const looked = await pass();
      await land?.();
      return looked;
    });
    await nodes.run(a.db.checkpoint());
    const block0 = await nodes.block0();
    expect(block0).toMatchObject({ generation: 1, appliedSeq: 1 });
    expect(await nodes.names(a, [0, 99])).toEqual(['row 0', 'row 99']);
    await expectSound(a);
  });

  it('fails the checkpoint with the reason, and not the database, where the store refuses it', async () => {
    await nodes.run(insertMany(a, 0, 100));
    a.driver.onPut(/^block0$/, refused, Number.POSITIVE_INFINITY);
    expect(await nodes.failure(a.db.checkpoint())).toMatchObject({ code: 'STORAGE', outcome: 'none' });
    a.driver.heal();
    await nodes.run(a.db.checkpoint());
    await expectSound(a);
  });
});

describe('a merge that loses the race for Block 0', () => {
  it('that the store fails is not tried on and on: a turn ends, and a checkpoint after a while', async () => {
    nodes = new Nodes();
    const node = await nodes.start(0, { writeForwardInterval: 5000 });
    await nodes.run(nodes.insert(node, 1));
    node.driver.onPut(/^block0/, requestLost, Number.POSITIVE_INFINITY);
    const puts = (): number => node.driver.takeLines().filter((line) => line.startsWith('put block0')).length;
    puts();
    await nodes.environment.advance(15_000);
    expect(puts()).toBeLessThanOrEqual(4 * 5);
    expect(node.log.filter(({ level }) => level === 'warn').length).toBeLessThanOrEqual(4 * 2);
    expect(await nodes.failure(node.db.checkpoint())).toMatchObject({
      code: 'STORAGE',
      message: 'There was no answer.',
    });
    expect(puts()).toBeLessThanOrEqual(9 * 5);
    node.driver.heal();
    await nodes.run(node.db.checkpoint());
    expect((await nodes.block0()).appliedSeq).toBe(1);
  });

  it('goes on with the same blocks if only bookkeeping has changed', async () => {
    await nodes.run(insertMany(a, 0, 100));
    a.driver.takeLines();
    a.driver.onPut(
      /^block0$/,
      after(() => nodes.replaceBlock0(() => ({ nodes: [0, 1, 7] }))),
    );
    await nodes.run(a.db.checkpoint());
    expect(a.db.stats().merges).toMatchObject({ merges: 1, lostMerges: 0 });
    const puts = a.driver.lines.filter((line) => line.startsWith('put'));
    // All blocks were written before the first attempt, and none after it.
    expect(puts.slice(-2)).toEqual(['put block0 lost', 'put block0 written']);
    expect(blockPuts(a).length).toBe(puts.length - 2);
    expect(await nodes.block0()).toMatchObject({ generation: 1, nodes: [0, 1, 7], appliedSeq: 1 });
    await expectSound(a);
  });

  it('drops its work if another generation came first: deletes nothing, and merges again', async () => {
    await nodes.run(insertMany(a, 0, 100));
    await nodes.run(b.db.refresh());
    a.driver.takeLines();
    let dropped: string[] = [];
    a.driver.onPut(
      /^block0$/,
      after(async () => {
        dropped = await nodes.keys();
        await b.db.checkpoint();
      }),
    );
    await nodes.run(a.db.checkpoint());
    expect(a.db.stats().merges).toMatchObject({ merges: 0, lostMerges: 1 });
    expect(a.driver.lines.filter((line) => line.startsWith('delete'))).toEqual([]);
    const kept = await nodes.keys();
    for (const key of dropped) expect(kept).toContain(key);
    // Nothing of what was dropped is used: the blocks of the next merge are new ones of the next birth.
    await nodes.run(insertMany(a, 100, 200));
    await nodes.run(a.db.checkpoint());
    expect(a.db.stats().merges).toMatchObject({ merges: 1, lostMerges: 1 });
    const births = blockPuts(a).map((line) => /\/([0-9a-f]{12})/.exec(line)?.[1]);
    expect(new Set(births)).toEqual(new Set(['000000000001', '000000000002']));
    expect(await nodes.block0()).toMatchObject({ generation: 2, appliedSeq: 2 });
    await nodes.run(b.db.refresh());
    for (const node of [a, b]) {
      expect(await nodes.names(node, [0, 150])).toEqual(['row 0', 'row 150']);
      await expectSound(node);
    }
  });

  it('refers to no block of an older birth than the generation that it makes new ones for', async () => {
    for (let round = 0; round < 4; round++) {
      await nodes.run(insertMany(a, round * 50, round * 50 + 50));
      a.driver.takeLines();
      await nodes.run(a.db.checkpoint());
      const { generation } = await nodes.block0();
      for (const line of blockPuts(a)) {
        const birth = Number.parseInt(/\/([0-9a-f]{12})/.exec(line)?.[1] as string, 16);
        expect(birth).toBe(generation);
      }
    }
  });

  it('logs PreconditionFailed with the key and both ETags', async () => {
    await nodes.run(insertMany(a, 0, 10));
    await nodes.run(b.db.refresh());
    const expected = await nodes.store.get(`${prefix}/block0`);
    a.driver.onPut(
      /^block0$/,
      after(() => b.db.checkpoint()),
    );
    await nodes.run(a.db.checkpoint());
    const actual = await nodes.store.get(`${prefix}/block0`);
    const lines = a.log.filter(({ message }) => message.includes('PreconditionFailed'));
    expect(lines).toHaveLength(1);
    expect(lines[0]?.details).toEqual({
      key: `${prefix}/block0`,
      expectedEtag: expected.status === 'found' ? expected.etag : '',
      actualEtag: actual.status === 'found' ? actual.etag : '',
    });
  });

  it('happens at random between nodes, even of one nodeId, and loses nothing', async () => {
    const twin = await nodes.start(0, options);
    const all = [a, b, twin];
    const { environment } = nodes;
    for (let round = 0; round < 30; round++) {
      const work = all.flatMap((node, i) => [
        nodes.insert(node, round * 10 + i),
        ...(environment.random() < 0.5 ? [node.db.checkpoint()] : []),
      ]);
      await nodes.run(Promise.all(work));
    }
    const ids = Array.from({ length: 30 }, (_, round) => [0, 1, 2].map((i) => round * 10 + i)).flat();
    for (const node of all) {
      await nodes.run(node.db.refresh());
      expect(await nodes.names(node, ids)).toEqual(ids.map((id) => `row ${id}`));
      await expectSound(node);
    }
    expect(all.reduce((lost, { db }) => lost + (db.stats().merges?.lostMerges ?? 0), 0)).toBeGreaterThan(0);
  });
});

describe('a database that was replaced under a running instance', () => {
  async function put(change: (block0: Block0) => Partial<Block0>): Promise<void> {
    const block0 = await nodes.block0();
    await nodes.store.put(`${prefix}/block0`, encodeBlock0({ ...block0, ...change(block0) }), { if: 'any' });
  }

  async function expectReplaced(node: TestNode): Promise<void> {
    expect(await nodes.failure(node.db.refresh())).toBeInstanceOf(DatabaseReplacedError);
    expect(await nodes.failure(node.db.checkpoint())).toBeInstanceOf(DatabaseReplacedError);
  }

  it('is noticed by another database id', async () => {
    await put(() => ({ databaseId: '00000000-0000-4000-8000-000000000000' }));
    await expectReplaced(a);
  });

  it('is noticed by a lower revision', async () => {
    const old = await nodes.block0();
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    await put(() => old);
    await expectReplaced(a);
  });

  it('is noticed by another Block 0 of the same revision', async () => {
    const old = await nodes.block0();
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    // Restored to the older state, and written to since by others.
    await put(() => ({ ...old, revision: old.revision + 1, nonce: 'somebody else' }));
    await expectReplaced(a);
  });

  it('is noticed by a higher revision without the merged commits', async () => {
    const old = await nodes.block0();
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    const { revision } = await nodes.block0();
    await put(() => ({ ...old, revision: revision + 1, nonce: 'somebody else' }));
    await expectReplaced(a);
  });

  it('is noticed by a higher revision in which another commit was merged', async () => {
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    await put(({ applied, revision }) => ({
      revision: revision + 1,
      applied: applied.map((commit) => ({
        ...commit,
        id: commit.id.replace(/^./, (first) => (first === '0' ? '1' : '0')),
      })),
    }));
    await expectReplaced(a);
  });

  it('stays noticed when others have written so much that it does not show any more', async () => {
    const old = await nodes.block0();
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    const { revision } = await nodes.block0();
    await put(() => old);
    await expectReplaced(a);
    await put((block0) => ({ ...block0, applied: [], appliedSeq: 1000, logFloor: 1000, revision: revision + 900 }));
    await expectReplaced(a);
  });

  it('is noticed where Block 0 is gone', async () => {
    await nodes.store.delete([`${prefix}/block0`]);
    await expectReplaced(a);
  });

  it('fails a flush as unknown, for its commit may be in the log of either', async () => {
    await put(() => ({ databaseId: '00000000-0000-4000-8000-000000000000' }));
    const error = await nodes.failure(nodes.insert(a, 1));
    expect(error).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
    expect((error as { cause?: unknown }).cause).toBeInstanceOf(DatabaseReplacedError);
  });
});
