/** With the store down, every call ends with a clear error: it never hangs, and it never lies. */
import { beforeEach, describe, expect, it } from 'vitest';
import { caught, Nodes, people } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { hangs, requestLost } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;

const options = { blockSizeBytes: 512 };

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0, options);
  const batch = a.db.batch();
  for (let id = 0; id < 200; id++) void batch.insert(people, { id, name: `row ${id}`, age: id % 100 });
  await nodes.run(batch.flush());
  await nodes.run(a.db.checkpoint());
  a.driver.takeLines();
});

/** Runs a call to its error, and says how long that took by the virtual clock. */
async function failing(call: () => Promise<unknown>): Promise<{ error: Error & { code?: string }; tookMs: number }> {
  const startedMs = nodes.environment.monotonicMs();
  const error = await nodes.failure(call());
  return { error, tookMs: nodes.environment.monotonicMs() - startedMs };
}

function oneRow(): ReturnType<TestNode['db']['batch']> {
  const batch = a.db.batch();
  void batch.insert(people, { id: 1000, name: 'new' });
  return batch;
}

describe.each([
  ['never answers', hangs],
  ['answers with errors', requestLost],
] as const)('a store that %s', (_, script) => {
  beforeEach(() => {
    a.driver.onAll(script);
  });

  it('fails flush() within its deadline, as unknown, since its put may have landed', async () => {
    const batch = oneRow();
    const { error, tookMs } = await failing(() => batch.flush());
    expect(error.code).toBe('COMMIT_OUTCOME_UNKNOWN');
    expect(tookMs).toBeLessThanOrEqual(60_000);
    a.driver.heal();
    await nodes.run(batch.flush());
    expect(await nodes.names(a, [1000])).toEqual(['new']);
  });

  it('fails a flush that must resolve an older commit first within its deadline too', async () => {
    const batch = oneRow();
    await failing(() => batch.flush());
    const { error, tookMs } = await failing(() => batch.flush());
    expect(error.code).toBe('COMMIT_OUTCOME_UNKNOWN');
    expect(tookMs).toBeLessThanOrEqual(61_000);
  });

  it('fails refresh() within its deadline, and those that join it', async () => {
    const calls = [1, 2, 3].map(() => failing(() => a.db.refresh()));
    for (const { error, tookMs } of await Promise.all(calls)) {
      expect(['STORAGE', 'DEADLINE_EXCEEDED']).toContain(error.code);
      expect(tookMs).toBeLessThanOrEqual(61_000);
    }
  });

  it('fails checkpoint()', async () => {
    const { error, tookMs } = await failing(() => a.db.checkpoint());
    expect(['STORAGE', 'DEADLINE_EXCEEDED']).toContain(error.code);
    expect(tookMs).toBeLessThanOrEqual(70_000);
  });

  it('fails a read of a row that is not in memory, and verify()', async () => {
    a.driver.heal();
    const cold = await nodes.start(1, options);
    cold.driver.onAll(script);
    const read = await failing(() => cold.db.get(people, 100));
    expect(read.error.code).toBe('STORAGE');
    expect(read.tookMs).toBeLessThanOrEqual(70_000);
    expect((await failing(() => cold.db.verify())).error.code).toBe('STORAGE');
  });

  it('fails start() within its deadline, and it can be started later', async () => {
    const { db, driver } = nodes.make(1);
    driver.onAll(script);
    const { error, tookMs } = await failing(() => db.start());
    expect(['STORAGE', 'DEADLINE_EXCEEDED']).toContain(error.code);
    expect(tookMs).toBeLessThanOrEqual(61_000);
    driver.heal();
    await nodes.run(db.start());
  });

  it('does not keep stop() from ending while a flush is under way', async () => {
    const flushed = caught(oneRow().flush());
    await nodes.environment.quiesce();
    const startedMs = nodes.environment.monotonicMs();
    const outcome = a.db.stop().then(
      () => 'stopped',
      (error: unknown) => (error as { code?: string }).code,
    );
    expect(['stopped', 'DEADLINE_EXCEEDED']).toContain(await nodes.run(outcome));
    expect(nodes.environment.monotonicMs() - startedMs).toBeLessThanOrEqual(61_000);
    expect(await nodes.run(flushed)).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
  });

  it('does not keep stop() from ending while a merge is under way, nor leave a timer behind', async () => {
    a.driver.heal();
    await nodes.run(nodes.insert(a, 500));
    a.driver.onPut(/^data/, script, Number.POSITIVE_INFINITY);
    const merging = caught(a.db.checkpoint());
    await nodes.environment.quiesce();
    const startedMs = nodes.environment.monotonicMs();
    await nodes.run(a.db.stop().catch(() => undefined));
    expect(nodes.environment.monotonicMs() - startedMs).toBeLessThanOrEqual(61_000);
    await nodes.run(merging);
    expect(nodes.environment.timerCount).toBe(0);
  });

  it('does not end the write-forward loop: it goes on once the store is back', async () => {
    const interval = 5000;
    a.driver.heal();
    const looping = await nodes.start(1, {
      writeForwardInterval: interval,
      mergePolicy: { minCommits: 1 },
      nodes: [1],
    });
    looping.driver.onAll(script);
    await nodes.environment.advance(10 * 60_000);
    expect(looping.log.some(({ level }) => level === 'warn')).toBe(true);
    looping.driver.heal();
    await nodes.run(nodes.insert(a, 700));
    await nodes.environment.advance(10 * interval);
    expect((await nodes.block0()).appliedSeq).toBe(2);
    await nodes.run(looping.db.stop());
  });
});

describe('a signal', () => {
  it('that is aborted already stops every call before it does anything', async () => {
    const signal = AbortSignal.abort();
    const calls = [
      () => a.db.refresh({ signal }),
      () => a.db.checkpoint({ signal }),
      () => a.db.verify({ signal }),
      () => oneRow().flush({ signal }),
    ];
    for (const call of calls) expect((await failing(call)).error).toMatchObject({ code: 'ABORTED' });
    expect(a.driver.lines.filter((line) => line.startsWith('put'))).toEqual([]);
  });

  it('that is aborted while a call waits for the store ends it at once with AbortedError', async () => {
    const calls = [
      (signal: AbortSignal) => a.db.refresh({ signal }),
      (signal: AbortSignal) => a.db.checkpoint({ signal }),
      (signal: AbortSignal) => a.db.verify({ signal }),
    ];
    for (const call of calls) {
      a.driver.onAll(hangs);
      const controller = new AbortController();
      const failed = caught(call(controller.signal));
      await nodes.environment.quiesce();
      const startedMs = nodes.environment.monotonicMs();
      controller.abort(new Error('the user left'));
      const error = await nodes.run(failed);
      expect(error).toMatchObject({ code: 'ABORTED' });
      expect(nodes.environment.monotonicMs()).toBe(startedMs);
      a.driver.heal();
      await nodes.environment.advance(120_000);
    }
  });

  it('of one refresh does not disturb another that shares its requests', async () => {
    const controller = new AbortController();
    a.driver.onGet(/^committed/, hangs);
    const first = caught(a.db.refresh({ signal: controller.signal }));
    const second = a.db.refresh();
    await nodes.environment.quiesce();
    controller.abort();
    expect(await nodes.run(first)).toMatchObject({ code: 'ABORTED' });
    await nodes.run(second);
  });

  it('before the put of a flush rejects it with AbortedError: it was not applied', async () => {
    const b = await nodes.start(1);
    await nodes.run(nodes.insert(b, 2000));
    const batch = a.db.batch();
    void batch.insert(people, { id: 5, name: 'twice' });
    a.driver.onGet(/^committed/, hangs);
    const controller = new AbortController();
    const failed = caught(batch.flush({ signal: controller.signal }));
    await nodes.environment.quiesce();
    controller.abort();
    expect(await failed).toMatchObject({ code: 'ABORTED' });
    expect(batch.size).toBe(1);
    expect(a.driver.lines.filter((line) => line.startsWith('put'))).toEqual([]);
  });
});
