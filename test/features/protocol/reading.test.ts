/** The order of a reader's requests, and the answers that it believes (docs/protocol.md, "Read" and "Integrity"). */
import { beforeEach, describe, expect, it } from 'vitest';
import { CorruptionError, UnknownFormatError } from '../../../src/base/errors.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { Nodes, people, prefix, quietIntervalMs } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { after, before, hangs } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

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

/** Changes one byte of a stored object, and returns what puts it right again. */
async function damage(key: string, at = -3): Promise<() => Promise<unknown>> {
  const object = await nodes.store.get(key);
  if (object.status !== 'found') throw new Error(`there is no ${key}`);
  const bytes = object.bytes.slice();
  const position = at < 0 ? bytes.length + at : at;
  bytes[position] = (bytes[position] as number) ^ 0x40;
  await nodes.store.put(key, bytes, { if: 'any' });
  return () => nodes.store.put(key, object.bytes, { if: 'any' });
}

/** Slot 1 is used, merged and trimmed, and then put again, for a node that does not wait for that any more. */
async function putTooLate(): Promise<void> {
  const late = await nodes.start(2, options);
  let zombie: Uint8Array | undefined;
  late.driver.onPut(/^committed\/1$/, (_pass, { body }) => {
    zombie = body;
    return hangs();
  });
  void nodes.insert(late, 2).catch(() => undefined);
  await nodes.run(nodes.insert(a, 1));
  await nodes.run(a.db.checkpoint());
  await nodes.trimLog();
  await nodes.store.put(`${prefix}/${commitName(1)}`, zombie as Uint8Array, { if: 'any' });
}

describe('a refresh', () => {
  it('asks for the next slot, and only then for Block 0', async () => {
    await nodes.run(b.db.refresh());
    expect(b.driver.takeLines()).toEqual(['get committed/1 missing', 'get block0 unchanged']);
  });

  it('asks for Block 0 once it has all the slots, with a request of its own', async () => {
    for (let id = 0; id < 5; id++) await nodes.run(nodes.insert(a, id));
    await nodes.run(b.db.refresh());
    const lines = b.driver.takeLines();
    expect(lines.filter((line) => line.startsWith('get block0'))).toEqual(['get block0 unchanged']);
    expect(lines.at(-1)).toBe('get block0 unchanged');
    expect(await nodes.names(b, [0, 4])).toEqual(['row 0', 'row 4']);
  });

  it('sees commits from before its call, although another is under way', async () => {
    let second: Promise<void> | undefined;
    b.driver.onGet(
      /^committed\/1$/,
      before(async () => {
        // The first refresh has been told that the slot is missing; now something is committed.
        await nodes.insert(a, 1);
        second = b.db.refresh();
      }),
    );
    await nodes.run(b.db.refresh());
    await nodes.run(second as Promise<void>);
    expect(await nodes.names(b, [1])).toEqual(['row 1']);
  });

  it('goes on where the log was merged and trimmed while it read', async () => {
    for (let id = 0; id < 3; id++) await nodes.run(nodes.insert(a, id));
    b.driver.onGet(
      /^committed\/2$/,
      after(async () => {
        await a.db.checkpoint();
        await nodes.trimLog();
        await a.db.refresh();
        await nodes.insert(a, 3);
      }),
    );
    await nodes.run(b.db.refresh());
    expect(await nodes.names(b, [0, 1, 2, 3])).toEqual(['row 0', 'row 1', 'row 2', 'row 3']);
  });

  it('shows a slot to nobody before Block 0 has confirmed it', async () => {
    await putTooLate();
    let seen: unknown = 'nothing was asked';
    const look = async (): Promise<void> => {
      seen = [await b.db.get(people, 1), await b.db.get(people, 2)];
    };
    b.driver.onGet(/^block0$/, after(look));
    await nodes.run(b.db.refresh());
    expect(seen).toEqual([undefined, undefined]);
    expect(await nodes.names(b, [1, 2])).toEqual(['row 1', undefined]);
  });

  it('reads on behind a trimmed slot that was put again, to the commits on top of the first commit in it', async () => {
    await putTooLate();
    await nodes.run(nodes.insert(a, 3));
    b.driver.takeLines();
    await nodes.run(b.db.refresh());
    expect(b.driver.takeLines()).toEqual([
      'get committed/1 found',
      'get committed/2 found',
      'get block0 found',
      'get committed/2 found',
      'get committed/3 missing',
      'get block0 unchanged',
    ]);
    expect(await nodes.names(b, [1, 2, 3])).toEqual(['row 1', undefined, 'row 3']);
  });

  it('comes before a query of an instance whose view is older than two intervals', async () => {
    await nodes.run(b.db.stop());
    const late = await nodes.start(2, { polling: 'interval', writeForwardInterval: quietIntervalMs });
    // Its own turns fail, so that nothing else refreshes it.
    late.driver.onGet(/^committed/, () => Promise.reject(new Error('not now')), Number.POSITIVE_INFINITY);
    await nodes.environment.advance(2 * quietIntervalMs + 1000);
    late.driver.heal();
    await nodes.run(nodes.insert(a, 1));
    late.driver.takeLines();
    expect(await nodes.names(late, [1])).toEqual(['row 1']);
    expect(late.driver.takeLines()).toContain('get committed/1 found');
  });
});

describe('damage', () => {
  it('of a commit is read again once, and then named', async () => {
    await nodes.run(nodes.insert(a, 1));
    const key = `${prefix}/${commitName(1)}`;
    const repair = await damage(key);
    const error = await nodes.failure(b.db.refresh());
    expect(error).toBeInstanceOf(CorruptionError);
    expect((error as CorruptionError).key).toContain(commitName(1));
    expect(b.driver.takeLines().filter((line) => line === 'get committed/1 found')).toHaveLength(2);
    b.driver.onGet(
      /^committed\/1$/,
      before(() => repair()),
    );
    await nodes.run(b.db.refresh());
    expect(await nodes.names(b, [1])).toEqual(['row 1']);
  });

  it('of a block is read again once, and then named', async () => {
    await nodes.run(insertMany(a, 0, 200));
    await nodes.run(a.db.checkpoint());
    const reader = await nodes.start(2, options);
    const leaves = (await nodes.keys()).filter((key) => key.startsWith('data/'));
    const repairs = [];
    for (const key of leaves) repairs.push(await damage(`${prefix}/${key}`));
    const error = await nodes.failure(reader.db.get(people, 100));
    expect(error).toBeInstanceOf(CorruptionError);
    expect(leaves).toContain((error as CorruptionError).key);
    const lines = reader.driver.takeLines();
    expect(lines).toHaveLength(2);
    const report = await nodes.run(reader.db.verify());
    expect(report.ok).toBe(false);
    expect(report.findings.some(({ name }) => leaves.includes(name))).toBe(true);
    for (const repair of repairs) await repair();
    expect(await nodes.names(reader, [100])).toEqual(['row 100']);
    // One damaged answer is no damage of the store.
    const third = await nodes.start(3, options);
    third.driver.onGet(/^data/, async (pass) => {
      const result = await pass();
      if (result.status !== 'found') return result;
      const bytes = result.bytes.slice();
      bytes[40] = (bytes[40] as number) ^ 1;
      return { ...result, bytes };
    });
    expect(await nodes.names(third, [100])).toEqual(['row 100']);
  });

  it('of Block 0 is named', async () => {
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    const repair = await damage(`${prefix}/block0`);
    for (const call of [() => b.db.refresh(), () => nodes.make(2).db.start()]) {
      const error = await nodes.failure(call());
      expect(error).toBeInstanceOf(CorruptionError);
      expect((error as CorruptionError).key).toContain('block0');
    }
    await repair();
    const again = await nodes.start(2);
    expect(await nodes.names(again, [1])).toEqual(['row 1']);
  });

  it('of one answer with Block 0 is none of the store: it is read again', async () => {
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    const reader = nodes.make(2);
    for (const [node, call] of [
      [b, () => b.db.refresh()],
      [reader, () => reader.db.start()],
    ] as const) {
      node.driver.onGet(/^block0$/, async (pass) => {
        const result = await pass();
        if (result.status !== 'found') return result;
        const bytes = result.bytes.slice();
        bytes[40] = (bytes[40] as number) ^ 1;
        return { ...result, bytes };
      });
      await nodes.run(call());
      expect(await nodes.names(node, [1])).toEqual(['row 1']);
    }
  });

  it('is distinguished from a future format, in Block 0 and in commits', async () => {
    const block0 = await nodes.block0();
    await nodes.store.put(`${prefix}/block0`, encodeBlock0({ ...block0, format: 99 }), { if: 'any' });
    expect(await nodes.failure(nodes.make(2).db.start())).toBeInstanceOf(UnknownFormatError);
  });

  it('by a commit of another database is refused', async () => {
    const foreign = new Nodes(2);
    const other = await foreign.start(0);
    await foreign.run(foreign.insert(other, 7));
    const commit = await foreign.store.get(`${prefix}/${commitName(1)}`);
    if (commit.status !== 'found') throw new Error('no commit');
    await nodes.store.put(`${prefix}/${commitName(1)}`, commit.bytes, { if: 'any' });
    expect(await nodes.failure(b.db.refresh())).toBeInstanceOf(CorruptionError);
  });

  it('by a commit in the wrong slot is refused', async () => {
    await nodes.run(nodes.insert(a, 1));
    const commit = await nodes.store.get(`${prefix}/${commitName(1)}`);
    if (commit.status !== 'found') throw new Error('no commit');
    await nodes.store.put(`${prefix}/${commitName(2)}`, commit.bytes, { if: 'any' });
    expect(await nodes.failure(b.db.refresh())).toBeInstanceOf(CorruptionError);
  });
});

describe('a block that is gone', () => {
  beforeEach(async () => {
    await nodes.run(insertMany(a, 0, 200));
    await nodes.run(a.db.checkpoint());
  });

  async function removeLeaves(): Promise<void> {
    await nodes.store.delete(
      (await nodes.keys()).filter((key) => key.startsWith('data/')).map((key) => `${prefix}/${key}`),
    );
  }

  it('leads to a refresh, and to the same read on the newer state', async () => {
    const reader = await nodes.start(2, options);
    const old = (await nodes.keys()).filter((key) => key.startsWith('data/'));
    const rewrite = a.db.batch();
    for (let id = 0; id < 200; id++) void rewrite.update(people, { id, name: `new ${id}` });
    await nodes.run(rewrite.flush());
    await nodes.run(a.db.checkpoint());
    // What collecting garbage does: nothing of the present state refers to the old leaves.
    await nodes.store.delete(old.map((key) => `${prefix}/${key}`));
    expect(await nodes.names(reader, [100])).toEqual(['new 100']);
    expect((await nodes.run(reader.db.verify())).ok).toBe(true);
  });

  it('is a CorruptionError where Block 0 has not moved on, and no loop', async () => {
    const reader = await nodes.start(2, options);
    await removeLeaves();
    const error = await nodes.failure(reader.db.get(people, 100));
    expect(error).toBeInstanceOf(CorruptionError);
    expect((error as CorruptionError).key).toMatch(/^data\/people\//);
    expect(reader.driver.takeLines().length).toBeLessThan(6);
  });

  it('is a CorruptionError where only bookkeeping has changed', async () => {
    const reader = await nodes.start(2, options);
    await removeLeaves();
    await nodes.replaceBlock0(() => ({ nodes: [0, 5] }));
    expect(await nodes.failure(reader.db.get(people, 100))).toBeInstanceOf(CorruptionError);
    expect(reader.driver.takeLines().length).toBeLessThan(8);
  });

  it('fails a merge that needs it, and the log keeps the unmerged commits', async () => {
    const writer = await nodes.start(2, options);
    await removeLeaves();
    const batch = writer.db.batch();
    void batch.delete(people, 100);
    await nodes.run(batch.flush());
    expect(await nodes.failure(writer.db.checkpoint())).toBeInstanceOf(CorruptionError);
    expect(await nodes.names(writer, [100])).toEqual([undefined]);
  });

  it('fails a flush that depends on it', async () => {
    const writer = await nodes.start(2, options);
    await removeLeaves();
    const batch = writer.db.batch();
    void batch.upsert(people, { id: 100, name: 'new' });
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CorruptionError);
    expect(batch.size).toBe(1);
  });
});
