/** Queries by a function that has an index: the same rows as without it, by fewer reads where it is up to date. */
import { describe, expect, it } from 'vitest';
import { FunctionError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { siteOf, Sites } from './sites.ts';
import type { Row } from './sites.ts';

const all = Array.from({ length: 400 }, (_, id) => siteOf(id));
const ofSite = (site: number): number[] => Array.from({ length: 20 }, (_, i) => site + i * 20);

async function opened() {
  const nodes = new Sites();
  const node = await nodes.open(1, 1, { blockSizeBytes: 1024 });
  await nodes.write(node, 'insert', all);
  await nodes.merge(node);
  return { nodes, node };
}

describe('a query by an indexed function', () => {
  it('uses the index, which explain() names', async () => {
    const { nodes, node } = await opened();
    expect(await nodes.find(node, 'www.site7.org')).toEqual({ ids: ofSite(7), index: 'domain' });
    expect(await nodes.find(node, 'nowhere')).toEqual({ ids: [], index: 'domain' });
    expect(await nodes.indexVersions()).toMatchObject([{ index: 'domain', version: 1, built: null, failed: 0 }]);
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('does not call the function for rows that the index finds, and counts by the index alone', async () => {
    const { nodes, node } = await opened();
    let calls = 0;
    node.db.registerFunction('domain', ({ url }) => (calls++, (url as string).split('/')[0]), 1);
    expect((await nodes.find(node, 'www.site7.org')).ids).toEqual(ofSite(7));
    const counted = node.db.query('sites').where('domain', '=', 'www.site7.org').count();
    expect(await nodes.run(counted)).toBe(20);
    expect(calls).toBe(0);
  });

  it('shows unmerged commits, and the overlay of a batch', async () => {
    const { nodes, node } = await opened();
    await nodes.write(node, 'update', [
      { id: 7, url: 'moved' },
      { id: 8, url: 'www.site7.org/8' },
    ]);
    await nodes.write(node, 'insert', [{ id: 1000, url: 'www.site7.org' }]);
    await nodes.delete(node, [27]);
    const expected = [8, ...ofSite(7).filter((id) => id !== 7 && id !== 27), 1000];
    expect(await nodes.find(node, 'www.site7.org')).toEqual({ ids: expected, index: 'domain' });
    const batch = node.db.batch();
    void batch.update('sites', { id: 47, url: 'elsewhere' });
    const query = node.db.query('sites').where('domain', '=', 'www.site7.org').overlay(batch);
    expect((await nodes.run(query.execute())).map(({ id }) => id)).toEqual(expected.filter((id) => id !== 47));
    await nodes.merge(node);
    expect(await nodes.find(node, 'www.site7.org')).toEqual({ ids: expected, index: 'domain' });
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('keeps orders, limits, pages and other conditions', async () => {
    const { nodes, node } = await opened();
    const query = () => node.db.query('sites').where('domain', '=', 'www.site7.org');
    const ids = async (rows: Promise<readonly Row[]>) => (await nodes.run(rows)).map(({ id }) => id);
    expect(await ids(query().orderBy('id', 'desc').limit(3).execute())).toEqual(ofSite(7).toReversed().slice(0, 3));
    expect(await ids(query().orderBy('hits', 'desc').limit(2).execute())).toEqual([387, 367]);
    expect(await ids(query().where('hits', '>', 300).execute())).toEqual([307, 327, 347, 367, 387]);
    expect(await ids(query().where('domain', '=', 'www.site8.org').execute())).toEqual([]);
    // Entries say which rows there are, and nothing of what is in them.
    const keys = query().select('id').orderBy('id', 'asc');
    expect(await ids(keys.execute())).toEqual(ofSite(7));
    expect(await ids(query().where('hits', '=', 27).select('id').execute())).toEqual([27]);
    const first = await nodes.run(query().page({ size: 15 }));
    const second = await nodes.run(query().page({ size: 15, after: first.next }));
    expect([...first.rows, ...second.rows].map(({ id }) => id)).toEqual(ofSite(7));
    const either = node.db
      .query('sites')
      .where(({ is, or, not }) => or(is('domain', '=', 'www.site7.org'), not(is('hits', '<', 399))));
    expect(await ids(either.execute())).toEqual([...ofSite(7), 399]);
    const others = node.db.query('sites').where(({ is, not }) => not(is('domain', '=', 'www.site7.org')));
    expect(await ids(others.execute())).toHaveLength(380);
  });

  it('in a transaction conflicts with a commit that brings a row in', async () => {
    const { nodes, node } = await opened();
    let attempts = 0;
    const found = await nodes.run(
      node.db.transaction(async (tx) => {
        attempts++;
        const rows = await tx.query('sites').where('domain', '=', 'new').execute();
        if (attempts === 1) {
          const batch = node.db.batch();
          void batch.insert('sites', { id: 5000, url: 'new/1' });
          await batch.flush();
        }
        void tx.insert('sites', { id: 6000 + attempts, url: 'x' });
        return rows.length;
      }),
    );
    expect([attempts, found]).toEqual([2, 1]);
  });

  it('reads the state of a snapshot, and a replica too', async () => {
    const { nodes, node } = await opened();
    const snapshot = await nodes.run(node.db.snapshot());
    await nodes.write(node, 'update', [{ id: 7, url: 'moved' }]);
    await nodes.merge(node);
    await nodes.run(node.db.gc({ loopGraceMs: 0 }));
    const query = snapshot.query('sites').where('domain', '=', 'www.site7.org');
    expect(await nodes.run(query.explain())).toMatchObject({ index: 'domain' });
    expect((await nodes.run(query.execute())).map(({ id }) => id)).toEqual(ofSite(7));
    const replica = await nodes.open(2, 1, { role: 'replica' });
    expect(await nodes.find(replica, 'www.site7.org')).toEqual({ ids: ofSite(7).slice(1), index: 'domain' });
    const without = await nodes.open(3, 2, { role: 'replica' });
    expect(await nodes.find(without, 'site7.org')).toEqual({ ids: ofSite(7).slice(1), index: undefined });
    await nodes.run(snapshot.release());
  });
});

describe('the results of a function', () => {
  const long = 'x'.repeat(1100);
  const cases: readonly [typeId: number, results: readonly unknown[], strange: readonly unknown[]][] = [
    [
      Types.varchar,
      ['', 'a', 'a\0b', `${long}1`, `${long}2`, long],
      [1, true, undefined, '\ud800', { a: 1 }, Number.NaN],
    ],
    [Types.float64, [0, -0, 1.5, -1e300, Infinity], ['1', 1n, Number.NaN, undefined]],
    [Types.float32, [0, 1.5, -Infinity], [0.1, 1e300, '0']],
    [Types.int8, [0, -128, 127], [128, 0.5, '1', 1n]],
    [Types.uint64, [0n, 1n, 2n ** 64n - 1n], [1, -1n, 2n ** 64n]],
    [Types.boolean, [true, false], [1, 'true', undefined]],
    [Types.uuid, ['00112233-4455-6677-8899-aabbccddeeff'], ['00112233-4455-6677-8899-AABBCCDDEEFF', 'none', undefined]],
  ];

  it.each(cases)('of type %i is found as === has it, or found by looking', async (typeId, results, strange) => {
    const nodes = new Sites();
    const node = nodes.make(1);
    const values = [...results, ...strange, null];
    node.db.registerSchema({
      name: 'sites',
      version: 1,
      fields: { id: { typeId: Types.int32 }, pad: { typeId: Types.varchar } },
      primaryKey: 'id',
      indexes: [{ function: 'value', typeId: typeId as 10, name: 'by value' }],
    });
    const value = ({ id }: Row): unknown => values[(id as number) % values.length];
    node.db.registerFunction('value', value, 1);
    await nodes.run(node.db.start());
    const rows = Array.from({ length: values.length * 40 }, (_, id) => ({ id, pad: 'x'.repeat(100) }));
    await nodes.write(node, 'insert', rows);
    await nodes.merge(node);
    for (const wanted of values) {
      const query = node.db.query('sites').where('value', '=', wanted as string);
      const found = (await nodes.run(query.execute())).map(({ id }) => id);
      expect(found).toEqual(rows.filter((row) => value(row) === wanted).map(({ id }) => id));
      const isNumber = typeof wanted === 'number' && Number.isNaN(wanted);
      expect((await nodes.run(query.explain())).index).toBe(isNumber ? undefined : 'by value');
    }
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('is an error for as long as it fails on any row', async () => {
    const { nodes, node } = await opened();
    const fails: readonly RowCase[] = [
      { what: 'throws', url: 'throw', reason: 'threw an error' },
      { what: 'is a promise', url: 'later', reason: 'returned a promise' },
    ];
    const strict = ({ url }: Row): unknown => {
      if (url === 'throw') throw new Error('no');
      return url === 'later' ? Promise.resolve(1) : (url as string).split('/')[0];
    };
    node.db.registerFunction('domain', strict, 1);
    for (const { url, reason } of fails) {
      await nodes.write(node, 'update', [{ id: 399, url }]);
      await nodes.merge(node);
      expect(await nodes.indexVersions()).toMatchObject([{ failed: 1, built: null }]);
      const query = node.db.query('sites').where('domain', '=', 'www.site7.org');
      const error = await nodes.failure(query.execute());
      expect(error).toBeInstanceOf(FunctionError);
      expect(error.message).toContain(reason);
      expect(await nodes.run(query.explain())).not.toHaveProperty('index');
      expect(await nodes.findings(node)).toEqual([]);
      // Put right, it is used again.
      await nodes.write(node, 'update', [{ id: 399, url: 'right' }]);
      await nodes.merge(node);
      expect(await nodes.indexVersions()).toMatchObject([{ failed: 0, built: null }]);
      expect(await nodes.find(node, 'right')).toEqual({ ids: [399], index: 'domain' });
    }
  });
});

interface RowCase {
  readonly what: string;
  readonly url: string;
  readonly reason: string;
}
