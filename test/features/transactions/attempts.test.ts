/** How a transaction is run: what it sees, how often it is tried, and how it ends. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CommitOutcomeUnknownError, TransactionConflictError } from '../../../src/base/errors.ts';
import { Emitter } from '../../../src/log/engine-events.ts';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import { caught, Nodes, people, quietIntervalMs } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { after, hangs, refused, requestLost } from '../protocol/scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;
let changes = 0;

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
  b = await nodes.start(1);
  await nodes.run(nodes.insert(a, 1, 'first', 10));
  await nodes.run(b.db.refresh());
  a.driver.takeLines();
});

/** Another node changes row 1: to another age each time, for a row that is as it was is not written. */
function change(): Promise<void> {
  return b.db.transaction((tx) => tx.update(people, { id: 1, name: 'changed', age: ++changes }));
}

/** Reads row 1 and writes row 2. */
async function readAndWrite(tx: Transaction): Promise<string> {
  const name = (await tx.get(people, 1))?.name ?? 'nobody';
  await tx.upsert(people, { id: 2, name: `after ${name}`, age: ++changes });
  return name;
}

async function nameOf(id: number): Promise<string | undefined> {
  return (await nodes.run(a.db.get(people, id)))?.name ?? undefined;
}

describe('the view of a transaction', () => {
  it('is its own writes, and nobody else does', async () => {
    await nodes.run(
      a.db.transaction(async (tx) => {
        await tx.insert(people, { id: 2, name: 'second', age: 20 });
        await tx.update(people, { id: 1, age: 11 });
        await tx.delete(people, 3);
        expect(await tx.get(people, 1)).toEqual({ id: 1, name: 'first', age: 11 });
        expect(await tx.query(people).where('age', '>', 10).count()).toBe(2);
        expect(await tx.query(people).select('id').orderBy('age', 'desc').execute()).toEqual([{ id: 2 }, { id: 1 }]);
        expect(await tx.deleteWhere(tx.query(people).where('age', '=', 20))).toBe(1);
        expect(await tx.get(people, 2)).toBeUndefined();
        await tx.upsert(people, { id: 4, name: 'fourth' });
        expect(await a.db.get(people, 4)).toBeUndefined();
        expect(await a.db.get(people, 1)).toMatchObject({ age: 10 });
      }),
    );
    expect(await nodes.run(a.db.query(people).execute())).toEqual([
      { id: 1, name: 'first', age: 11 },
      { id: 4, name: 'fourth', age: null },
    ]);
  });

  it('is one state from beginning to end', async () => {
    const seen = await nodes.run(
      a.db.transaction(async (tx) => {
        const before = await tx.get(people, 1);
        await change();
        await a.db.refresh();
        const rows: unknown[] = [];
        for await (const row of tx.query(people)) rows.push(row);
        return [before, await tx.get(people, 1), rows[0], (await a.db.get(people, 1))?.name];
      }),
    );
    const first = { id: 1, name: 'first', age: 10 };
    expect(seen).toEqual([first, first, first, 'changed']);
  });

  it('shows everything that was committed before the call, also to one that only reads or throws', async () => {
    await nodes.run(nodes.insert(b, 3, 'third'));
    expect(await nodes.run(a.db.transaction((tx) => tx.get(people, 3)))).toMatchObject({ name: 'third' });
    await nodes.run(nodes.insert(b, 4, 'fourth'));
    let calls = 0;
    const unlessThere = a.db.transaction(async (tx) => {
      calls++;
      if ((await tx.get(people, 4)) === undefined) throw new Error('404');
      throw new Error('it is there');
    });
    expect((await nodes.failure(unlessThere)).message).toBe('it is there');
    await nodes.run(nodes.insert(b, 5, 'fifth'));
    expect(await nodes.run(a.db.transaction((tx) => tx.query(people).count()))).toBe(4);
    expect(calls).toBe(1);
    // And nothing of it where the store cannot be asked.
    a.driver.onAll(requestLost);
    expect((await nodes.failure(a.db.transaction((tx) => tx.get(people, 3)))).name).toBe('StorageError');
  });

  it('is as fresh as the view of a query, if that is asked for: a view that is too old is refreshed', async () => {
    const fresh = { fresh: false };
    await nodes.run(change());
    expect(await nodes.run(a.db.transaction((tx) => tx.get(people, 1), fresh))).toMatchObject({ name: 'first' });
    // What is written rests on what is so, whatever the first attempt saw.
    expect(await nodes.run(a.db.transaction(readAndWrite, { ...fresh, maxAttempts: 2 }))).toBe('changed');
    await nodes.run(nodes.insert(b, 3, 'third'));
    await nodes.environment.advance(3 * quietIntervalMs);
    expect(await nodes.run(a.db.transaction((tx) => tx.query(people).count(), fresh))).toBe(3);
  });

  it('is typed by schema definitions, and free with names', async () => {
    const name: string | null = await nodes.run(
      a.db.transaction(async (tx) => (await tx.get(people, 1))?.name ?? null),
    );
    expect(name).toBe('first');
    expect(await nodes.run(a.db.transaction((tx) => tx.query('people').first()))).toMatchObject({ name: 'first' });
  });

  it('of a table that is not registered is an error', async () => {
    expect((await nodes.failure(a.db.transaction((tx) => tx.get('none', 1)))).message).toBe(
      'Schema not found for table none. Register it with db.registerSchema() before you use it.',
    );
    expect((await nodes.failure(a.db.transaction((tx) => tx.insert('none', {})))).name).toBe('SchemaNotFoundError');
  });
});

describe('requests', () => {
  it('of an undisturbed transaction are two reads, and the requests of a flush', async () => {
    await nodes.run(nodes.insert(a, 5));
    const ofFlush = a.driver.takeLines();
    await nodes.run(a.db.transaction(readAndWrite));
    const ofTransaction = a.driver.takeLines();
    await nodes.run(a.db.transaction(readAndWrite, { fresh: false }));
    const ofOneThatIsNotFresh = a.driver.takeLines();
    expect(ofFlush).toEqual(['put committed/2 written', 'get block0 unchanged']);
    expect(ofTransaction).toEqual([
      'get committed/3 missing',
      'get block0 unchanged',
      'put committed/3 written',
      'get block0 unchanged',
    ]);
    expect(ofOneThatIsNotFresh).toEqual(['put committed/4 written', 'get block0 unchanged']);
  });

  it('of one that only reads are two, or none', async () => {
    expect(await nodes.run(a.db.transaction((tx) => tx.query(people).count()))).toBe(1);
    expect(a.driver.takeLines()).toEqual(['get committed/2 missing', 'get block0 unchanged']);
    expect(await nodes.run(a.db.transaction((tx) => tx.query(people).count(), { fresh: false }))).toBe(1);
    expect(a.driver.takeLines()).toEqual([]);
    expect(a.db.stats().transactions).toEqual({ committed: 2, conflicts: 0, failed: 0 });
  });

  it('of a conflict that shows in a lost slot are one look at the store more, and two at the next slot alone', async () => {
    a.driver.onPut(/^committed/, after(change));
    await nodes.run(a.db.transaction(readAndWrite, { fresh: false }));
    expect(a.driver.takeLines()).toEqual([
      'put committed/2 lost',
      'get committed/2 found',
      'get block0 unchanged',
      // Who came late looks for the end of the log before the next put, and so does the flush after that.
      'get committed/3 missing',
      'get committed/3 missing',
      'get block0 unchanged',
      'get committed/3 missing',
      'put committed/3 written',
      'get block0 unchanged',
    ]);
  });

  it('of a conflict are one look at the store, where it shows before the commit', async () => {
    let attempts = 0;
    await nodes.run(
      a.db.transaction(async (tx) => {
        await readAndWrite(tx);
        if (++attempts > 1) return;
        await change();
        await a.db.refresh();
        a.driver.takeLines();
      }),
    );
    expect(a.driver.takeLines()).toEqual([
      'get committed/3 missing',
      'get block0 unchanged',
      'put committed/3 written',
      'get block0 unchanged',
    ]);
  });
});

describe('attempts', () => {
  it('end with TransactionConflictError', async () => {
    let attempts = 0;
    const doomed = a.db.transaction(
      async (tx) => {
        attempts++;
        await readAndWrite(tx);
        await change();
      },
      { maxAttempts: 3 },
    );
    const error = await nodes.failure(doomed);
    expect(error).toBeInstanceOf(TransactionConflictError);
    expect(error).toMatchObject({ code: 'TRANSACTION_CONFLICT', attempts: 3, cause: { attempts: 3 } });
    expect(error.message).toMatch(/^The transaction was given up after 3 attempts, since others changed/);
    expect((error.cause as Error).message).toContain("the row of table 'people' with primary key 1");
    expect(attempts).toBe(3);
    expect(await nameOf(2)).toBeUndefined();
    expect(a.db.stats().transactions).toEqual({ committed: 0, conflicts: 3, failed: 1 });
  });

  it('are 16 unless it is said otherwise, with pauses between that grow', async () => {
    const startedMs: number[] = [];
    const doomed = a.db.transaction(async (tx) => {
      startedMs.push(nodes.environment.monotonicMs());
      await readAndWrite(tx);
      await change();
    });
    expect(await nodes.failure(doomed)).toMatchObject({ attempts: 16 });
    const pauses = startedMs.slice(1).map((ms, i) => ms - (startedMs[i] as number));
    expect(pauses).toHaveLength(15);
    for (const [i, pauseMs] of pauses.entries()) {
      const middleMs = Math.min(2000, 20 * 2 ** i);
      expect(pauseMs).toBeGreaterThanOrEqual(middleMs * 0.5);
      expect(pauseMs).toBeLessThanOrEqual(middleMs * 1.5 + 600);
    }
    const fractions = pauses.map((pauseMs, i) => pauseMs / Math.min(2000, 20 * 2 ** i));
    expect(Math.min(...fractions)).toBeLessThan(0.8);
  });

  it('begin with the conflicting commits of the attempt before', async () => {
    const seen: string[] = [];
    await nodes.run(
      a.db.transaction(async (tx) => {
        seen.push(await readAndWrite(tx));
        if (seen.length === 1) await change();
      }),
    );
    expect(seen).toEqual(['first', 'changed']);
    expect(await nameOf(2)).toBe('after changed');
  });

  it('leave nothing behind for the next', async () => {
    let attempts = 0;
    await nodes.run(
      a.db.transaction(async (tx) => {
        if (++attempts === 1) await tx.insert(people, { id: 70, name: 'of the first attempt' });
        expect((await tx.get(people, 70)) !== undefined).toBe(attempts === 1);
        await readAndWrite(tx);
        if (attempts === 1) await change();
      }),
    );
    expect(attempts).toBe(2);
    expect(await nameOf(70)).toBeUndefined();
  });

  it.each([0, -1, 1.5, 1001, Number.NaN, '3'])('are never %s', async (maxAttempts) => {
    const options = { maxAttempts } as { maxAttempts: number };
    const error = await nodes.failure(a.db.transaction(readAndWrite, options));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'maxAttempts' });
  });

  it('need a function', async () => {
    const error = await nodes.failure(a.db.transaction('no function' as unknown as () => void));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'run' });
  });
});

describe('errors', () => {
  it('of the function are passed on, and nothing is written', async () => {
    let attempts = 0;
    const mine = new Error('mine');
    const failing = a.db.transaction(async (tx) => {
      attempts++;
      await tx.insert(people, { id: 2 });
      throw mine;
    });
    expect(await nodes.failure(failing)).toBe(mine);
    expect(attempts).toBe(1);
    expect(a.driver.takeLines()).toEqual(['get committed/2 missing', 'get block0 unchanged']);
    expect(a.db.stats().transactions).toEqual({ committed: 0, conflicts: 0, failed: 1 });
    const throwing = (): number => {
      throw mine;
    };
    expect(await nodes.failure(a.db.transaction(throwing))).toBe(mine);
  });

  it('of the function are passed on even if its reads have changed', async () => {
    const failing = a.db.transaction(async (tx) => {
      await readAndWrite(tx);
      await change();
      await a.db.refresh();
      throw new Error('mine');
    });
    expect((await nodes.failure(failing)).message).toBe('mine');
  });

  it('of the function are passed on also where they are conflicts of another transaction', async () => {
    const inner = new TransactionConflictError(16, 'of another one');
    let attempts = 0;
    const failing = a.db.transaction(() => {
      attempts++;
      return Promise.reject(inner);
    });
    expect(await nodes.failure(failing)).toBe(inner);
    expect(attempts).toBe(1);
  });

  it('of mutations that nobody waited for fail the transaction', async () => {
    const failing = a.db.transaction(async (tx) => {
      void tx.insert(people, { id: 2, age: 1000 });
      await tx.insert(people, { id: 3 });
    });
    expect((await nodes.failure(failing)).name).toBe('EncodeError');
    expect(await nameOf(3)).toBeUndefined();
  });

  it('of duplicate keys and missing rows are verdicts, and no reason for another attempt', async () => {
    let attempts = 0;
    const inserting = a.db.transaction(async (tx) => {
      attempts++;
      await tx.insert(people, { id: 1 });
    });
    expect(await nodes.failure(inserting)).toMatchObject({ code: 'DUPLICATE_KEY', primaryKey: 1 });
    const updating = a.db.transaction((tx) => tx.update(people, { id: 2, age: 1 }));
    expect(await nodes.failure(updating)).toMatchObject({ code: 'ROW_NOT_FOUND', primaryKey: 2 });
    expect(attempts).toBe(1);
  });

  it('of duplicate keys are none where it had been read that there is no such row', async () => {
    const seen: unknown[] = [];
    await nodes.run(
      a.db.transaction(async (tx) => {
        const row = await tx.get(people, 50);
        seen.push(row?.name);
        if (row === undefined) await tx.insert(people, { id: 50, name: 'mine' });
        if (seen.length === 1) await nodes.insert(b, 50, 'theirs');
      }),
    );
    expect(seen).toEqual([undefined, 'theirs']);
  });

  it('of a commit whose outcome is unknown are passed on as they are', async () => {
    let attempts = 0;
    const unknown = a.db.transaction(async (tx) => {
      attempts++;
      a.driver.onAll(requestLost);
      await readAndWrite(tx);
    });
    const error = await nodes.failure(unknown);
    expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
    expect(error).toMatchObject({ slot: 2, commitId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string });
    expect(attempts).toBe(1);
  });

  it('of a store that refuses the commit are passed on', async () => {
    a.driver.onPut(/^committed/, refused);
    expect((await nodes.failure(a.db.transaction(readAndWrite))).name).toBe('StorageError');
    expect(await nodes.run(a.db.transaction(readAndWrite))).toBe('first');
  });

  it('of a database that is not running', async () => {
    await nodes.run(b.db.stop());
    expect((await nodes.failure(b.db.transaction(readAndWrite))).name).toBe('NotStartedError');
    expect(nodes.environment.timerCount).toBe(1);
  });

  it('of one whose function awaits stop(), which waits for the function', async () => {
    const stopping = a.db.transaction(async (tx) => {
      await readAndWrite(tx);
      const error = await caught(a.db.stop());
      expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      expect(error.message).toMatch(/waited 60 s .* 1 of them have not ended.*waits for itself/);
      await a.db.start();
      await readAndWrite(tx);
    });
    expect((await nodes.failure(stopping)).name).toBe('NotStartedError');
    expect(await nodes.run(a.db.transaction(readAndWrite))).toBe('first');
  });

  it('are none if it is stopped meanwhile: stop() waits for it, attempt after attempt', async () => {
    let others = 5;
    const running = a.db.transaction(async (tx) => {
      await readAndWrite(tx);
      if (others-- > 0) await change();
    });
    while (a.db.stats().transactions.conflicts < 3) await nodes.environment.advance(1);
    const stopped = a.db.stop();
    expect((await nodes.failure(a.db.transaction(readAndWrite))).name).toBe('NotStartedError');
    expect((await nodes.failure(a.db.query(people).execute())).name).toBe('NotStartedError');
    await nodes.run(Promise.all([running, stopped]));
    expect(a.db.stats().transactions).toMatchObject({ committed: 1, conflicts: 5 });
    await nodes.run(b.db.stop());
    expect(nodes.environment.timerCount).toBe(0);
  });

  it('of one that others keep from being committed, and that stop() has waited for', async () => {
    const running = a.db.transaction(async (tx) => {
      await readAndWrite(tx);
      await change();
    });
    const failed = caught(running);
    while (a.db.stats().transactions.conflicts < 5) await nodes.environment.advance(1);
    let ended = false;
    void failed.finally(() => {
      ended = true;
    });
    await nodes.run(a.db.stop());
    await nodes.environment.quiesce();
    expect(ended).toBe(true);
    expect((await failed).name).toBe('TransactionConflictError');
    await nodes.run(b.db.stop());
    expect(nodes.environment.timerCount).toBe(0);
  });
});

describe('a signal', () => {
  it('that is aborted already ends it before it begins', async () => {
    let called = false;
    const signal = AbortSignal.abort();
    const given = a.db.transaction(
      () => {
        called = true;
      },
      { signal },
    );
    expect((await nodes.failure(given)).name).toBe('AbortedError');
    expect(called).toBe(false);
  });

  it('ends it while the function runs, which can then do nothing any more', async () => {
    const controller = new AbortController();
    let later: Promise<Error> | undefined;
    const given = a.db.transaction(
      async (tx) => {
        await readAndWrite(tx);
        controller.abort();
        await nodes.environment.yieldToEventLoop();
        later = caught(tx.get(people, 1));
        await tx.insert(people, { id: 60 });
      },
      { signal: controller.signal },
    );
    expect((await nodes.failure(given)).name).toBe('AbortedError');
    await nodes.environment.quiesce();
    expect((await (later as Promise<Error>)).name).toBe('BatchStateError');
    expect(a.driver.takeLines()).toEqual(['get committed/2 missing', 'get block0 unchanged']);
  });

  it('ends it between two attempts', async () => {
    const controller = new AbortController();
    const given = a.db.transaction(
      async (tx) => {
        await readAndWrite(tx);
        await change();
      },
      { signal: controller.signal },
    );
    const failed = caught(given);
    while (a.db.stats().transactions.conflicts < 5) await nodes.environment.advance(1);
    const { timerCount } = nodes.environment;
    controller.abort();
    expect((await failed).name).toBe('AbortedError');
    expect(nodes.environment.timerCount).toBe(timerCount - 1);
  });

  it('that comes while it is committed leaves the outcome open', async () => {
    const controller = new AbortController();
    a.driver.onPut(/^committed/, hangs);
    const given = a.db.transaction(readAndWrite, { signal: controller.signal });
    const failed = caught(given);
    await nodes.environment.quiesce();
    controller.abort();
    const error = await nodes.run(failed);
    expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
    expect((error.cause as Error).message).toBe('db.transaction() was given up because its signal was aborted');
  });
});

describe('a transaction that has ended', () => {
  it('takes no more writes and reads', async () => {
    let kept: Transaction | undefined;
    await nodes.run(
      a.db.transaction(async (tx) => {
        kept = tx;
        await readAndWrite(tx);
      }),
    );
    const tx = kept as Transaction;
    const query = tx.query(people);
    const calls: (() => Promise<unknown>)[] = [
      () => tx.insert(people, { id: 9 }),
      () => tx.upsert(people, { id: 9 }),
      () => tx.update(people, { id: 1 }),
      () => tx.delete(people, 1),
      () => tx.deleteWhere(query),
      () => tx.get(people, 1),
      () => query.execute(),
      () => query[Symbol.asyncIterator]().next(),
    ];
    for (const call of calls) expect((await nodes.failure(call())).name).toBe('BatchStateError');
  });

  it('does not include operations added while it is committed', async () => {
    let late: Promise<Error> | undefined;
    let lateRead: Promise<Error> | undefined;
    let kept: Transaction | undefined;
    a.driver.onPut(
      /^committed/,
      after(async () => {
        late = caught((kept as Transaction).insert(people, { id: 60 }));
        await late;
        lateRead = caught((kept as Transaction).get(people, 1));
        await lateRead;
      }),
    );
    await nodes.run(
      a.db.transaction(async (tx) => {
        kept = tx;
        await readAndWrite(tx);
      }),
    );
    expect((await (late as Promise<Error>)).name).toBe('BatchStateError');
    expect((await (lateRead as Promise<Error>)).name).toBe('BatchStateError');
    expect(await nameOf(60)).toBeUndefined();
  });

  it('follows the log no longer', async () => {
    let watching = 0;
    const on = Reflect.get(Emitter.prototype, 'on');
    const spy = vi.spyOn(Emitter.prototype, 'on').mockImplementation(function (this: Emitter<unknown>, listener) {
      watching++;
      const stop = on.call(this, listener);
      return () => {
        watching--;
        stop();
      };
    });
    let attempts = 0;
    const running = a.db.transaction(async (tx) => {
      await readAndWrite(tx);
      if (++attempts === 2) throw new Error(`${watching} of them`);
      // Of another instance, which ends before this one does.
      await change();
    });
    expect((await nodes.failure(running)).message).toBe('1 of them');
    spy.mockRestore();
    expect([attempts, watching]).toEqual([2, 0]);
  });

  it('has waited for its mutations, with their triggers', async () => {
    a.db.registerTrigger('people', 'insert', async (row, batch, dbApi) => {
      if ((row['id'] as number) >= 100) return;
      const first = await dbApi.get(people, 1);
      await batch.insert(people, { id: 100 + (row['id'] as number), name: `with ${first?.name}` });
    });
    await nodes.run(
      a.db.transaction((tx) => {
        void tx.insert(people, { id: 2 });
      }),
    );
    expect(await nameOf(102)).toBe('with first');
  });

  it('takes in nothing that comes while it waits for them', async () => {
    let kept: Transaction | undefined;
    const late: string[] = [];
    a.db.registerTrigger('people', 'insert', async () => {
      // Not before the function has returned.
      await nodes.environment.yieldToEventLoop();
      late.push((await caught((kept as Transaction).upsert(people, { id: 60 }))).name);
    });
    await nodes.run(
      a.db.transaction((tx) => {
        kept = tx;
        void tx.insert(people, { id: 2 });
      }),
    );
    expect(late).toEqual(['BatchStateError']);
    expect(await nodes.run(a.db.get(people, 60))).toBeUndefined();
  });

  it('deletes only rows that its own queries find', async () => {
    const given = a.db.transaction((tx) => tx.deleteWhere(a.db.query(people)));
    expect((await nodes.failure(given)).name).toBe('BatchStateError');
  });
});
