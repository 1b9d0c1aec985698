/** The rules by which a commit wins a slot, or learns that it did not (docs/protocol.md, "Commit"). */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  CommitOutcomeUnknownError,
  ConditionFailedError,
  ContentionError,
  DuplicateKeyError,
  RowNotFoundError,
  StorageError,
} from '../../../src/base/errors.ts';
import type { Batch } from '../../../src/index.ts';
import { caught, Nodes, people } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { after, answerLost, before, hangs, refused, requestLost } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
  b = await nodes.start(1);
});

function batchOf({ db }: TestNode, ...ids: number[]): ReturnType<TestNode['db']['batch']> {
  const batch = db.batch();
  for (const id of ids) void batch.insert(people, { id, name: `row ${id}`, age: id % 100 });
  return batch;
}

async function expectSound(node: TestNode): Promise<void> {
  expect(await nodes.run(node.db.verify())).toMatchObject({ ok: true, findings: [] });
}

describe('a put whose outcome is open', () => {
  it('is recognised as its own where it landed without an answer, and applied once', async () => {
    a.driver.onPut(/^committed\/1$/, answerLost);
    await nodes.run(batchOf(a, 1).flush());
    expect(a.driver.takeLines()).toEqual(['put committed/1 failed', 'get committed/1 found', 'get block0 unchanged']);
    expect(await nodes.hasSlot(2)).toBe(false);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });

  it('is recognised as its own if a repeated put learns that the slot is taken', async () => {
    a.driver.onPut(/^committed\/1$/, async (pass) => {
      await pass();
      return { status: 'lost' };
    });
    await nodes.run(batchOf(a, 1).flush());
    expect(await nodes.hasSlot(2)).toBe(false);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });

  it('is repeated with the same bytes at the same slot where it did not land', async () => {
    a.driver.onPut(/^committed/, requestLost, 3);
    await nodes.run(batchOf(a, 1).flush());
    const puts = a.driver.bodies.filter(({ key }) => key.startsWith('committed'));
    expect(puts.map(({ key }) => key)).toEqual(Array(4).fill('committed/1'));
    for (const { body } of puts) expect(Buffer.from(body).equals(puts[0]?.body as Uint8Array)).toBe(true);
    expect(await nodes.hasSlot(2)).toBe(false);
  });

  it('takes no new slot while the old one is in doubt, even if others wait behind it', async () => {
    a.driver.onPut(/^committed/, requestLost, 3);
    const first = batchOf(a, 1).flush();
    await nodes.environment.quiesce();
    const second = batchOf(a, 2).flush();
    await nodes.run(Promise.all([first, second]));
    const keys = a.driver.bodies.map(({ key }) => key);
    expect(keys).toEqual([...Array<string>(4).fill('committed/1'), 'committed/2']);
  });

  it('counts as applied only once it is confirmed after the put', async () => {
    await nodes.run(batchOf(a, 1).flush());
    expect(a.driver.takeLines()).toEqual(['put committed/1 written', 'get block0 unchanged']);
  });
});

describe('a slot that another node won', () => {
  /** Lets b commit a change first, when a puts its second commit. */
  function commitFirst(change: (winner: Batch) => Promise<void>): void {
    a.driver.onPut(
      /^committed\/2$/,
      after(async () => {
        const winner = b.db.batch();
        void change(winner);
        await winner.flush();
      }),
    );
  }

  it('rejects with DuplicateKeyError if the winner inserted the same key', async () => {
    a.driver.onPut(
      /^committed\/1$/,
      after(() => nodes.insert(b, 1, "b's")),
    );
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(DuplicateKeyError);
    expect(batch.size).toBe(1);
    expect(await nodes.hasSlot(2)).toBe(false);
    expect(await nodes.names(a, [1])).toEqual(["b's"]);
  });

  it('rejects with ConditionFailedError if the winner broke a condition of an update or deletion', async () => {
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(b.db.refresh());
    commitFirst((winner) => winner.update(people, { id: 1, name: "b's" }, { if: { name: 'row 1' } }));
    const batch = a.db.batch();
    void batch.update(people, { id: 1, name: "a's" }, { if: { name: 'row 1' } });
    void batch.delete(people, 1, { if: { name: "a's" } });
    const error = await nodes.failure(batch.flush());
    expect(error).toBeInstanceOf(ConditionFailedError);
    expect(error).toMatchObject({ field: 'name', expected: 'row 1', actual: "b's" });
    expect(await nodes.names(a, [1])).toEqual(["b's"]);
  });

  it('is no hindrance to a condition that still holds', async () => {
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(b.db.refresh());
    commitFirst((winner) => winner.update(people, { id: 1, age: 5 }));
    const batch = a.db.batch();
    void batch.update(people, { id: 1, name: "a's" }, { if: { name: 'row 1' } });
    await nodes.run(batch.flush());
    expect(await nodes.run(a.db.get(people, 1))).toEqual({ id: 1, name: "a's", age: 5 });
  });

  it('rejects with RowNotFoundError if the winner deleted the row to update', async () => {
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(b.db.refresh());
    commitFirst((winner) => winner.delete('people', 1));
    const batch = a.db.batch();
    void batch.update(people, { id: 1, name: 'changed' });
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(RowNotFoundError);
    expect(await nodes.hasSlot(3)).toBe(false);
  });

  it("applies an update again on top of the winner's change: both changes stay", async () => {
    await nodes.run(nodes.insert(a, 1, 'old', 1));
    await nodes.run(b.db.refresh());
    commitFirst((winner) => winner.update(people, { id: 1, age: 99 }));
    const batch = a.db.batch();
    void batch.update(people, { id: 1, name: 'new' });
    await nodes.run(batch.flush());
    expect(await nodes.run(a.db.get(people, 1))).toEqual({ id: 1, name: 'new', age: 99 });
    await nodes.run(b.db.checkpoint());
    expect(await nodes.run(b.db.get(people, 1))).toEqual({ id: 1, name: 'new', age: 99 });
    await expectSound(b);
  });

  it('lets the later of two updates of the same field win', async () => {
    await nodes.run(nodes.insert(a, 1, 'old', 1));
    await nodes.run(b.db.refresh());
    commitFirst((winner) => winner.update(people, { id: 1, name: 'first', age: 99 }));
    const batch = a.db.batch();
    void batch.update(people, { id: 1, name: 'second' });
    await nodes.run(batch.flush());
    await nodes.run(b.db.refresh());
    for (const node of [a, b]) {
      expect(await nodes.run(node.db.get(people, 1))).toEqual({ id: 1, name: 'second', age: 99 });
    }
  });

  it('goes on to the next slot otherwise', async () => {
    a.driver.onPut(
      /^committed\/1$/,
      after(() => nodes.insert(b, 2)),
    );
    await nodes.run(batchOf(a, 1).flush());
    expect(await nodes.hasSlot(2)).toBe(true);
    await nodes.run(b.db.refresh());
    for (const node of [a, b]) expect(await nodes.names(node, [1, 2])).toEqual(['row 1', 'row 2']);
  });

  it('gives up with a definite ContentionError after many confirmed losses', async () => {
    let id = 100;
    a.driver.onPut(
      /^committed/,
      after(() => nodes.insert(b, id++)),
      Number.POSITIVE_INFINITY,
    );
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(ContentionError);
    expect(batch.size).toBe(1);
    a.driver.heal();
    await nodes.run(batch.flush());
    expect(await nodes.names(a, [1, 100])).toEqual(['row 1', 'row 100']);
  });

  it('rejects only on a tail refreshed after the call: a row deleted elsewhere does not stand in the way', async () => {
    await nodes.run(nodes.insert(a, 1, 'old'));
    await nodes.run(b.db.refresh());
    const remove = b.db.batch();
    void remove.delete('people', 1);
    await nodes.run(remove.flush());
    // Node a still sees the row, and must not trust that for a verdict.
    expect(await nodes.names(a, [1])).toEqual(['old']);
    await nodes.run(batchOf(a, 1).flush());
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });
});

describe('a definite failure', () => {
  it('of the first put is plain: nothing was applied and the batch keeps its operations', async () => {
    a.driver.onPut(/^committed/, refused);
    const batch = batchOf(a, 1);
    const error = await nodes.failure(batch.flush());
    expect(error).toBeInstanceOf(StorageError);
    expect(error).toMatchObject({ outcome: 'none', code: 'STORAGE', name: 'StorageError' });
    expect(batch.size).toBe(1);
    expect(await nodes.hasSlot(1)).toBe(false);
    await nodes.run(batch.flush());
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
    expect(batch.size).toBe(0);
  });

  it('after an ambiguous attempt is not: that one may still land', async () => {
    let late: (() => Promise<unknown>) | undefined;
    a.driver.onPut(/^committed/, (pass, { key }) => {
      late = pass;
      return Promise.reject(new StorageError(key, 'unknown', 'No answer.'));
    });
    a.driver.onPut(/^committed/, refused, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    const error = await nodes.failure(batch.flush());
    expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
    expect(error).toMatchObject({ slot: 1, code: 'COMMIT_OUTCOME_UNKNOWN' });
    await late?.();
    a.driver.heal();
    await nodes.run(batch.flush());
    expect(await nodes.hasSlot(2)).toBe(false);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });
});

describe('an outcome that stays unknown', () => {
  it('is resolved by the next flush: applied, and not twice', async () => {
    a.driver.onPut(/^committed/, answerLost);
    a.driver.onGet(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    a.driver.heal();
    void batch.insert(people, { id: 2, name: 'row 2' });
    await nodes.run(batch.flush());
    expect(batch.size).toBe(0);
    expect(await nodes.names(a, [1, 2])).toEqual(['row 1', 'row 2']);
    expect(await nodes.hasSlot(2)).toBe(true);
    expect(await nodes.hasSlot(3)).toBe(false);
    await expectSound(a);
  });

  it('is resolved by the next flush: lost to another node, and so flushed', async () => {
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    await nodes.run(nodes.insert(b, 2));
    a.driver.heal();
    await nodes.run(batch.flush());
    expect(await nodes.names(a, [1, 2])).toEqual(['row 1', 'row 2']);
    expect(await nodes.hasSlot(2)).toBe(true);
    expect(await nodes.hasSlot(3)).toBe(false);
  });

  it('is resolved by the next flush: still missing, and so put again at its slot', async () => {
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    const [first] = a.driver.bodies;
    a.driver.heal();
    a.driver.bodies.length = 0;
    await nodes.run(batch.flush());
    expect(a.driver.bodies.map(({ key }) => key)).toEqual(['committed/1']);
    expect(Buffer.from(a.driver.bodies[0]?.body ?? []).equals(first?.body as Uint8Array)).toBe(true);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });

  it('follows from giving the flush up once its put is under way', async () => {
    let land: (() => Promise<unknown>) | undefined;
    a.driver.onPut(/^committed/, (pass) => {
      land = pass;
      return hangs();
    });
    const controller = new AbortController();
    const batch = batchOf(a, 1);
    const flushed = caught(batch.flush({ signal: controller.signal }));
    await nodes.environment.quiesce();
    controller.abort();
    expect(await flushed).toBeInstanceOf(CommitOutcomeUnknownError);
    await land?.();
    await nodes.run(batch.flush());
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
    expect(await nodes.hasSlot(2)).toBe(false);
  });

  it('stays unknown, not a definite error, while the store cannot answer', async () => {
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    a.driver.onAll(requestLost);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    const controller = new AbortController();
    const flushed = caught(batch.flush({ signal: controller.signal }));
    await nodes.environment.quiesce();
    controller.abort();
    expect(await flushed).toBeInstanceOf(CommitOutcomeUnknownError);
  });

  it('gives the last answer of the store', async () => {
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    const error = await nodes.failure(batch.flush());
    expect(error.cause).toMatchObject({ code: 'STORAGE', message: 'There was no answer.' });
  });

  it('is resolved after a restart of the instance too', async () => {
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    await nodes.run(a.db.stop());
    a.driver.heal();
    await nodes.run(a.db.start());
    a.driver.onAll(requestLost);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    a.driver.heal();
    await nodes.run(batch.flush());
    await nodes.run(nodes.insert(b, 2));
    expect(await nodes.hasSlot(3)).toBe(false);
    await nodes.run(a.db.refresh());
    expect(await nodes.names(a, [1, 2])).toEqual(['row 1', 'row 2']);
  });
});

describe('a commit that is asked for after a restart, when its slot is at or under the floor', () => {
  /** Flushes with a put that lands only when it is told to, and restarts the instance. */
  async function flushInVain(): Promise<{ batch: ReturnType<typeof batchOf>; land: () => Promise<unknown> }> {
    let land: () => Promise<unknown> = () => Promise.resolve();
    a.driver.onPut(/^committed/, (pass, request) => {
      land = pass;
      return requestLost(pass, request);
    });
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = batchOf(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    await nodes.run(a.db.stop());
    a.driver.heal();
    return { batch, land };
  }

  it('was applied if the list of applied commits names it', async () => {
    const { batch, land } = await flushInVain();
    await land();
    await nodes.run(b.db.checkpoint());
    await nodes.trimLog();
    await nodes.run(a.db.start());
    await nodes.run(batch.flush());
    expect(await nodes.hasSlot(2)).toBe(false);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });

  it('was not if the list names another, even where the slot itself holds it: that is a zombie', async () => {
    const { batch, land } = await flushInVain();
    await nodes.run(nodes.insert(b, 2));
    await nodes.run(b.db.checkpoint());
    await nodes.trimLog();
    await land();
    expect(await nodes.hasSlot(1)).toBe(true);
    await nodes.run(a.db.start());
    await nodes.run(batch.flush());
    expect(await nodes.hasSlot(2)).toBe(true);
    expect(await nodes.names(a, [1, 2])).toEqual(['row 1', 'row 2']);
    await nodes.run(b.db.refresh());
    expect(await nodes.names(b, [1, 2])).toEqual(['row 1', 'row 2']);
  });
});

describe('a slot at or under the floor', () => {
  it('that was applied and trimmed meanwhile counts as applied, by the list of applied commits', async () => {
    a.driver.onPut(/^committed\/1$/, async (pass, { key }) => {
      await pass();
      await b.db.checkpoint();
      await nodes.trimLog();
      throw new StorageError(key, 'unknown', 'No answer.');
    });
    await nodes.run(batchOf(a, 1).flush());
    expect(a.driver.bodies.map(({ key }) => key)).toEqual(['committed/1']);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
    await expectSound(a);
  });

  it('that was won after it had been used and trimmed is a zombie: the flush goes on at the tail', async () => {
    a.driver.onPut(
      /^committed\/1$/,
      after(async () => {
        await nodes.insert(b, 2);
        await b.db.checkpoint();
        await nodes.trimLog();
      }),
    );
    await nodes.run(batchOf(a, 1).flush());
    expect(a.driver.lines).toContain('put committed/1 written');
    expect(a.driver.bodies.map(({ key }) => key)).toEqual(['committed/1', 'committed/2']);
    expect(await nodes.names(a, [1, 2])).toEqual(['row 1', 'row 2']);
    await nodes.run(b.db.refresh());
    expect(await nodes.names(b, [1, 2])).toEqual(['row 1', 'row 2']);
    await nodes.run(b.db.checkpoint());
    await expectSound(b);
  });

  it('that shows another one is no loss if the list says that the commit was applied', async () => {
    // Applied and trimmed; then somebody who had been paused won the dead slot.
    a.driver.onPut(/^committed\/1$/, async (pass, { key, body }) => {
      await pass();
      await b.db.checkpoint();
      await nodes.trimLog();
      const zombie = (body as Uint8Array).slice();
      await nodes.store.put(key, zombie, { if: 'absent' });
      return { status: 'lost' };
    });
    await nodes.run(batchOf(a, 1).flush());
    expect(await nodes.hasSlot(2)).toBe(false);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });

  it('that the list does not cover leaves the outcome unknown', async () => {
    a.driver.onPut(
      /^committed\/1$/,
      after(async () => {
        await nodes.insert(b, 2);
        await b.db.checkpoint();
        await nodes.replaceBlock0(({ appliedSeq }) => ({ logFloor: appliedSeq, applied: [] }));
      }),
    );
    const batch = batchOf(a, 1);
    const error = await nodes.failure(batch.flush());
    expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
    expect(error).toMatchObject({ slot: 1 });
    // It stays so: nobody can ever tell. The batch can be dropped.
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(CommitOutcomeUnknownError);
    batch.clear();
    await nodes.run(batch.flush());
    expect(await nodes.names(a, [1, 2])).toEqual([undefined, 'row 2']);
  });

  it('is never believed by who follows the log', async () => {
    const reader = await nodes.start(2);
    await nodes.run(nodes.insert(b, 2));
    await nodes.run(b.db.checkpoint());
    // The zombie is a commit of a node that was paused while its slot was used and trimmed, and that died then.
    a.driver.onPut(/^committed\/1$/, before(hangs));
    await nodes.trimLog();
    void batchOf(a, 1).flush();
    await nodes.environment.quiesce();
    expect(await nodes.hasSlot(1)).toBe(true);
    await nodes.run(reader.db.refresh());
    expect(reader.driver.takeLines()).toContain('get committed/1 found');
    expect(await nodes.names(reader, [1, 2])).toEqual([undefined, 'row 2']);
    // Nor does a validation see it: a key that only the zombie has is free.
    await nodes.run(batchOf(reader, 1).flush());
    expect(await nodes.names(reader, [1, 2])).toEqual(['row 1', 'row 2']);
    await nodes.run(reader.db.checkpoint());
    await expectSound(reader);
  });

  it('is not put behind: a flush whose view ends in a zombie slot validates on the real tail', async () => {
    // Finding 2: node a would see the zombie of slot 1 and put at slot 2 on top of it.
    const paused = await nodes.start(2);
    await nodes.run(nodes.insert(b, 2));
    await nodes.run(b.db.checkpoint());
    await nodes.trimLog();
    paused.driver.onPut(/^committed\/1$/, before(hangs));
    void batchOf(paused, 1).flush();
    await nodes.environment.quiesce();
    const batch = batchOf(a, 1);
    await nodes.run(batch.flush());
    expect(await nodes.names(a, [1, 2])).toEqual(['row 1', 'row 2']);
    await nodes.run(b.db.checkpoint());
    expect(await nodes.names(b, [1, 2])).toEqual(['row 1', 'row 2']);
    expect((await nodes.block0()).appliedSeq).toBe(2);
  });
});

describe('flushes of one process', () => {
  it('share a commit, each accepted or rejected on its own', async () => {
    const flushes = [1, 2, 1, 3].map((id) => batchOf(a, id).flush());
    const outcomes = await nodes.run(Promise.allSettled(flushes));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[2]).toMatchObject({ reason: { code: 'DUPLICATE_KEY' } });
    expect(await nodes.names(a, [1, 2, 3])).toEqual(['row 1', 'row 2', 'row 3']);
    const puts = a.driver.lines.filter((line) => line.startsWith('put'));
    expect(puts.length).toBeLessThan(4);
  });

  it('are not rejected for one of the same group that then fails itself', async () => {
    let answer: () => void = () => undefined;
    a.driver.onPut(/^committed\/1$/, async (pass) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return pass();
    });
    a.driver.onPut(/^committed\/2$/, refused);
    const first = batchOf(a, 1).flush();
    await nodes.environment.quiesce();
    // These two are validated together; only the first of them could make the second a duplicate.
    const failed = caught(batchOf(a, 2).flush());
    const second = batchOf(a, 2).flush();
    const outcome = second.then(
      () => 'applied',
      (error: unknown) => (error as { code?: string }).code,
    );
    answer();
    expect(await nodes.run(failed)).toMatchObject({ code: 'STORAGE' });
    await nodes.run(first);
    // It may share the failure of the group's put, which is true of it as well; never its verdict.
    expect(['applied', 'STORAGE']).toContain(await nodes.run(outcome));
  });

  it('keep their order, and none is forgotten, whenever they come', async () => {
    // A flush that comes in the very moment in which the writer finds its queue empty must not wait for ever.
    for (let turns = 0; turns < 40; turns++) {
      const first = batchOf(a, 1000 + turns).flush();
      const second = (async () => {
        for (let i = 0; i < turns; i++) await Promise.resolve();
        await batchOf(a, 2000 + turns).flush();
      })();
      const startedMs = nodes.environment.monotonicMs();
      await nodes.run(Promise.all([first, second]));
      expect(nodes.environment.monotonicMs()).toBe(startedMs);
    }
  });

  it('that one gave up before its put do not take the others along', async () => {
    a.driver.onPut(/^committed\/1$/, requestLost);
    const first = batchOf(a, 1).flush();
    await nodes.environment.quiesce();
    const controller = new AbortController();
    const given = caught(batchOf(a, 2).flush({ signal: controller.signal }));
    const kept = batchOf(a, 3).flush();
    await nodes.environment.quiesce();
    controller.abort();
    expect(await given).toMatchObject({ code: 'ABORTED' });
    await nodes.run(Promise.all([first, kept]));
    expect(await nodes.names(a, [1, 2, 3])).toEqual(['row 1', undefined, 'row 3']);
  });
});

describe('operations that cancel out', () => {
  function cancelled(node: TestNode, id: number): ReturnType<typeof batchOf> {
    const batch = batchOf(node, id);
    void batch.delete(people, id);
    return batch;
  }

  it('are committed without a put, once it is known that they still do', async () => {
    const batch = cancelled(a, 1);
    await nodes.run(batch.flush());
    expect(a.driver.takeLines()).toEqual(['get committed/1 missing', 'get block0 unchanged']);
    expect(batch.size).toBe(0);
    await nodes.run(batchOf(a, 1).flush());
    expect(a.driver.takeLines()).toEqual(['put committed/1 written', 'get block0 unchanged']);
  });

  it('are rejected for a row that another node inserted before the call', async () => {
    await nodes.run(batchOf(b, 1).flush());
    const batch = cancelled(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(DuplicateKeyError);
    expect(batch.size).toBe(2);
    expect(await nodes.names(a, [1])).toEqual(['row 1']);
  });

  it('affect no other flush: each flush of their group is accepted or rejected separately', async () => {
    await nodes.run(batchOf(a, 5).flush());
    a.driver.takeLines();
    // While the first one is under way the others wait, and then go together.
    const flushes = [batchOf(a, 9), cancelled(a, 1), batchOf(a, 5), cancelled(a, 2)].map((batch) => batch.flush());
    const outcomes = await nodes.run(Promise.allSettled(flushes));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[2]).toMatchObject({ reason: { code: 'DUPLICATE_KEY' } });
    expect(a.driver.takeLines().filter((line) => line.startsWith('put'))).toEqual(['put committed/2 written']);
    await expectSound(a);
  });

  it('share the put of those that do change something', async () => {
    const flushes = [batchOf(a, 9), cancelled(a, 1), batchOf(a, 2)].map((batch) => batch.flush());
    await nodes.run(Promise.all(flushes));
    expect(a.driver.takeLines().filter((line) => line.startsWith('put'))).toHaveLength(1);
    expect(await nodes.names(a, [1, 2, 9])).toEqual([undefined, 'row 2', 'row 9']);
  });

  it('fail for certain where the store cannot be asked', async () => {
    a.driver.onGet(/^committed/, refused, 4);
    const batch = cancelled(a, 1);
    expect(await nodes.failure(batch.flush())).toBeInstanceOf(StorageError);
    expect(batch.size).toBe(2);
    await nodes.run(batch.flush());
  });
});
