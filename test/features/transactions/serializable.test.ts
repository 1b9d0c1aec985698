/** What a transaction reads holds when it is committed: against commits of others, and those that share its commit. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/api/database.ts';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import { caught, Nodes, people } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { after } from '../protocol/scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
  b = await nodes.start(1);
  await nodes.run(seed(a.db));
  await nodes.run(b.db.refresh());
  a.driver.takeLines();
});

/** Rows 1 to 9, of age 10 to 90. */
async function seed(db: Database): Promise<void> {
  const batch = db.batch();
  for (let id = 1; id < 10; id++) void batch.insert(people, { id, name: `row ${id}`, age: id * 10 });
  await batch.flush();
}

type Change = (tx: Transaction) => unknown;

interface Case {
  readonly what: string;
  readonly read: Change;
  readonly does: string;
  readonly change: Change;
}

function cases(list: readonly (readonly [string, Change, string, Change])[]): Case[] {
  return list.map(([what, read, does, change]) => ({ what, read, does, change }));
}

/** Another node commits something. */
function commits({ db }: TestNode, change: Change): Promise<void> {
  return db.transaction(async (tx) => {
    await change(tx);
  });
}

/** Runs a transaction on `a` that reads, while `b` commits `change` the first time; how often it was run. */
async function attemptsOf(read: Change, change: Change): Promise<number> {
  let attempts = 0;
  await nodes.run(
    a.db.transaction(async (tx) => {
      attempts++;
      await read(tx);
      if (attempts === 1) await commits(b, change);
      await tx.upsert(people, { id: 1000, name: 'result', age: 0 });
    }),
  );
  return attempts;
}

async function expectSound(): Promise<void> {
  for (const { db } of [a, b]) expect(await nodes.run(db.verify())).toMatchObject({ ok: true, findings: [] });
}

describe('anomalies', () => {
  it('loses no update', async () => {
    const increment = ({ db }: TestNode): Promise<number> =>
      db.transaction(async (tx) => {
        const row = await tx.get(people, 1);
        const age = (row?.age ?? 0) + 1;
        await tx.update(people, { id: 1, age });
        return age;
      });
    const results = await nodes.run(Promise.all([increment(a), increment(b), increment(a), increment(b)]));
    expect(results.toSorted((x, y) => x - y)).toEqual([11, 12, 13, 14]);
    await nodes.run(a.db.refresh());
    expect(await nodes.run(a.db.get(people, 1))).toMatchObject({ age: 14 });
    expect(a.db.stats().transactions).toMatchObject({ committed: 2, failed: 0 });
    await expectSound();
  });

  it('lets no two write after each has read rows that the other writes', async () => {
    const leave = ({ db }: TestNode, own: number, other: number): Promise<boolean> =>
      db.transaction(async (tx) => {
        if ((await tx.get(people, other))?.name === 'away') return false;
        await tx.update(people, { id: own, name: 'away' });
        return true;
      });
    const left = await nodes.run(Promise.all([leave(a, 1, 2), leave(b, 2, 1)]));
    expect(left.toSorted()).toEqual([false, true]);
  });

  it.each([
    ['an index', (tx: Transaction) => tx.query(people).where('age', '=', 77).count()],
    ['a range of primary keys', (tx: Transaction) => tx.query(people).where('id', '>', 100).count()],
    ['a function', (tx: Transaction) => tx.query(people).where('isOdd77', '=', true).count()],
    ['all rows', async (tx: Transaction) => (await tx.query(people).execute()).filter(({ age }) => age === 77).length],
  ])('lets no row appear among the rows counted by %s', async (_, count) => {
    for (const { db } of [a, b]) db.registerFunction('isOdd77', (row) => row['age'] === 77);
    const insertFirst = ({ db }: TestNode, id: number): Promise<boolean> =>
      db.transaction(async (tx) => {
        if ((await count(tx)) > 0) return false;
        await tx.insert(people, { id, name: 'only one', age: 77 });
        return true;
      });
    const inserted = await nodes.run(Promise.all([insertFirst(a, 101), insertFirst(b, 102), insertFirst(a, 103)]));
    expect(inserted.filter((each) => each)).toHaveLength(1);
    await nodes.run(a.db.refresh());
    expect(await nodes.run(a.db.query(people).where('age', '=', 77).count())).toBe(1);
  });
});

describe('a change', () => {
  const byAge = (tx: Transaction): unknown => tx.query(people).where('age', '<', 35).execute();
  const byNameAndAge = (tx: Transaction): unknown =>
    tx.query(people).where('age', '=', 30).where('name', '=', 'row 3').execute();
  const byKeyRange = (tx: Transaction): unknown => tx.query(people).where('id', '>=', 2).where('id', '<', 5).execute();
  const byKeys = (tx: Transaction): unknown => tx.query(people).where('id', 'IN', [2, 3, 50]).execute();
  const byKeyAndName = (tx: Transaction): unknown =>
    tx.query(people).where('id', '>', 0).where('name', '=', 'row 3').execute();
  const byKeysAndName = (tx: Transaction): unknown =>
    tx.query(people).where('id', 'IN', [2, 3]).where('name', '=', 'row 3').execute();
  const byFunction = (tx: Transaction): unknown => tx.query(people).where('isThird', '=', true).execute();
  const byKey = (tx: Transaction): unknown => tx.get(people, 3);
  const limited = (tx: Transaction): unknown => tx.query(people).where('age', '>', 0).limit(1).execute();
  const counted = (tx: Transaction): unknown => tx.query(people).count();
  const byOrder = (tx: Transaction): unknown => tx.query(people).orderBy('age', 'desc').limit(2).execute();
  const oneByOne = async (tx: Transaction): Promise<void> => {
    for await (const _ of tx.query(people).where('age', '<=', 30)) await Promise.resolve();
  };
  const set =
    (id: number, fields: object): Change =>
    (tx) =>
      tx.update('people', { id, ...fields });
  const insert =
    (id: number, age: number, name = `row ${id}`): Change =>
    (tx) =>
      tx.insert(people, { id, name, age });
  const remove =
    (id: number): Change =>
    (tx) =>
      tx.delete(people, id);

  it.each(
    cases([
      ['a row', byKey, 'changes it', set(3, { age: 31 })],
      ['a row', byKey, 'deletes it', remove(3)],
      ['that a row is not there', (tx) => tx.get(people, 77), 'inserts it', insert(77, 1)],
      ['an index', byAge, 'moves a row into its range', set(9, { age: 34 })],
      ['an index', byAge, 'moves a row out of its range', set(3, { age: 35 })],
      ['an index', byAge, 'changes another field of a row in its range', set(3, { name: 'other' })],
      ['an index', byAge, 'deletes a row in its range', remove(1)],
      ['an index', byAge, 'inserts a row into its range', insert(77, 1)],
      ['an index and a field', byNameAndAge, 'changes the field', set(3, { name: 'other' })],
      ['an index and a field', byNameAndAge, 'brings a row into both', insert(77, 30, 'row 3')],
      ['a range of keys', byKeyRange, 'changes a row in it', set(4, { name: 'other' })],
      ['a range of keys', byKeyRange, 'deletes a row in it', remove(2)],
      ['some keys', byKeys, 'changes a row of them', set(3, { name: 'other' })],
      ['some keys', byKeys, 'inserts one that was not there', insert(50, 1)],
      ['some keys and a field', byKeysAndName, 'makes one of them match', set(2, { name: 'row 3' })],
      ['some keys and a field', byKeysAndName, 'makes one of them not match', set(3, { name: 'other' })],
      ['keys and a field', byKeyAndName, 'makes a row match', set(8, { name: 'row 3' })],
      ['keys and a field', byKeyAndName, 'makes a row not match', set(3, { name: 'other' })],
      ['a function', byFunction, 'makes a row match', set(8, { name: 'row 3' })],
      ['a function', byFunction, 'makes a row not match', set(3, { name: 'other' })],
      ['a limited query', limited, 'changes a row beyond its limit', set(9, { name: 'other' })],
      ['a count', counted, 'inserts a row', insert(77, 1)],
      ['an order', byOrder, 'inserts a row', insert(77, 99)],
      ['rows one by one', oneByOne, 'changes one of them', set(3, { name: 'other' })],
    ]),
  )('to $what that was read makes another attempt: somebody $does', async ({ read, change }) => {
    for (const { db } of [a, b]) db.registerFunction('isThird', (row) => row['name'] === 'row 3');
    expect(await attemptsOf(read, change)).toBe(2);
    expect(a.db.stats().transactions).toMatchObject({ committed: 1, conflicts: 1, failed: 0 });
    await expectSound();
  });

  it.each(
    cases([
      ['a row', byKey, 'changes another one', set(4, { age: 31 })],
      ['an index', byAge, 'changes rows outside of its range', set(9, { age: 80 })],
      ['an index', byAge, 'inserts a row outside of its range', insert(77, 99)],
      ['an index', byAge, 'deletes a row outside of its range', remove(9)],
      ['an index and a field', byNameAndAge, 'changes a row that has only one of them', set(4, { age: 30 })],
      ['a range of keys', byKeyRange, 'changes the row at its end', set(5, { name: 'other' })],
      ['a range of keys', byKeyRange, 'changes the row before it', set(1, { name: 'other' })],
      ['some keys', byKeys, 'changes a row between them', set(4, { name: 'other' })],
      ['keys and a field', byKeyAndName, 'changes a row that does not match', set(4, { age: 1 })],
      ['a function', byFunction, 'changes a row that does not match', set(4, { age: 1 })],
      [
        'a field that is null',
        (tx) => tx.query(people).where('name', '=', null).count(),
        'deletes a row whose is not',
        remove(4),
      ],
      [
        'a range of keys and a field',
        (tx) => tx.query(people).where('id', '<', 5).where('name', '=', 'row 3').execute(),
        'makes a row beyond the range match',
        set(8, { name: 'row 3' }),
      ],
      ['some keys and a field', byKeysAndName, 'makes another row match', set(8, { name: 'row 3' })],
      ['some keys and a field', byKeysAndName, 'changes one of them that does not match', set(2, { age: 1 })],
      ['nothing', () => undefined, 'changes what it writes', insert(1000, 5)],
      ['no row at all', (tx) => tx.query(people).where('id', 'IN', []).execute(), 'inserts one', insert(77, 1)],
      ['another table', (tx) => tx.query('_blobs').count(), 'changes a row', set(4, { age: 1 })],
    ]),
  )('that $what does not show makes no other attempt: somebody $does', async ({ read, change }) => {
    for (const { db } of [a, b]) db.registerFunction('isThird', (row) => row['name'] === 'row 3');
    expect(await attemptsOf(read, change)).toBe(1);
    expect(a.db.stats().transactions).toMatchObject({ committed: 1, conflicts: 0, failed: 0 });
    await expectSound();
  });

  it('on which a function throws might match', async () => {
    a.db.registerFunction('isNamed', ({ name }) => (name as string).length > 0);
    expect(await attemptsOf((tx) => tx.query(people).where('isNamed', '=', false).count(), insert(77, 1, 'x'))).toBe(1);
    const withoutName: Change = (tx) => tx.insert(people, { id: 78, age: 1 });
    const reading = attemptsOf((tx) => tx.query(people).where('isNamed', '=', false).count(), withoutName);
    // The next attempt meets the row itself.
    await expect(reading).rejects.toThrow("Function 'isNamed' threw an error");
    expect(a.db.stats().transactions).toMatchObject({ committed: 1, conflicts: 1, failed: 1 });
  });

  it('in another version of the table is one', async () => {
    const { id, name, age } = people.fields;
    const first = { name: 'new', version: 1, fields: { id, age }, primaryKey: 'id' } as const;
    a.db.registerSchema(first);
    // In its rows the fields lie elsewhere.
    b.db.registerSchema({ ...first, version: 2, fields: { id, aa: name, age } });
    const reading = attemptsOf(
      (tx) => tx.query(first).where('age', '=', 77).count(),
      (tx) => tx.insert('new', { id: 1, aa: 'a name', age: 77 }),
    );
    await expect(reading).rejects.toThrow("Table 'new' has gone from version 1 to version 2");
    expect(a.db.stats().transactions).toMatchObject({ committed: 0, conflicts: 1, failed: 1 });
  });

  it('of a row under an own update counts, once the row was read', async () => {
    // By what is stored, the row does not match, neither before nor after.
    const read: Change = async (tx) => {
      await tx.update(people, { id: 3, age: 99 });
      return tx.query(people).where('age', '=', 99).execute();
    };
    expect(await attemptsOf(read, set(3, { name: 'other' }))).toBe(2);
  });

  it('of a row that is replaced does not count, though that was looked at', async () => {
    const read: Change = async (tx) => {
      await tx.upsert(people, { id: 3, name: 'mine', age: 99 });
      await tx.delete(people, 4);
      return tx.query(people).where('age', '=', 99).execute();
    };
    expect(await attemptsOf(read, set(3, { name: 'other' }))).toBe(1);
    expect(await attemptsOf(read, set(3, { name: 'other', age: 1 }))).toBe(2);
  });

  it('of a row that is only updated leaves both changes', async () => {
    expect(await attemptsOf((tx) => tx.update(people, { id: 3, age: 99 }), set(3, { name: 'other' }))).toBe(1);
    expect(await nodes.run(a.db.get(people, 3))).toEqual({ id: 3, name: 'other', age: 99 });
  });
});

describe('members of one commit', () => {
  const double = ({ db }: TestNode, id: number): Promise<unknown> =>
    db.transaction(async (tx) => tx.update(people, { id, age: ((await tx.get(people, id))?.age ?? 0) * 2 }));

  /** Begins what commits while a flush is under way, so that all of it shares the next commit. */
  async function whileHeld<T>(begin: () => Promise<T>, node = a): Promise<{ done: Promise<T> }> {
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    node.driver.onPut(
      /^committed/,
      after(() => opened),
    );
    const first = nodes.insert(node, 90);
    await nodes.environment.quiesce();
    const done = begin();
    done.catch(() => undefined);
    await nodes.environment.quiesce();
    open();
    await nodes.run(first);
    return { done };
  }

  it('are validated against each other', async () => {
    const all = await whileHeld(() => Promise.all([double(a, 1), double(a, 1), double(a, 1), double(a, 2)]));
    await nodes.run(all.done);
    expect((await nodes.run(a.db.get(people, 1)))?.age).toBe(80);
    expect((await nodes.run(a.db.get(people, 2)))?.age).toBe(40);
    // The second and the third fail together; then the third again, if they meet again.
    expect(a.db.stats().transactions.conflicts).toBeGreaterThanOrEqual(2);
    await expectSound();
  });

  it('share it if none changes rows that another has read', async () => {
    const all = await whileHeld(() => Promise.all([1, 2, 3, 4].map((id) => double(a, id))));
    await nodes.run(all.done);
    expect(a.driver.takeLines().filter((line) => line.startsWith('put committed'))).toHaveLength(2);
    expect(a.db.stats().transactions).toMatchObject({ committed: 4, conflicts: 0 });
  });

  it('that go before are seen, also the flushes of batches', async () => {
    let attempts = 0;
    const all = await whileHeld(() => {
      const flushed = nodes.insert(a, 50, 'phantom', 201);
      const counted = a.db.transaction(async (tx) => {
        attempts++;
        const age = await tx.query(people).where('age', '>', 200).count();
        await tx.insert(people, { id: 60, name: 'count', age });
      });
      return Promise.all([flushed, counted]);
    });
    await nodes.run(all.done);
    expect(attempts).toBe(2);
    expect((await nodes.run(a.db.get(people, 60)))?.age).toBe(1);
  });

  it('of others are all looked at', async () => {
    let attempts = 0;
    let goOn = (): void => undefined;
    const others = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const running = a.db.transaction(async (tx) => {
      attempts++;
      const row = await tx.get(people, 1);
      await others;
      await tx.insert(people, { id: 60, name: 'age', age: row?.age ?? 0 });
    });
    const both = await whileHeld(() => Promise.all([2, 1].map((id) => double(b, id))), b);
    await nodes.run(both.done);
    expect(b.db.stats().log?.tail).toBe(3);
    goOn();
    await nodes.run(running);
    expect(attempts).toBe(2);
    expect((await nodes.run(a.db.get(people, 60)))?.age).toBe(20);
  });

  it('that contradict one which is rejected in the end do not do so', async () => {
    a.driver.onPut(
      /^committed\/3$/,
      after(() => nodes.insert(b, 78)),
    );
    let attempts = 0;
    const all = await whileHeld(() => {
      const writing = a.db.transaction(async (tx) => {
        for (const id of [77, 78]) await tx.insert(people, { id, name: 'both or none' });
      });
      const reading = a.db.transaction(async (tx) => {
        attempts++;
        const row = await tx.get(people, 77);
        await tx.insert(people, { id: 60, name: row?.name ?? 'none', age: 0 });
      });
      return Promise.all([caught(writing), reading]);
    });
    const [failure] = await nodes.run(all.done);
    expect(failure.name).toBe('DuplicateKeyError');
    expect((await nodes.run(a.db.get(people, 60)))?.name).toBe('none');
    expect(attempts).toBe(1);
    await expectSound();
  });
});

describe('a slot that others won', () => {
  it('is validated against, however often', async () => {
    let won = 0;
    a.driver.onPut(
      /^committed/,
      after(() => nodes.insert(b, 100 + won++, 'others', 250)),
      3,
    );
    let attempts = 0;
    await nodes.run(
      a.db.transaction(async (tx) => {
        attempts++;
        await tx.query(people).where('age', '<', 100).count();
        await tx.insert(people, { id: 60, name: 'last', age: 0 });
      }),
    );
    expect([attempts, won]).toEqual([1, 3]);
  });

  it('is a conflict if it changes rows that were read, and the next attempt sees it', async () => {
    a.driver.onPut(
      /^committed/,
      after(() => commits(b, (tx) => tx.update(people, { id: 1, age: 200 }))),
    );
    const seen: unknown[] = [];
    await nodes.run(
      a.db.transaction(async (tx) => {
        seen.push((await tx.get(people, 1))?.age);
        await tx.insert(people, { id: 60, name: 'last', age: 0 });
      }),
    );
    expect(seen).toEqual([10, 200]);
    expect(await nodes.hasSlot(4)).toBe(false);
  });

  it('again and again counts as a conflict, too', async () => {
    let won = 0;
    a.driver.onPut(
      /^committed/,
      after(() => nodes.insert(b, 100 + won++, 'others', 250)),
      32,
    );
    await nodes.run(a.db.transaction((tx) => tx.insert(people, { id: 60, name: 'last', age: 0 })));
    expect(won).toBe(32);
    expect(a.db.stats().transactions).toEqual({ committed: 1, conflicts: 1, failed: 0 });
  });
});

describe('a transaction whose writes cancel out', () => {
  it('still needs its reads to hold', async () => {
    const seen: unknown[] = [];
    a.driver.takeLines();
    await nodes.run(
      a.db.transaction(async (tx) => {
        seen.push((await tx.get(people, 1))?.age);
        await tx.insert(people, { id: 60, name: 'for nothing', age: 0 });
        await tx.delete(people, 60);
        if (seen.length === 1) await commits(b, (other) => other.update(people, { id: 1, age: 200 }));
      }),
    );
    expect(seen).toEqual([10, 200]);
    expect(a.driver.takeLines().filter((line) => line.startsWith('put'))).toEqual([]);
  });
});
