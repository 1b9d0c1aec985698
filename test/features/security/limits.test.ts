/** What callers pass on from strangers: names and values of any length, clauses in clauses, characters that move cursors. */
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, StoreDbError, Types } from '../../../src/index.ts';
import type { Clause, Clauses, Database } from '../../../src/index.ts';
import { DiskCacheDriver, MemoryDriver } from '../../../src/storage/index.ts';
import { filteredLogger } from '../../../src/base/logger.ts';
import { describeValue } from '../../../src/base/messages.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    text: { typeId: Types.varchar },
    big: { typeId: Types.int64 },
    json: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: ['text'],
} as const;

let db: Database;
beforeEach(async () => {
  db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
  db.registerSchema(notes);
  await db.start();
});
afterEach(() => db.stop());

const huge = 'x'.repeat(10_000_000);
const insert = (document: object) => async (): Promise<unknown> => db.batch().insert('notes', document);
// Strangers do not keep to types.
const query = (): ReturnType<Database['query']> => db.query('notes');

async function refusal(call: () => unknown): Promise<StoreDbError> {
  try {
    await call();
  } catch (error) {
    if (error instanceof StoreDbError) return error;
    throw error;
  }
  throw new Error('It was not refused');
}

describe('messages of errors', () => {
  it.each<[string, () => unknown]>([
    ['a field that there is not', insert({ id: 1, [huge]: 1 })],
    ['a value of another type', insert({ id: huge })],
    ['a key in JSON', insert({ id: 1, json: { [huge]: [undefined] } })],
    ['a bigint', insert({ id: 1, big: 2n ** 3_000_000n })],
    ['a table', () => db.query(huge).execute()],
    ['a table of a batch', () => db.batch().delete(huge, 1)],
    ['a condition', () => query().where(huge, '=', 1).execute()],
    ['an operator', () => query().where('id', huge as '=', 1)],
    ['an order', () => query().orderBy(huge).execute()],
    ['a bookmark', () => query().page({ size: 1, after: huge })],
    ['an option', () => StoreDb({ [huge]: 1 } as never)],
    ['a prefix', () => StoreDb({ dbPrefix: huge, nodeId: 0, driver: new MemoryDriver() })],
    ['a name of a table', () => db.registerSchema({ ...notes, name: huge })],
    ['a blob', () => db.getBlob(huge).getBuffer()],
    ['an aggregate', () => query().aggregate({ [huge]: huge } as never)],
  ])('are short, whatever was given: %s', async (_, call) => {
    const startedMs = performance.now();
    const { message } = await refusal(call);
    expect(message.length).toBeLessThan(8300);
    // Digits of a bigint of that size alone take longer.
    expect(performance.now() - startedMs).toBeLessThan(1000);
  });

  it('are on one line, and do nothing to terminals', async () => {
    const forged = 'a\r\n2026-01-01 ERROR all is lost\u001b[2J\u0000\u0085\u2028';
    const refusals = await Promise.all([
      refusal(insert({ id: 1, [forged]: 1 })),
      refusal(insert({ id: forged })),
      refusal(() => db.query(forged).execute()),
      refusal(() => query().where(forged, '=', 1).execute()),
    ]);
    for (const { message } of refusals) {
      expect(message).toContain('a\\x0d\\x0a2026-01-01 ERROR all is lost\\x1b[2J\\x00\\x85\\u2028');
      // eslint-disable-next-line no-control-regex
      expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    }
  });

  it('are so in log lines as well, for any source of the error', () => {
    const lines: string[] = [];
    const line = (message: string): unknown => lines.push(message);
    const logger = filteredLogger({ debug: line, info: line, warn: line, error: line }, 'info');
    logger.warn(`The cache driver failed: a\nb https://user:hush@host ${huge}`);
    expect(lines[0]).toContain('failed: a\\x0ab https://\u2026@host');
    expect(lines[0]?.length).toBeLessThan(8300);
  });

  it('shorten bigints', () => {
    expect(describeValue(-(2n ** 63n))).toBe('-9223372036854775808n');
    expect(describeValue(-(2n ** 300n))).toBe('a bigint of more than 77 digits');
  });
});

describe('clauses in clauses', () => {
  type Join = (clauses: Clauses<Record<string, unknown>>, clause: Clause, i: number) => Clause;
  const nested = (depth: number, join: Join) => (clauses: Clauses<Record<string, unknown>>) => {
    let clause = clauses.is('id', '=', 1);
    for (let i = 1; i < depth; i++) clause = join(clauses, clause, i);
    return clause;
  };
  const joins: readonly Join[] = [
    ({ not }, clause) => not(clause),
    ({ and, or, is }, clause, i) => (i % 2 === 0 ? and : or)(clause, is('text', '=', `x${i}`)),
    ({ or, not }, clause) => or(not(clause)),
  ];

  it('work as deep as anybody writes them', async () => {
    for (const join of joins) {
      const where = nested(50, join);
      expect(await query().where(where).execute()).toEqual([]);
      expect(await query().where(where).count()).toBe(0);
      expect((await query().where(where).page({ size: 5 })).rows).toEqual([]);
      await query().where(where).explain();
    }
  });

  it('work up to 100 in each other, and no deeper', async () => {
    const [negate] = joins;
    if (negate === undefined) throw new Error('There is no join');
    expect(await query().where(nested(100, negate)).count()).toBe(0);
    expect(await refusal(() => query().where(nested(101, negate)))).toMatchObject({ code: 'INVALID_QUERY' });
  });

  it('are refused where they are deeper, before they can take up the stack', async () => {
    for (const join of joins) {
      for (const depth of [102, 100_000]) {
        const { code } = await refusal(() => query().where(nested(depth, join)));
        expect(code).toBe('INVALID_QUERY');
      }
    }
  });

  it('may be wide', async () => {
    const ids = Array.from({ length: 20_000 }, (_, i) => i);
    expect(
      await query()
        .where(({ or, is }) => or(...ids.map((id) => is('text', '=', `x${id}`))))
        .execute(),
    ).toEqual([]);
    expect(await query().where('id', 'IN', ids).execute()).toEqual([]);
  });
});

describe('JSON of strangers', () => {
  it('is refused where it is too deep, refers to itself or is not plain', async () => {
    let deep: unknown = 1;
    for (let i = 0; i < 1_000_000; i++) deep = [deep];
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    for (const json of [deep, cyclic, new Map(), { toJSON: () => 1 }]) {
      expect((await refusal(insert({ id: 1, json }))).code).toBe('ENCODE');
    }
  });

  it('never becomes a prototype', async () => {
    const json: unknown = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
    const batch = db.batch();
    await batch.insert('notes', { id: 1, json });
    await batch.flush();
    const [row] = await query().execute();
    expect(JSON.stringify(row?.['json'])).toBe(JSON.stringify(json));
    expect(Object.getPrototypeOf(row?.['json'])).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    const named = await query().aggregate({ ['__proto__']: 'count', constructor: { max: 'id' } } as never);
    expect(Object.entries(named)).toEqual([
      ['__proto__', 1],
      ['constructor', 1],
    ]);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});

describe('a file in a disk cache', () => {
  it('that is larger than any of its own is not read into memory', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'store-db-cache-'));
    const cache = new DiskCacheDriver({ path: folder, maxSizeBytes: 1024 * 1024 });
    await cache.set('key', new Uint8Array(10));
    const file = readdirSync(folder, { recursive: true, withFileTypes: true }).find((entry) => entry.isFile());
    const name = path.join(file?.parentPath ?? '', file?.name ?? '');
    expect(await cache.get('key')).toHaveLength(10);
    await writeFile(name, 'x');
    // A file of holes: no room on the disk, and more than an array can have.
    await truncate(name, 2 ** 40);
    expect(await cache.get('key')).toBeUndefined();
    await rm(folder, { recursive: true });
  });
});
