/** db.stats(): the age of the state that an instance shows, and its knowledge of the log. */
import { describe, expect, it } from 'vitest';
import { Cluster, range } from '../gc/cluster.ts';
import { requestLost } from '../protocol/scripted-driver.ts';

const second = 1000;

describe('the log in db.stats()', () => {
  it('is how long ago it was known to be the newest', async () => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(1);
    const replica = await cluster.start(1, { role: 'replica' });
    const age = (): number | undefined => replica.db.stats().log?.ageMs;
    expect(age()).toBe(0);
    await cluster.advance(7 * second);
    expect(age()).toBe(7 * second);
    await cluster.run(cluster.put(writer, [1], 'unseen'));
    expect([age(), writer.db.stats().log?.ageMs]).toEqual([7 * second, 0]);
    await cluster.run(replica.db.refresh());
    expect(age()).toBe(0);
    // What was asked for in vain makes nothing younger.
    await cluster.advance(second);
    replica.driver.onGet(/^/, requestLost, Infinity);
    await cluster.failure(replica.db.refresh());
    expect(age()).toBeGreaterThanOrEqual(second);
  });

  it('is at most an interval where it is looked at in each, and grows while the store is out of reach', async () => {
    const cluster = new Cluster();
    await cluster.withRows(1);
    const replica = await cluster.start(1, { role: 'replica', polling: 'interval', writeForwardInterval: 5 * second });
    for (const _ of range(0, 20)) {
      await cluster.advance(1.3 * second);
      expect(replica.db.stats().log?.ageMs).toBeLessThanOrEqual(5 * second);
    }
    replica.driver.onGet(/^/, requestLost, Infinity);
    await cluster.advance(60 * second);
    expect(replica.db.stats().log?.ageMs).toBeGreaterThanOrEqual(55 * second);
  });

  it("has the pending commits, the merging nodes, and the instance's role", async () => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(1);
    const replica = await cluster.start(9, { role: 'replica' });
    for (const id of range(1, 4)) await cluster.run(cluster.put(writer, [id], 'pending'));
    await cluster.run(replica.db.refresh());
    const { role, log } = replica.db.stats();
    expect(role).toBe('replica');
    expect(log).toMatchObject({ generation: 1, tail: 4, appliedSeq: 1, pendingCommits: 3, nodes: [0] });
    expect(log?.pendingBytes).toBe(writer.db.stats().log?.pendingBytes);
    expect(log?.pendingBytes).toBeGreaterThan(0);
    expect(log?.tail).toBe(replica.db.position);
    await cluster.run(replica.db.stop());
    expect(replica.db.stats()).toMatchObject({ role: 'replica', log: undefined });
    expect(writer.db.stats().role).toBe('writer');
  });
});
