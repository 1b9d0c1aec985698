/** db.resolveCommit(): the outcome of a commit in doubt, for every instance that can read. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { CommitOutcomeUnknownError } from '../../../src/base/errors.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { caught, Nodes, people, prefix } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { answerLost, refused, requestLost } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;
let replica: TestNode;

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
  b = await nodes.start(1);
  replica = await nodes.start(2, { role: 'replica' });
  replica.driver.onPut(/^/, refused, Infinity);
});

/** Flushes a row of node `a`, which never hears whether its commit was written. */
async function flushBlindly(reaches: boolean, id = 1): Promise<CommitOutcomeUnknownError> {
  if (reaches) a.driver.onPut(/^committed/, answerLost);
  a.driver.onPut(/^committed/, requestLost, Infinity);
  a.driver.onGet(/^committed/, requestLost, Infinity);
  const error = await nodes.failure(nodes.insert(a, id));
  expect(error).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
  a.driver.heal();
  return error as CommitOutcomeUnknownError;
}

let nextId = 1000;

/** Applies this many commits, each merged. */
async function commitMany(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nodes.run(nodes.insert(b, nextId++));
  await nodes.run(b.db.checkpoint());
}

describe('a commit that was written', () => {
  it('is known to another process, to a replica, and to its writer; and is shown then', async () => {
    const error = await flushBlindly(true);
    for (const node of [b, replica, a]) {
      expect(await nodes.run(node.db.resolveCommit(error))).toBe(true);
      expect(node.db.position).toBe(1);
      expect(await nodes.names(node, [1])).toEqual(['row 1']);
    }
    expect(await nodes.hasSlot(2)).toBe(false);
  });

  it('takes two reads, and two more if it is not shown yet', async () => {
    const { commitId, slot } = await flushBlindly(true);
    await nodes.run(replica.db.resolveCommit({ commitId, slot }));
    expect(replica.driver.takeLines()).toEqual([
      'get committed/1 found',
      'get block0 unchanged',
      'get committed/1 found',
      'get committed/2 missing',
      'get block0 unchanged',
    ]);
    await nodes.run(replica.db.resolveCommit({ commitId, slot }));
    expect(replica.driver.takeLines()).toEqual(['get committed/1 found', 'get block0 unchanged']);
  });

  it('is known after it was merged and trimmed, as long as Block 0 lists it', async () => {
    const error = await flushBlindly(true);
    await nodes.run(b.db.refresh());
    await commitMany(127);
    await nodes.trimLog();
    for (const node of [replica, b]) expect(await nodes.run(node.db.resolveCommit(error))).toBe(true);
    await commitMany(1);
    await nodes.trimLog();
    // Nobody can tell any more.
    expect(await nodes.failure(replica.db.resolveCommit(error))).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
  });

  it('is known by its slot after the list has moved past it, while the slot is there', async () => {
    const error = await flushBlindly(true);
    await nodes.run(b.db.refresh());
    await commitMany(140);
    expect(await nodes.run(replica.db.resolveCommit(error))).toBe(true);
  });
});

describe('a commit that was not written', () => {
  it('is not "no" while its slot is free: it may still land', async () => {
    const error = await flushBlindly(false);
    for (const node of [b, replica]) {
      const unknown = await nodes.failure(node.db.resolveCommit(error));
      expect(unknown).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN', commitId: error.commitId, slot: 1 });
    }
    const { body } = a.driver.bodies.find(({ key }) => key === 'committed/1') ?? {};
    await nodes.store.put(`${prefix}/${commitName(1)}`, body as Uint8Array, { if: 'absent' });
    expect(await nodes.run(replica.db.resolveCommit(error))).toBe(true);
  });

  it('is "no" once another has the slot: before and after that is merged and trimmed', async () => {
    const error = await flushBlindly(false);
    await nodes.run(nodes.insert(b, 2));
    for (const node of [b, replica]) expect(await nodes.run(node.db.resolveCommit(error))).toBe(false);
    await nodes.run(b.db.checkpoint());
    expect(await nodes.run(replica.db.resolveCommit(error))).toBe(false);
    await nodes.trimLog();
    expect(await nodes.run(replica.db.resolveCommit(error))).toBe(false);
    // It lands at last, in a slot that decides nothing any more.
    const { body } = a.driver.bodies.find(({ key }) => key === 'committed/1') ?? {};
    await nodes.store.put(`${prefix}/${commitName(1)}`, body as Uint8Array, { if: 'absent' });
    expect(await nodes.run(replica.db.resolveCommit(error))).toBe(false);
    expect(await nodes.run(a.db.resolveCommit(error))).toBe(false);
    await nodes.run(replica.db.refresh());
    expect(await nodes.names(replica, [1, 2])).toEqual([undefined, 'row 2']);
  });

  it('is not "yes" for a put that lands where the log was trimmed and Block 0 lists the slot no more', async () => {
    const error = await flushBlindly(false);
    await nodes.run(nodes.insert(b, 2));
    await commitMany(130);
    await nodes.trimLog();
    const { body } = a.driver.bodies.find(({ key }) => key === 'committed/1') ?? {};
    await nodes.store.put(`${prefix}/${commitName(1)}`, body as Uint8Array, { if: 'absent' });
    for (const node of [b, replica]) {
      expect(await nodes.failure(node.db.resolveCommit(error))).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
    }
  });

  it('is put again by the instance that has it, when asked there', async () => {
    const error = await flushBlindly(false);
    expect(await nodes.run(a.db.resolveCommit(error))).toBe(true);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });
});

describe('asking', () => {
  it('is no answer where the store gives none', async () => {
    const error = await flushBlindly(true);
    replica.driver.onGet(/^/, requestLost, Infinity);
    const unknown = await nodes.failure(replica.db.resolveCommit(error));
    expect(unknown).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN', cause: { code: 'STORAGE' } });
    replica.driver.heal();
    const given = await nodes.failure(replica.db.resolveCommit(error, { signal: AbortSignal.abort() }));
    expect(given).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
  });

  it('believes a slot only with a Block 0 that was read after it', async () => {
    const error = await flushBlindly(false);
    await nodes.run(nodes.insert(b, 2));
    await nodes.run(b.db.checkpoint());
    await nodes.trimLog();
    const { body } = a.driver.bodies.find(({ key }) => key === 'committed/1') ?? {};
    await nodes.store.put(`${prefix}/${commitName(1)}`, body as Uint8Array, { if: 'absent' });
    // Its own Block 0 is older than the trimming.
    expect(replica.db.stats().log?.appliedSeq).toBe(0);
    expect(await nodes.run(replica.db.resolveCommit(error))).toBe(false);
  });

  it('with a wrong slot says nothing of the commit in its own', async () => {
    await nodes.run(nodes.insert(b, 2));
    await nodes.run(a.db.refresh());
    a.driver.onPut(/^committed/, answerLost);
    a.driver.onGet(/^committed/, requestLost, Infinity);
    a.driver.onPut(/^committed/, requestLost, Infinity);
    const batch = a.db.batch();
    void batch.insert(people, { id: 1, name: 'row 1' });
    const { commitId, slot } = (await nodes.failure(batch.flush())) as CommitOutcomeUnknownError;
    a.driver.heal();
    expect(slot).toBe(2);
    expect(await nodes.run(a.db.resolveCommit({ commitId, slot: 1 }))).toBe(false);
    await nodes.run(batch.flush());
    expect(await nodes.hasSlot(3)).toBe(false);
    expect(await nodes.run(a.db.resolveCommit({ commitId, slot }))).toBe(true);
  });

  it('to another database is refused: "it was not applied" would have it written twice', async () => {
    const error = await flushBlindly(true);
    const others = new Nodes(2);
    const other = await others.start(0);
    const refusal = await others.failure(other.db.resolveCommit(error));
    expect(refusal).toMatchObject({ code: 'INVALID_OPTION', option: 'commit' });
    expect(String(refusal)).toContain(`to database ${error.databaseId}, and this one is `);
    expect(await nodes.run(b.db.resolveCommit(error))).toBe(true);
  });

  it('takes an error or its fields, and nothing else', async () => {
    const commitId = '0e0c1b1e-0000-4000-8000-000000000000';
    const wrong = [undefined, null, 1, commitId, {}, { commitId }, { commitId: 'x', slot: 1 }, { commitId, slot: 0 }];
    const ofNoDatabase = { commitId, slot: 1, databaseId: 'db' };
    for (const commit of [...wrong, { commitId, slot: 1.5 }, { commitId, slot: '1' }, ofNoDatabase]) {
      const error = await nodes.failure(a.db.resolveCommit(commit as { commitId: string; slot: number }));
      expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'commit' });
    }
    await nodes.run(b.db.stop());
    expect(await caught(b.db.resolveCommit({ commitId, slot: 1 }))).toMatchObject({ code: 'NOT_STARTED' });
  });
});
