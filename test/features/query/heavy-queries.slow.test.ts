/** Queries of very many conditions or values are compiled and planned with pauses, at which a signal or a budget ends them. */
import { beforeAll, describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Clause, Clauses, Database, Query } from '../../../src/index.ts';
import type { Environment } from '../../../src/base/env.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { createDatabase, VirtualEnvironment } from '../../../src/testing/index.ts';

type Row = Record<string, unknown>;

const rows = 300;
const uuidOf = (i: number): string => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
const rowOf = (id: number): Row => ({
  id,
  a: id % 50,
  b: id % 7,
  c: id % 11,
  text: `t${id}`,
  key: uuidOf(id),
  big: BigInt(id) << 33n,
  at: new Date(id * 1000),
});

/** A clock of which every look finds a pause due, pauses that are counted, and timers that fire when they are told to. */
class Pauses implements Environment {
  readonly virtual = new VirtualEnvironment({ seed: 1 });
  count = 0;
  /** Called at each pause. */
  onPause: ((count: number) => void) | undefined;
  readonly timers: (() => void)[] = [];
  #ticks = 0;

  now(): number {
    return this.virtual.now();
  }
  monotonicMs(): number {
    return this.virtual.monotonicMs() + (this.onPause === undefined ? 0 : 5 * ++this.#ticks);
  }
  setTimer(...timer: Parameters<Environment['setTimer']>): ReturnType<Environment['setTimer']> {
    if (this.onPause !== undefined) this.timers.push(timer[0]);
    const [callback, delayMs] = timer;
    return this.virtual.setTimer(callback, delayMs);
  }
  randomBytes(length: number): Uint8Array {
    return this.virtual.randomBytes(length);
  }
  random(): number {
    return this.virtual.random();
  }
  yieldToEventLoop(): Promise<void> {
    this.onPause?.(++this.count);
    return this.virtual.yieldToEventLoop();
  }

  /** Runs work, and counts its pauses. */
  async during<T>(work: () => Promise<T>, onPause: (count: number) => void = () => undefined): Promise<T> {
    this.count = 0;
    this.timers.length = 0;
    this.onPause = onPause;
    try {
      return await this.virtual.run(work());
    } finally {
      this.onPause = undefined;
    }
  }
}

const environment = new Pauses();
let db: Database;

beforeAll(async () => {
  const driver = new MemoryDriver({ environment });
  db = createDatabase({ dbPrefix: 'db', driver, logLevel: 'silent', nodeId: 0 }, environment);
  db.registerSchema(
    defineSchema({
      name: 't',
      version: 1,
      primaryKey: 'id',
      indexes: ['a', { fields: ['b', 'c'] }, 'text'],
      fields: {
        id: { typeId: Types.uint32 },
        a: { typeId: Types.uint32 },
        b: { typeId: Types.uint32 },
        c: { typeId: Types.uint32 },
        text: { typeId: Types.varchar },
        key: { typeId: Types.uuid },
        big: { typeId: Types.int64 },
        at: { typeId: Types.timestamp },
      },
    }),
  );
  await environment.virtual.run(db.start());
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert('t', rowOf(id));
  await environment.virtual.run(batch.flush());
}, 60_000);

const query = (): Query<Row> => db.query('t');
const many = <T>(count: number, of: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => of(count - 1 - i));
const any = (conditions: (clauses: Clauses<Row>) => readonly Clause[]): Query<Row> =>
  query().where((clauses) => clauses.or(...conditions(clauses)));
const all = (conditions: (clauses: Clauses<Row>) => readonly Clause[]): Query<Row> =>
  query().where((clauses) => clauses.and(...conditions(clauses)));

async function expectRows(found: Query<Row>, matches: (row: Row) => boolean): Promise<void> {
  const expected = Array.from({ length: rows }, (_, id) => rowOf(id)).filter(matches);
  expect(await environment.during(() => found.execute())).toEqual(expected);
  expect(environment.count).toBeGreaterThan(3);
  expect(await environment.during(() => found.count())).toBe(expected.length);
  const ids = expected.map(({ id }) => id).toReversed();
  const ordered = await environment.during(() => found.orderBy('id', 'desc').limit(5).execute());
  expect(ordered.map(({ id }) => id)).toEqual(ids.slice(0, 5));
  expect((await environment.during(() => found.first()))?.['id']).toBe(expected[0]?.['id']);
  await expect(environment.during(() => found.explain())).resolves.toBeDefined();
}

describe('a query of thousands of conditions or values', () => {
  it('finds the same rows', { timeout: 300_000 }, async () => {
    const isThird = ({ id }: Row): boolean => (id as number) % 3 === 0;
    await expectRows(
      query().where(
        'id',
        'IN',
        many(3000, (i) => i * 3),
      ),
      isThird,
    );
    await expectRows(
      query().where(
        'text',
        'IN',
        many(3000, (i) => `t${i * 3}`),
      ),
      isThird,
    );
    await expectRows(
      query().where(
        'key',
        'IN',
        many(3000, (i) => uuidOf(i * 3)),
      ),
      isThird,
    );
    await expectRows(
      query().where(
        'big',
        'IN',
        many(3000, (i) => BigInt(i * 3) << 33n),
      ),
      isThird,
    );
    await expectRows(
      query().where(
        'at',
        'IN',
        many(3000, (i) => new Date(i * 3000)),
      ),
      isThird,
    );
    await expectRows(
      query().where(({ is, not }) =>
        not(
          is(
            'id',
            'IN',
            many(3000, (i) => i * 3),
          ),
        ),
      ),
      (row) => !isThird(row),
    );
    await expectRows(
      query().where(
        'a',
        'IN',
        many(3000, (i) => i * 7),
      ),
      ({ a }) => (a as number) % 7 === 0,
    );
    await expectRows(
      query()
        .where(
          'b',
          'IN',
          many(3000, (i) => i * 2),
        )
        .where('c', '=', 3),
      ({ b, c }) => (b as number) % 2 === 0 && c === 3,
    );
    await expectRows(
      any(({ is }) => many(3000, (i) => is('a', '=', i * 7))),
      ({ a }) => (a as number) % 7 === 0,
    );
    await expectRows(
      any(({ is }) => many(3000, (i) => is('text', 'PREFIX', `t${i + 100}`))),
      ({ id }) => (id as number) >= 100,
    );
    await expectRows(
      any(({ is, and }) => many(3000, (i) => and(is('a', '=', i * 7), is('b', '!=', i)))),
      ({ a, b }) => (a as number) % 7 === 0 && b !== (a as number) / 7,
    );
    await expectRows(
      all(({ is }) => many(3000, (i) => is('a', '!=', i + 2))),
      ({ a }) => (a as number) < 2,
    );
    await expectRows(
      all(({ is }) => many(3000, (i) => is('a', '<', i + 4))),
      ({ a }) => (a as number) < 4,
    );
    await expectRows(
      all(({ is, or }) => many(3000, (i) => or(is('a', '!=', i + 2), is('text', '=', 't7')))),
      ({ a, id }) => (a as number) < 2 || id === 7,
    );
  });

  it('finds the same rows where lists are too long to be compared with each other', { timeout: 300_000 }, async () => {
    const list = many(40_000, (i) => i * 2);
    const isSixth = ({ id }: Row): boolean => (id as number) % 6 === 0 && (id as number) > 20;
    await expectRows(
      query()
        .where('id', 'IN', list)
        .where(
          'id',
          'IN',
          many(30_000, (i) => i * 3),
        )
        .where('id', '>', 20),
      isSixth,
    );
    await expectRows(
      query().where(({ is, or, and }) =>
        or(
          and(
            is('id', 'IN', list),
            is(
              'id',
              'IN',
              many(30_000, (i) => i * 3),
            ),
            is('id', '>', 20),
          ),
          is('id', '=', 1),
        ),
      ),
      (row) => isSixth(row) || row['id'] === 1,
    );
    const inRanges = query()
      .where(
        'a',
        'IN',
        many(2000, (i) => i * 2),
      )
      .where(({ is, or }) => or(...many(2000, (i) => is('a', 'BETWEEN', [i * 5, i * 5 + 1]))));
    await expectRows(inRanges, ({ a }) => (a as number) % 2 === 0 && (a as number) % 5 < 2);
  });

  it('pauses while it is compiled and planned, and a small one does not', { timeout: 120_000 }, async () => {
    const found = query().where(
      'b',
      'IN',
      many(50_000, (i) => i + 5),
    );
    await environment.during(() => found.limit(1).execute());
    // Its 50,000 values are looked at, sorted and made keys of, a thousand at a time.
    expect(environment.count).toBeGreaterThan(300);
    await environment.during(() =>
      query()
        .where(
          'b',
          'IN',
          many(1000, (i) => i + 5),
        )
        .limit(1)
        .execute(),
    );
    expect(environment.count).toBeLessThan(10);
  });

  it('is ended by its signal while it is planned', { timeout: 120_000 }, async () => {
    for (const at of [1, 40, 200]) {
      const found = query().where(
        'b',
        'IN',
        many(50_000, (i) => i),
      );
      const controller = new AbortController();
      const running = environment.during(
        () => found.execute({ signal: controller.signal }),
        (count) => {
          if (count === at) controller.abort();
        },
      );
      await expect(running).rejects.toMatchObject({ code: 'ABORTED' });
      await environment.virtual.run(environment.virtual.yieldToEventLoop());
      expect(environment.count).toBe(at);
    }
  });

  it('is ended by its budget while it is planned', { timeout: 120_000 }, async () => {
    const conditions = ({ is, and }: Clauses<Row>): Clause[] =>
      many(20_000, (i) => and(is('a', '=', i), is('b', '!=', i)));
    for (const of of [
      () =>
        query().where(
          'b',
          'IN',
          many(50_000, (i) => i),
        ),
      () => any(conditions),
    ]) {
      const found = of().budget({ ms: 1000 });
      const running = environment.during(
        () => found.execute(),
        (count) => {
          if (count === 20) for (const fire of environment.timers) fire();
        },
      );
      await expect(running).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED', limit: 'ms' });
      await environment.virtual.run(environment.virtual.yieldToEventLoop());
      expect(environment.count).toBe(20);
    }
  });

  it('is refused at once for a mistake in the beginning, and when it is run for another one', {
    timeout: 60_000,
  }, async () => {
    const list: unknown[] = many(3000, (i) => i);
    expect(() => query().where('nothing', 'IN', list)).toThrow("no field 'nothing'");
    expect(() => query().where('a', 'IN', ['x', ...list])).toThrow("Cannot compare field 'a'");
    const late = query().where('a', 'IN', [...list, 'x']);
    await expect(environment.during(() => late.execute())).rejects.toMatchObject({ code: 'INVALID_QUERY' });
    const lateClause = any(({ is }) => [...list.map((value) => is('a', '=', value)), is('a', '=', 'x')]);
    await expect(environment.during(() => lateClause.count())).rejects.toMatchObject({ code: 'INVALID_QUERY' });
    // What is changed after the call changes nothing.
    const given: unknown[] = many(3000, (i) => i * 3);
    const kept = query().where('id', 'IN', given);
    given.fill(1);
    expect(await environment.during(() => kept.count())).toBe(rows / 3);
  });
});

describe('a clause', () => {
  it('is refused if it comes to more than ten million conditions by being put into itself', () => {
    const doubled = (times: number): Query<Row> =>
      query().where(({ is, or }) => {
        let clause: Clause = is('a', '=', 1);
        for (let i = 0; i < times; i++) clause = or(clause, clause);
        return clause;
      });
    expect(() => doubled(40)).toThrow('up to 10000000 conditions and values');
    expect(() => doubled(11)).not.toThrow();
  });
});
