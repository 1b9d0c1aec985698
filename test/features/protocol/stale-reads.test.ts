/** A store that does not answer: the state in memory is shown at any age, if that is asked for. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Nodes, people } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { hangs, requestLost } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
const intervalMs = 5000;

async function open(maxStaleWaitMs?: number): Promise<void> {
  const polling = { writeForwardInterval: intervalMs, polling: 'onDemand' } as const;
  a = await nodes.start(0, { ...polling, ...(maxStaleWaitMs !== undefined && { maxStaleWaitMs }) });
  await nodes.run(nodes.insert(a, 1));
  await nodes.environment.advance(3 * intervalMs);
}

beforeEach(() => {
  nodes = new Nodes();
});

async function timed<T>(call: () => Promise<T>): Promise<{ result: T; tookMs: number }> {
  const startedMs = nodes.environment.monotonicMs();
  const result = await nodes.run(call());
  return { result, tookMs: nodes.environment.monotonicMs() - startedMs };
}

const read = (): Promise<unknown> => a.db.get(people, 1);

describe('a query on an old view, while the store does not answer', () => {
  it('shows the state in memory after the time of the option, and the next queries at once', async () => {
    await open(500);
    a.driver.onAll(hangs);
    const first = await timed(read);
    expect(first.result).toMatchObject({ name: 'row 1' });
    expect(first.tookMs).toBe(500);
    for (let i = 0; i < 3; i++) expect((await timed(read)).tookMs).toBe(0);
    const count = await timed(() => a.db.query(people).where('age', '=', 1).count());
    expect(count).toEqual({ result: 1, tookMs: 0 });
    expect(a.db.stats().log?.ageMs ?? 0).toBeGreaterThan(2 * intervalMs);
    const warnings = a.log.filter(({ message }) => message.includes('Queries show an old state'));
    expect(warnings).toHaveLength(1);
  });

  it('shows the newest again once the store answers', async () => {
    await open(500);
    a.driver.onAll(hangs);
    await timed(read);
    a.driver.heal();
    const b = await nodes.start(1);
    await nodes.run(nodes.insert(b, 2));
    await nodes.environment.advance(70_000);
    expect(await nodes.run(a.db.get(people, 2))).toMatchObject({ name: 'row 2' });
  });

  it('waits for a store that is only slow', async () => {
    await open(500);
    const b = await nodes.start(1);
    await nodes.run(nodes.insert(b, 2));
    expect(await nodes.run(a.db.get(people, 2))).toMatchObject({ name: 'row 2' });
  });

  it('with 0 does not wait at all, and without the option as long as it takes', async () => {
    await open(0);
    a.driver.onAll(hangs);
    expect((await timed(read)).tookMs).toBe(0);
    nodes = new Nodes();
    await open();
    a.driver.onAll(hangs);
    const startedMs = nodes.environment.monotonicMs();
    expect(await nodes.failure(read())).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    expect(nodes.environment.monotonicMs() - startedMs).toBeGreaterThan(30_000);
  });

  it('shows the state in memory if the store fails', async () => {
    await open(5000);
    a.driver.onAll(requestLost);
    expect((await timed(read)).result).toMatchObject({ name: 'row 1' });
  });

  it('fails where the database is gone: that is no matter of time', async () => {
    await open(5000);
    await nodes.store.delete(['db/block0']);
    expect(await nodes.failure(read())).toMatchObject({ code: 'DATABASE_REPLACED' });
  });

  it('is no excuse for transactions and refresh()', async () => {
    await open(0);
    a.driver.onAll(requestLost);
    expect((await nodes.failure(a.db.refresh())).name).toMatch(/Error/);
    const transaction = a.db.transaction((tx) => tx.get(people, 1));
    expect(['STORAGE', 'DEADLINE_EXCEEDED']).toContain(((await nodes.failure(transaction)) as { code?: string }).code);
  });
});

describe('checkpoint(), while the store does not answer', () => {
  it('gives up after a minute, also behind a look that began before it', async () => {
    await open();
    a.driver.onAll(hangs);
    const before = a.db.refresh().catch(() => undefined);
    await nodes.environment.advance(1000);
    const startedMs = nodes.environment.monotonicMs();
    const failure = (await nodes.failure(a.db.checkpoint())) as { code?: string };
    expect(['STORAGE', 'DEADLINE_EXCEEDED']).toContain(failure.code);
    expect(nodes.environment.monotonicMs() - startedMs).toBeLessThanOrEqual(61_000);
    await nodes.run(before);
  });
});
