/** Instances that want the same slot: which requests they send, and that all of them get a slot (docs/protocol.md, "Many writers"). */
import { beforeEach, describe, expect, it } from 'vitest';
import { decodeCommit } from '../../../src/format/commit.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { Nodes, prefix } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { after, requestLost } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
  b = await nodes.start(1);
});

let nextId = 100;

/** The next puts of a lose their slots to b. */
function loseSlots(count: number): void {
  a.driver.onPut(
    /^committed/,
    after(() => nodes.insert(b, nextId++)),
    count,
  );
}

describe('the requests of a flush', () => {
  it('are a put and a look at Block 0 if the instance has no rivals', async () => {
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(nodes.insert(a, 2));
    expect(a.driver.takeLines()).toEqual([
      'put committed/1 written',
      'get block0 unchanged',
      'put committed/2 written',
      'get block0 unchanged',
    ]);
  });

  it('are a read of the slot with the put, once the instance has lost a slot', async () => {
    loseSlots(2);
    await nodes.run(nodes.insert(a, 1));
    expect(a.driver.takeLines()).toEqual([
      // The first put is sent alone: the slot is read after it.
      'put committed/1 lost',
      'get committed/1 found',
      'get block0 unchanged',
      'get committed/2 missing',
      // The second comes with a read, which is too early here.
      'get committed/2 missing',
      'put committed/2 lost',
      'get committed/2 found',
      'get block0 unchanged',
      'get committed/3 missing',
      'get committed/3 missing',
      'put committed/3 written',
      'get block0 unchanged',
    ]);
  });

  it('are one look at the next slot more after a lost slot, and none once it has found nobody', async () => {
    loseSlots(1);
    await nodes.run(nodes.insert(a, 1));
    a.driver.takeLines();
    await nodes.run(nodes.insert(a, 2));
    await nodes.run(nodes.insert(a, 3));
    expect(a.driver.takeLines()).toEqual([
      'get committed/3 missing',
      'put committed/3 written',
      'get block0 unchanged',
      'put committed/4 written',
      'get block0 unchanged',
    ]);
  });
});

describe('a commit', () => {
  it('tells since which slot its flushes have waited, if they have', async () => {
    loseSlots(2);
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(nodes.insert(a, 2));
    const since: (number | undefined)[] = [];
    for (const slot of [1, 3, 4]) {
      const found = await nodes.store.get(`${prefix}/${commitName(slot)}`);
      if (found.status !== 'found') throw new Error(`slot ${slot} is ${found.status}`);
      since.push(decodeCommit(slot, found.bytes).since);
    }
    expect(since).toEqual([undefined, 2, undefined]);
  });
});

describe('a read that was sent with the put', () => {
  it('decides nothing if it failed, or found nothing', async () => {
    loseSlots(2);
    a.driver.onGet(/^committed\/2$/, (pass) => pass());
    a.driver.onGet(/^committed\/2$/, requestLost);
    await nodes.run(nodes.insert(a, 1));
    expect(await nodes.hasSlot(3)).toBe(true);
    expect(await nodes.names(a, [1, nextId - 2, nextId - 1])).toEqual([
      'row 1',
      `row ${nextId - 2}`,
      `row ${nextId - 1}`,
    ]);
  });
});

describe('instances that write all the time', () => {
  it('all get their commits into the log, each once', async () => {
    const writers = [a, b, await nodes.start(2), await nodes.start(3)];
    const flushes = writers.map(async (node, i) => {
      for (let n = 0; n < 10; n++) await nodes.insert(node, 1000 + 10 * i + n);
    });
    await nodes.run(Promise.all(flushes));
    expect(await nodes.hasSlot(40)).toBe(true);
    expect(await nodes.hasSlot(41)).toBe(false);
    await nodes.run(a.db.refresh());
    expect(await nodes.run(a.db.verify())).toMatchObject({ ok: true, findings: [] });
  });
});
