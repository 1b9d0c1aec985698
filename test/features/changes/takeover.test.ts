/**
 * Delivery of changes by one of several instances, as in docs/guide/webhooks.md: whoever holds the lease delivers, and another instance
 * goes on where the last one was, once its lease has ended.
 */
import { beforeEach, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { Change } from '../../../src/instance/change-feed.ts';
import { Cluster, Gate, items } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';

const leases = {
  name: 'leases',
  version: 1,
  fields: {
    id: { typeId: Types.varchar },
    holder: { typeId: Types.int32 },
    until: { typeId: Types.timestamp },
    position: { typeId: Types.float64 },
  },
  primaryKey: 'id',
} as const;

const second = 1000;
const leaseMs = 30 * second;

let cluster: Cluster;
beforeEach(() => {
  cluster = new Cluster();
});

/** A process that delivers while it holds the lease, and asks for it otherwise. */
class Deliverer {
  readonly told: { readonly commit: number; readonly change: Change }[] = [];
  readonly #node: ClusterNode;
  readonly #me: number;
  /** Called once the receiver has a change. */
  onSent: () => Promise<void> = () => Promise.resolve();

  /** Whether it does nothing, and does not renew its lease either. */
  isBlocked = false;
  #delivers = false;

  constructor(node: ClusterNode, me: number) {
    this.#node = node;
    this.#me = me;
    void this.#run();
    void this.#renew();
  }

  /** Takes or renews the lease, and stores how far its holder is; undefined if another one has it. */
  hold(done?: number): Promise<number | undefined> {
    const { db, environment } = this.#node;
    return db.transaction(async (tx) => {
      const lease = await tx.get(leases, 'webhooks');
      const isMine = lease?.holder === this.#me;
      if (lease !== undefined && !isMine && (lease.until?.getTime() ?? 0) > environment.now()) return undefined;
      if (done !== undefined && !isMine) return undefined;
      const position = done ?? lease?.position ?? db.position;
      const until = new Date(environment.now() + leaseMs);
      await tx.upsert(leases, { id: 'webhooks', holder: this.#me, until, position });
      return position;
    });
  }

  async #run(): Promise<void> {
    for (;;) {
      const after = await this.hold();
      this.#delivers = after !== undefined;
      if (after !== undefined) await this.#deliver(after);
      this.#delivers = false;
      await this.#sleep(5 * second);
    }
  }

  async #renew(): Promise<void> {
    for (;;) {
      await this.#sleep(leaseMs / 3);
      if (this.#delivers && !this.isBlocked) await this.hold();
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#node.environment.setTimer(resolve, ms);
    });
  }

  async #deliver(after: number): Promise<void> {
    const { db } = this.#node;
    for await (const commit of db.changes({ after, tables: [items], before: true })) {
      for await (const change of commit) {
        this.told.push({ commit: commit.position, change });
        await this.onSent();
      }
      if ((await this.hold(commit.position)) === undefined) return;
    }
  }
}

async function start(nodeId: number): Promise<ClusterNode> {
  const node = await cluster.start(nodeId, { polling: 'interval', writeForwardInterval: second, history: '1d' });
  node.db.registerSchema(leases);
  return node;
}

/** The texts of rows before and after, by what was told. */
function texts({ told }: Deliverer): unknown[] {
  return told.map(({ change: { before, row } }) => [before?.['text'] ?? null, row?.['text'] ?? null]);
}

async function put(node: ClusterNode, versions: readonly string[]): Promise<void> {
  for (const text of versions) {
    await cluster.run(cluster.flush(node, (batch) => void batch.upsert(items, { id: 1, text })));
    await cluster.advance(2 * second);
  }
}

it('goes on at another instance, with the rows before, when the one that delivers dies', async () => {
  const [first, next, writer] = [await start(1), await start(2), await start(3)];
  const dying = new Deliverer(first, 1);
  await cluster.advance(second);
  const other = new Deliverer(next, 2);
  await put(writer, ['a', 'b']);
  expect([texts(dying), texts(other)]).toEqual([
    [
      [null, 'a'],
      ['a', 'b'],
    ],
    [],
  ]);
  // It has sent the change, and dies before that is stored.
  dying.onSent = () => {
    first.environment.freeze();
    return new Gate().opened;
  };
  await put(writer, ['c', 'd']);
  await cluster.run(writer.db.checkpoint());
  await cluster.run(writer.db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 60 * second }));
  expect(texts(other)).toEqual([]);
  await cluster.advance(2 * leaseMs);
  await put(writer, ['e']);
  expect(texts(other).slice(-3)).toEqual([
    ['b', 'c'],
    ['c', 'd'],
    ['d', 'e'],
  ]);
  const sent = [...dying.told, ...other.told].map(({ change }) => change.row?.['text']);
  expect([...new Set(sent)]).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(other.told.length).toBeLessThanOrEqual(4);
});

it('leaves the position to the new holder when the old one goes on late', async () => {
  const [first, next, writer] = [await start(1), await start(2), await start(3)];
  const slow = new Deliverer(first, 1);
  await cluster.advance(second);
  const other = new Deliverer(next, 2);
  await put(writer, ['a']);
  slow.onSent = async () => {
    slow.isBlocked = true;
    await new Promise<void>((resolve) => {
      first.environment.setTimer(resolve, 3 * leaseMs);
    });
    slow.isBlocked = false;
  };
  await put(writer, ['b', 'c']);
  await cluster.advance(2 * leaseMs);
  const stored = async (): Promise<unknown> => {
    const lease = await cluster.run(writer.db.get(leases, 'webhooks'));
    return [lease?.holder, lease?.position];
  };
  const last = other.told.at(-1)?.commit;
  expect(await stored()).toEqual([2, last]);
  slow.onSent = () => Promise.resolve();
  await cluster.advance(2 * leaseMs);
  // It has sent what it had under way a second time, and noted nothing.
  expect(await stored()).toEqual([2, last]);
  await put(writer, ['d']);
  const all = [...slow.told, ...other.told].map(({ change }) => change.row?.['text']);
  expect(new Set(all)).toEqual(new Set(['a', 'b', 'c', 'd']));
  expect(await stored()).toEqual([2, other.told.at(-1)?.commit]);
});
