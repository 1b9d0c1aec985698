/** Times of every type and size, with every access: a row is shown exactly while its time is not past. */
import { describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const startMs = 1_800_000_000_000;
const minute = 60_000;
const hour = 60 * minute;
const around = [startMs - 1, startMs, startMs + 1, startMs - hour - 1, startMs - hour, startMs - hour + 1];

const times: Readonly<Record<string, readonly (number | bigint | Date | null)[]>> = {
  timestamp: [null, ...[0, -1, -8.64e15, 8.64e15, ...around].map((ms) => new Date(ms))],
  int64: [null, 0, -1, Number.MAX_SAFE_INTEGER, -(2 ** 53) + 1, -(2n ** 63n), 2n ** 63n - 1n, ...around],
  uint64: [null, 0, 1, Number.MAX_SAFE_INTEGER, 2n ** 64n - 1n, ...around],
  float64: [null, 0, -0, -1, 1e300, -1e300, Infinity, -Infinity, NaN, startMs - 0.5, startMs + 0.5, 5e-324, ...around],
};

describe('a row with an odd time', () => {
  it.each(Object.keys(times).flatMap((type) => [0, 3600, 315_576_000_000].map((seconds) => [type, seconds] as const)))(
    'is shown while it has not expired: %s, %i seconds',
    async (type, seconds) => {
      const clock = new VirtualEnvironment({ startMs });
      const driver = clock.connect(new MemoryDriver({ environment: clock }));
      const db = createDatabase({ dbPrefix: 'db', nodeId: 1, logLevel: 'silent', driver }, clock);
      const table = {
        name: 'times',
        version: 1,
        fields: { id: { typeId: Types.int32 }, group: { typeId: Types.int32 }, at: { typeId: Types[type as 'int64'] } },
        primaryKey: 'id',
        indexes: ['at', 'group', { fields: ['at', 'group'] }],
        expireAfter: { field: 'at', seconds },
      } as const;
      db.registerSchema(table);
      await clock.run(db.start());
      const given = times[type] as readonly number[];
      const accepted: number[] = [];
      for (const [id, at] of given.entries()) {
        const batch = db.batch();
        try {
          await batch.insert(table, { id, group: id % 2, at });
        } catch {
          continue;
        }
        await clock.run(batch.flush());
        accepted.push(id);
      }
      expect(accepted.length).toBeGreaterThan(given.length - 2);
      for (const place of ['log', 'trees']) {
        if (place === 'trees') await clock.run(db.checkpoint());
        const nowMs = clock.now();
        const isThere = (id: number): boolean => {
          const at: unknown = given[id];
          return at === null || !(Number(at) <= nowMs - seconds * 1000);
        };
        const shown = accepted.filter(isThere);
        const all = db.query(table);
        const ids = async (query: { execute: () => Promise<readonly { readonly id: number }[]> }): Promise<number[]> =>
          (await clock.run(query.execute())).map(({ id }) => id).toSorted((a, b) => a - b);
        expect(await ids(all), place).toEqual(shown);
        expect(await ids(all.orderBy('at')), place).toEqual(shown);
        expect(await ids(all.where('group', 'IN', [0, 1])), place).toEqual(shown);
        expect(await ids(all.where('at', '=', null)), place).toEqual(shown.filter((id) => given[id] === null));
        expect(await ids(all.where('id', 'IN', accepted)), place).toEqual(shown);
        expect(await clock.run(all.count()), place).toBe(shown.length);
        expect(await clock.run(all.where('group', '=', 1).count()), place).toBe(
          shown.filter((id) => id % 2 === 1).length,
        );
        expect(await clock.run(all.aggregate({ last: { max: 'id' }, n: 'count' })), place).toEqual({
          last: shown.at(-1) ?? null,
          n: shown.length,
        });
        for (const id of accepted) {
          expect((await clock.run(db.get(table, id))) !== undefined, `${place}: get ${id}`).toBe(isThere(id));
          expect(db.getCached(table, id) !== null, `${place}: getCached ${id}`).toBe(isThere(id));
          expect(await ids(all.where('id', '=', id)), `${place}: key ${id}`).toEqual(isThere(id) ? [id] : []);
        }
      }
      await clock.advance(20 * minute);
      const deleted: number[] = [];
      if (db.position > accepted.length) {
        for await (const commit of db.changes({ after: accepted.length })) {
          for (const { key, ...change } of await clock.run(commit.toArray()))
            if ('expired' in change) deleted.push(key as number);
          if (commit.position >= db.position) break;
        }
      }
      const isOld = (id: number): boolean => given[id] !== null && Number(given[id]) <= clock.now() - seconds * 1000;
      expect(deleted.toSorted((a, b) => a - b)).toEqual(accepted.filter(isOld));
      await clock.run(db.stop());
    },
  );
});
