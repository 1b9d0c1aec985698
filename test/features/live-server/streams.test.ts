/** Live queries as they are served: the events of a stream, how it goes on after a break, what is shared, and how it ends. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/index.ts';
import type { GetOptions, GetResult } from '../../../src/storage/index.ts';
import { WrappedDriver } from '../../../src/storage/wrap/wrapped-driver.ts';
import { todos, ask, listen, LiveKit, put } from './live-kit.ts';

let kit: LiveKit;
let db: Database;
beforeEach(async () => {
  kit = new LiveKit();
  db = await kit.open();
});
afterEach(async () => {
  await kit[Symbol.asyncDispose]();
});

/** A store whose next read of a block can be held back. */
class SlowReads extends WrappedDriver {
  /** Resolves once a read is held back. */
  held: Promise<void> = Promise.resolve();
  #arrive: (() => Promise<void>) | undefined;

  /** Holds the next read until the returned function is called. */
  hold(): () => void {
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    this.held = new Promise((resolve) => {
      this.#arrive = () => {
        this.#arrive = undefined;
        resolve();
        return opened;
      };
    });
    return open;
  }

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    await this.#arrive?.();
    return super.get(key, options);
  }
}

const row = (id: number, text = 'new', list = 1): Record<string, unknown> => ({ id, list, text });
const many = (count: number): Record<string, unknown>[] => Array.from({ length: count }, (_, id) => row(id));
const params = { list: 1 };

describe('a stream', () => {
  it('begins with the whole result, and goes on with what changes', async () => {
    await put(db, row(1, 'a'), row(3, 'c'), row(9, 'other', 2));
    const handler = kit.serve(db);
    const listener = await listen(handler, 'list', { params });
    expect(listener.answer.headers.get('content-type')).toBe('text/event-stream');
    expect(listener.answer.headers.get('cache-control')).toBe('no-store');
    expect(await listener.next()).toMatchObject({
      name: 'result',
      data: { position: db.position, rows: [{ id: 1, text: 'a', due: null }, { id: 3 }], types: {} },
    });
    await put(db, row(2, 'b'));
    expect(await listener.next()).toMatchObject({
      name: 'change',
      data: { position: db.position, kept: [[0, 2]], rows: [[1, { id: 2, text: 'b' }]] },
    });
    await put(db, row(2, 'B'));
    const changed = await listener.next();
    expect(changed.data).toMatchObject({
      kept: [
        [0, 1],
        [2, 1],
      ],
      rows: [[1, { id: 2, text: 'B' }]],
    });
    expect(changed.id).toMatch(new RegExp(String.raw`^${db.position}\.[\da-f]{24}$`));
    await db.transaction((tx) => tx.delete(todos, 1));
    expect(await listener.next()).toMatchObject({ name: 'change', data: { kept: [[1, 2]], rows: [] } });
    await listener.leave();
  });

  it('costs bytes in proportion to the change', async () => {
    await put(db, ...many(2000));
    const handler = kit.serve(db);
    const listener = await listen(handler, 'list', { params });
    const whole = await listener.next();
    await put(db, row(1000, 'changed'));
    const change = await listener.next();
    expect(whole.bytes).toBeGreaterThan(150_000);
    expect(change.bytes).toBeLessThan(350);
    await listener.leave();
  });

  it('sends the whole result if nothing of the one before is left', async () => {
    await put(db, row(1));
    const handler = kit.serve(db);
    const listener = await listen(handler, 'list', { params });
    await listener.next();
    await put(db, row(1, 'x'));
    expect(await listener.next()).toMatchObject({ name: 'result', data: { rows: [{ text: 'x' }] } });
    await listener.leave();
  });

  it('carries all kinds of values', async () => {
    const due = new Date('2026-02-03T04:05:06.789Z');
    const odd = { id: 1, list: 1, due, hash: new Uint8Array([0, 255]), size: 2n ** 60n, weight: -0, tags: { a: [1] } };
    await put(db, odd, { id: 2, list: 1, size: 7n, weight: 1.5 });
    const handler = kit.serve(db);
    const { data } = await (await listen(handler, 'list', { params })).next();
    expect(data).toMatchObject({
      rows: [
        { due: due.toISOString(), hash: 'AP8=', size: String(2n ** 60n), weight: '-0', tags: { a: [1] } },
        { size: 7, weight: 1.5, due: null },
      ],
      types: { due: 'timestamp', hash: 'bytes', size: 'int64', weight: 'float64' },
    });
    const counted = await (await listen(handler, 'count')).next();
    expect(counted).toMatchObject({ name: 'result', data: { value: 2, types: {} } });
    const totals = await (await listen(handler, 'totals')).next();
    expect(totals.data).toMatchObject({ value: { all: 2, sizes: String(2n ** 60n + 7n) } });
    handler.close();
  });

  it('shows that it is in use every 15 seconds', async () => {
    const handler = kit.serve(db);
    const listener = await listen(handler, 'count');
    await listener.next();
    await kit.environment.advance(16_000);
    expect(await listener.text()).toBe(': ');
    await listener.leave();
  });
});

const otherId = (position: number): string => `${position}.${'0'.repeat(24)}`;

describe('a client that comes back', () => {
  it('is told that it is current if nothing of the result has changed, also by another instance', async () => {
    await put(db, row(1), row(2));
    const first = await listen(kit.serve(db), 'list', { params });
    const { id: lastId } = await first.next();
    await first.leave();
    // A commit that changes nothing of the result.
    await put(db, row(7, 'other', 2));
    const other = await kit.open();
    for (const instance of [db, other]) {
      const again = await listen(kit.serve(instance), 'list', { params, lastId });
      const { name, data, id, bytes } = await again.next();
      expect({ name, data }).toEqual({ name: 'current', data: { position: instance.position } });
      expect(id?.split('.')[1]).toBe(lastId?.split('.')[1]);
      expect(bytes).toBeLessThan(100);
      await again.leave();
    }
  });

  it('gets the differences from a result that is kept, and otherwise the whole', async () => {
    await put(db, ...many(50));
    const handler = kit.serve(db);
    const [first, stays] = [await listen(handler, 'list', { params }), await listen(handler, 'list', { params })];
    const { id: lastId } = await first.next();
    await stays.next();
    await first.leave();
    await put(db, row(10, 'x'));
    await stays.next();
    await put(db, row(20, 'y'));
    await stays.next();
    const again = await listen(handler, 'list', { params, lastId });
    const rows = [
      [10, { text: 'x' }],
      [20, { text: 'y' }],
    ];
    expect(await again.next()).toMatchObject({ name: 'change', data: { rows } });
    const unknown = await listen(handler, 'list', { params, lastId: otherId(db.position) });
    expect(await unknown.next()).toMatchObject({ name: 'result' });
    const odd = await listen(handler, 'list', { params, lastId: 'anything else' });
    expect(await odd.next()).toMatchObject({ name: 'result' });
    handler.close();
  });

  it('gets the whole if the result that it has is not kept, because the ones after it are large', async () => {
    const large = 'x'.repeat(3 * 1024 * 1024);
    await put(db, row(1, large), row(2));
    const handler = kit.serve(db);
    const [first, stays] = [await listen(handler, 'list', { params }), await listen(handler, 'list', { params })];
    const { id: lastId } = await first.next();
    await stays.next();
    await first.leave();
    const resumed = async (): Promise<string> => {
      const again = await listen(handler, 'list', { params, lastId });
      const { name } = await again.next();
      await again.leave();
      return name;
    };
    const names: string[] = [];
    for (const text of ['a', 'b', 'c', 'd']) {
      await put(db, row(2, text));
      await stays.next();
      names.push(await resumed());
    }
    expect(names).toEqual(['change', 'change', 'result', 'result']);
    handler.close();
  });

  it('gets no older result than it has, from an instance that lags behind', async () => {
    await put(db, row(1));
    const late = await kit.open();
    const lateHandler = kit.serve(late);
    const stays = await listen(lateHandler, 'list', { params });
    expect(await stays.next()).toMatchObject({ data: { position: 1 } });
    await put(db, row(2));
    const ahead = await listen(kit.serve(db), 'list', { params });
    const { id: lastId, data } = await ahead.next();
    expect(data).toMatchObject({ position: 2 });
    await put(db, row(3));
    const again = await listen(lateHandler, 'list', { params, lastId });
    expect(await again.next()).toMatchObject({ data: { position: 3, rows: [{ id: 1 }, { id: 2 }, { id: 3 }] } });
    // A position of another database.
    const lost = await listen(lateHandler, 'list', { params, lastId: otherId(999) });
    expect(await lost.next()).toMatchObject({ name: 'result', data: { position: 3 } });
    await ahead.leave();
    lateHandler.close();
  });

  it('gets no older result than it has, while another client waits for that of an older state', async () => {
    // More than Block 0 has room for.
    await put(db, row(1, 'x'.repeat(100_000)));
    await db.checkpoint();
    const slow = new SlowReads(kit.driver);
    const late = await kit.open({ driver: slow });
    const lateHandler = kit.serve(late);
    // The first read of a block waits, and so does the query, which reads the state of position 1.
    const goOn = slow.hold();
    const waits = await listen(lateHandler, 'list', { params });
    await slow.held;
    await put(db, row(2));
    const ahead = await listen(kit.serve(db), 'list', { params });
    const { id: lastId } = await ahead.next();
    const again = await listen(lateHandler, 'list', { params, lastId });
    goOn();
    expect(await waits.next()).toMatchObject({ data: { position: 1, rows: [{ id: 1 }] } });
    expect(await again.next()).toMatchObject({ name: 'current', data: { position: 2 } });
    await ahead.leave();
    lateHandler.close();
  });
});

describe('a watched query', () => {
  it('is shared by all that ask the same, and ends with the last of them', async () => {
    await put(db, row(1));
    const handler = kit.serve(db);
    const listeners = await Promise.all([1, 1, 2, 1].map((list) => listen(handler, 'list', { params: { list } })));
    for (const listener of listeners) await listener.next();
    expect(kit.watched).toEqual(['list 1', 'list 2']);
    const [one, two, , three] = listeners;
    await one?.leave();
    await two?.leave();
    await put(db, row(1, 'x'));
    expect(await three?.next()).toMatchObject({ name: 'result' });
    await three?.leave();
    await (await listen(handler, 'list', { params })).next();
    expect(kit.watched).toEqual(['list 1', 'list 2', 'list 1']);
    handler.close();
  });

  it('ends when the request is aborted', async () => {
    const handler = kit.serve(db);
    const leaving = new AbortController();
    const listener = await listen(handler, 'list', { params, signal: leaving.signal });
    await listener.next();
    leaving.abort();
    expect(await listener.text()).toBe(undefined);
    await (await listen(handler, 'list', { params })).next();
    expect(kit.watched).toHaveLength(2);
    const gone = await listen(handler, 'list', { params, signal: AbortSignal.abort() });
    expect(await gone.text()).toBe(undefined);
    handler.close();
  });

  it('gives a slow client the newest result, and none in between', async () => {
    await put(db, row(1));
    const handler = kit.serve(db);
    const quick = await listen(handler, 'list', { params });
    const slow = await listen(handler, 'list', { params });
    await quick.next();
    for (let id = 2; id < 60; id++) {
      await put(db, row(id));
      await quick.next();
    }
    const results = [await slow.next(), await slow.next()];
    expect(results.map(({ data }) => data['position'])).toEqual([1, db.position]);
    // More results than are kept lie in between.
    expect(results[1]).toMatchObject({ name: 'result', data: { rows: { length: 59 } } });
    handler.close();
  });

  it('tells all its clients of a failure, without what it says, and ends their streams', async () => {
    await put(db, row(1));
    let fails = false;
    db.registerFunction('checked', () => {
      if (fails) throw new Error('secret 4711');
      return true;
    });
    const watch = () => db.query('todos').where('checked', '=', true).watch();
    const handler = kit.serve(db, { queries: { checked: { watch } } });
    const listeners = [await listen(handler, 'checked'), await listen(handler, 'checked')];
    for (const listener of listeners) await listener.next();
    fails = true;
    await put(db, row(2));
    for (const listener of listeners) {
      const message = 'The query has failed on the server.';
      expect(await listener.next()).toMatchObject({ name: 'failure', data: { code: 'FUNCTION', message } });
      expect(await listener.text()).toBe(undefined);
    }
    expect(kit.errors).toHaveLength(1);
    expect(String(kit.errors[0])).toContain('secret 4711');
    fails = false;
    expect(await (await listen(handler, 'checked')).next()).toMatchObject({ name: 'result' });
    handler.close();
  });
});

describe('streams end', () => {
  it('when the database is stopped, so that clients ask another instance', async () => {
    const handler = kit.serve(db);
    const listener = await listen(handler, 'count');
    await listener.next();
    await db.stop();
    await kit.environment.advance(1000);
    expect(await listener.text()).toBe(undefined);
    const refused = await ask(handler, 'count');
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: 'NOT_STARTED' } });
    await db.start();
    expect(await (await listen(handler, 'count')).next()).toMatchObject({ name: 'result' });
    handler.close();
  });

  it('when they get old, so that the function decides again', async () => {
    let isAllowed = true;
    const handler = kit.serve(db, { authorize: () => isAllowed, maxStreamSeconds: 60 });
    const listener = await listen(handler, 'count');
    const { id: lastId } = await listener.next();
    await kit.environment.advance(59_000);
    await put(db, row(1));
    while ((await listener.next()).name === '');
    isAllowed = false;
    await kit.environment.advance(2000);
    let text: string | undefined = '';
    while (text !== undefined) text = await listener.text();
    expect((await ask(handler, 'count', { lastId })).status).toBe(403);
  });

  it('when the handler is closed', async () => {
    const handler = kit.serve(db);
    const listener = await listen(handler, 'count');
    await listener.next();
    handler.close();
    expect(await listener.text()).toBe(undefined);
    expect((await ask(handler, 'count')).status).toBe(503);
  });
});
