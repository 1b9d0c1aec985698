/** Plans of queries on tables whose rows expire: they are kept, and what has expired is decided anew each time. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { Plan } from '../../../src/query/planner/access-paths.ts';
import { TestTable } from '../query/test-table.ts';
import type { Row } from '../query/test-table.ts';

const sessions = {
  name: 'sessions',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, user: { typeId: Types.uint32 }, at: { typeId: Types.int64 } },
  primaryKey: 'id',
  indexes: ['at'],
  expireAfter: { field: 'at', seconds: 0 },
} as const;

/** A table that shows the rows that have not expired at a time, and notes which plans are kept. */
class Sessions extends TestTable {
  expiryMs = 0;
  readonly kept: Plan[] = [];

  constructor(indexes: readonly (object | string)[]) {
    super({ ...sessions, indexes } as unknown as typeof sessions);
    const remember = this.queryMemory.remember.bind(this.queryMemory);
    this.queryMemory.remember = (state, words, known) => {
      this.kept.push(known.plan);
      remember(state, words, known);
    };
  }

  async fill(): Promise<void> {
    await this.commit(Array.from({ length: 400 }, (_, id) => ({ id, user: id % 20, at: id })));
    await this.merge();
  }

  async ids(query: { execute(): Promise<Row[]> } = this.query().where('user', '=', 7), atMs = 0): Promise<unknown[]> {
    this.expiryMs = atMs;
    return (await query.execute()).map(({ id }) => id);
  }
}

const sevens = (from: number): number[] => Array.from({ length: 20 }, (_, i) => 7 + i * 20).filter((id) => id > from);

let table: Sessions;
beforeEach(async () => {
  table = new Sessions(['user', 'at']);
  await table.fill();
});

describe('a plan of a table whose rows expire', () => {
  it('is made once, and shows what has not expired each time', async () => {
    for (const atMs of [-1, 7, 100, 387, 250]) expect(await table.ids(undefined, atMs)).toEqual(sevens(atMs));
    expect(table.kept.map(({ access }) => access.kind)).toEqual(['index']);
  });

  it('is one for each text, also by range, and for counts', async () => {
    for (const atMs of [5, 9]) {
      expect(await table.ids(table.query().where('id', '=', 7), atMs)).toEqual(atMs < 7 ? [7] : []);
      expect(await table.ids(table.query().where('id', '<', 12), atMs)).toEqual(
        Array.from({ length: 11 - atMs }, (_, i) => atMs + 1 + i),
      );
      expect(await table.query().where('user', '=', 7).count()).toBe(20 - (atMs < 7 ? 0 : 1));
    }
    expect(table.kept.map(({ access }) => access.kind)).toEqual(['table', 'index']);
  });

  it('keeps its time while it goes on, when another query begins', async () => {
    table.expiryMs = 100;
    const rows = table.query().where('user', '=', 7)[Symbol.asyncIterator]();
    const first = await rows.next();
    expect(await table.ids(undefined, 300)).toEqual(sevens(300));
    const rest: unknown[] = [];
    for (let next = first; next.done !== true; next = await rows.next()) rest.push(next.value['id']);
    expect(rest).toEqual(sevens(100));
  });

  it('is not kept if it reads the index by the time at which rows expire', async () => {
    table = new Sessions([{ fields: ['user', 'at'], name: 'both' }, 'at']);
    await table.fill();
    for (const atMs of [380, 350, 360]) expect(await table.ids(undefined, atMs)).toEqual(sevens(atMs));
    expect(table.kept).toEqual([]);
  });

  it('tests entries of an index that holds the time for what has expired by now', async () => {
    table = new Sessions([{ fields: ['user'], include: ['at'], name: 'held' }, 'at']);
    await table.fill();
    const query = (): { execute(): Promise<Row[]> } => table.query().where('user', '=', 7).select('id', 'at');
    for (const atMs of [100, 350, 200]) expect(await table.ids(query(), atMs)).toEqual(sevens(atMs));
    expect(table.kept.map(({ use }) => use?.tests.length)).toEqual([1]);
  });
});
