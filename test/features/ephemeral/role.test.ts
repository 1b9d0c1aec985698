/** What an instance with role 'ephemeral' needs, sends and refuses. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/api/database.ts';
import { StoreDb } from '../../../src/index.ts';
import { sleep } from '../../../src/base/env.ts';
import { InvalidOptionError } from '../../../src/base/errors.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { caught, people } from '../protocol/nodes.ts';
import { before, hangs } from '../protocol/scripted-driver.ts';
import { RequestNodes } from './requests.ts';
import type { Request } from './requests.ts';

let nodes: RequestNodes;

beforeEach(() => {
  nodes = new RequestNodes();
});

async function upsert({ db }: Request, id: number): Promise<void> {
  const batch = db.batch();
  void batch.upsert(people, { id, name: `row ${id}`, age: id });
  await batch.flush();
}

async function started(...options: Parameters<RequestNodes['ephemeral']>): Promise<Request> {
  const request = nodes.ephemeral(...options);
  await nodes.run(request.db.start());
  return request;
}

describe('the requests of an invocation', () => {
  beforeEach(async () => {
    for (let id = 1; id <= 8; id++) await nodes.run(nodes.upsert(id));
  });

  it('are four if a new instance writes, and two more if the row must be read', async () => {
    expect(await nodes.run(nodes.upsert(9))).toEqual([
      'get block0 found',
      'get committed/9 missing',
      'put committed/9 written',
      'get block0 unchanged',
    ]);
    const { db, driver } = await started();
    const batch = db.batch();
    void batch.update(people, { id: 3, name: 'Ada' });
    await nodes.run(batch.flush());
    expect(driver.takeLines().filter((line) => !line.startsWith('get committed'))).toEqual([
      'get block0 found',
      'get block0 unchanged',
      'put committed/10 written',
      'get block0 unchanged',
    ]);
  });

  it('are two if a running instance writes, and two to look if it has not been used for a while', async () => {
    const request = await started();
    await nodes.run(upsert(request, 9));
    request.driver.takeLines();
    await nodes.run(upsert(request, 10));
    expect(request.driver.takeLines()).toEqual(['put committed/10 written', 'get block0 unchanged']);
    await nodes.environment.advance(60_000);
    expect(request.driver.takeLines()).toEqual([]);
    await nodes.run(request.db.get(people, 1));
    expect(request.driver.takeLines()).toEqual(['get committed/11 missing', 'get block0 unchanged']);
  });

  it('are none when it ends', async () => {
    const request = await started();
    await nodes.run(upsert(request, 9));
    request.driver.takeLines();
    await nodes.run(request.db.stop());
    expect(request.driver.takeLines()).toEqual([]);
  });
});

describe('an ephemeral instance', () => {
  it('is in no list of nodes, even if it merges, and its id is above the ids of nodes', async () => {
    const feed = await started();
    for (let id = 1; id <= 20; id++) await nodes.run(nodes.upsert(id));
    expect(await nodes.block0()).toMatchObject({ nodes: [], generation: 2 });
    expect(feed.db.stats().log?.nodeId).toBeGreaterThan(255);
    const writer = await nodes.start(3);
    await nodes.run(writer.db.checkpoint());
    const request = await started();
    await nodes.run(upsert(request, 21));
    await nodes.run(request.db.checkpoint());
    expect((await nodes.block0()).nodes).toEqual([3]);
    await nodes.run(request.db.stop());
    expect((await nodes.block0()).nodes).toEqual([3]);
  });

  it('leaves no timer behind a call', async () => {
    const idle = nodes.environment.timerCount;
    const request = await started();
    for (let id = 1; id <= 20; id++) await nodes.run(upsert(request, id));
    await nodes.run(request.db.get(people, 1));
    await nodes.run(request.db.query(people).count());
    expect(nodes.environment.timerCount).toBe(idle);
  });

  it('shows the newest state after its process was frozen, even if its clock stood still', async () => {
    const request = await started();
    await nodes.run(upsert(request, 1));
    const writer = await nodes.start(0);
    await nodes.run(nodes.insert(writer, 2));
    // The wall clock was set right when the process went on.
    nodes.environment.skewMs += 600_000;
    expect(await nodes.run(request.db.query(people).count())).toBe(2);
  });

  it('learns the outcome of a commit that was under way when its process was frozen', async () => {
    const request = await started();
    request.driver.onPut(
      /^committed/,
      before(async () => {
        const other = nodes.ephemeral();
        await other.db.start();
        await upsert(other, 2);
        await nodes.environment.advance(0);
        nodes.environment.skewMs += 600_000;
      }),
    );
    await nodes.run(upsert(request, 1));
    expect(await nodes.run(request.db.query(people).count())).toBe(2);
  });

  it('refuses calls that begin work in the background', async () => {
    const { db } = await started();
    const calls = [
      () => db.setTargetSchemaVersion('people', 2),
      () => db.finishMigration('people'),
      () => db.cancelMigration('people'),
    ];
    for (const call of calls) {
      const error = await nodes.run(caught(call()));
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect(error.message).toContain("role 'ephemeral'");
    }
    await nodes.run(db.migrationStatus('people'));
    await nodes.run(db.gc());
  });
});

describe('stop()', () => {
  it('waits for the merge of a flush that was under way, and sends nothing afterwards', async () => {
    const request = await started({}, 40);
    for (let id = 1; id <= 7; id++) await nodes.run(upsert(request, id));
    const flushing = upsert(request, 8);
    await nodes.run(request.db.stop());
    await nodes.run(flushing);
    request.driver.takeLines();
    await nodes.environment.advance(60_000);
    expect(request.driver.takeLines()).toEqual([]);
    expect((await nodes.block0()).appliedSeq).toBe(8);
  });
});

describe('gc()', () => {
  async function collectMs(request: { readonly db: Database }): Promise<number> {
    const startedMs = nodes.environment.monotonicMs();
    await nodes.run(request.db.checkpoint());
    await nodes.run(request.db.gc());
    return nodes.environment.monotonicMs() - startedMs;
  }

  it('waits for loops if an ephemeral instance has merged or committed, and not if no other instance is known', async () => {
    for (let id = 1; id <= 8; id++) await nodes.run(nodes.upsert(id));
    const first = await nodes.start(3);
    expect(await collectMs(first)).toBeGreaterThanOrEqual(20_000);
    await nodes.run(nodes.upsert(9));
    await nodes.run(first.db.stop());
    const second = await nodes.start(3);
    expect(await collectMs(second)).toBeGreaterThanOrEqual(20_000);
    await nodes.run(second.db.stop());
    const third = await nodes.start(3);
    await nodes.run(nodes.insert(third, 10));
    expect(await collectMs(third)).toBeLessThan(1000);
  });
});

describe('waitUntil', () => {
  async function fill(request: Request): Promise<void> {
    for (let id = 1; id <= 7; id++) await nodes.run(upsert(request, id));
  }

  it('gets the merge after a commit, and the flush does not wait', async () => {
    const works: Promise<unknown>[] = [];
    const request = await started({ waitUntil: (work) => void works.push(work) });
    await fill(request);
    expect(works).toEqual([]);
    let hasMerged = false;
    request.driver.onPut(/^block0/, async (pass) => {
      await sleep(nodes.environment, 1000);
      hasMerged = true;
      return pass();
    });
    await nodes.run(upsert(request, 8));
    expect([works.length, hasMerged]).toEqual([1, false]);
    await nodes.run(Promise.all(works));
    expect((await nodes.block0()).appliedSeq).toBe(8);
  });

  it('that throws an error makes the flush wait', async () => {
    const request = await started({
      waitUntil: () => {
        throw new Error('outside of a request');
      },
    });
    await fill(request);
    await nodes.run(upsert(request, 8));
    expect((await nodes.block0()).appliedSeq).toBe(8);
  });

  it('is not needed: a flush waits for its merge for ten seconds at most', async () => {
    const request = await started();
    await fill(request);
    request.driver.onPut(/^block0/, hangs, Infinity);
    const startedMs = nodes.environment.monotonicMs();
    await nodes.run(upsert(request, 8));
    expect(nodes.environment.monotonicMs() - startedMs).toBe(10_000);
  });
});

describe('options', () => {
  const driver = new MemoryDriver();
  const make = (options: object): unknown =>
    StoreDb({ dbPrefix: 'db', role: 'ephemeral', driver, ...options } as never);

  it.each([
    ['nodeId', 0],
    ['nodeId', 'auto'],
    ['nodes', [0]],
    ['polling', 'interval'],
    ['history', '7d'],
    ['gcInterval', 60_000],
  ])('refuse %s, %j', (option, value) => {
    expect(() => make({ [option]: value })).toThrow(
      `Option \`${option}\` of StoreDb() has no place on an instance with role 'ephemeral'`,
    );
  });

  it('refuse a time to wait for merges, and waitUntil on other instances', () => {
    expect(() => make({ mergePolicy: { maxWaitMs: 1000 } })).toThrow('`mergePolicy.maxWaitMs`');
    expect(() => make({ role: 'writer', nodeId: 0, waitUntil: () => undefined })).toThrow('`waitUntil`');
    expect(() => make({ role: 'writer' })).toThrow('nodeId');
  });
});
