/** Opening a database, and creating it where there is none (docs/protocol.md, "Opening"). */
import { beforeEach, describe, expect, it } from 'vitest';
import { DatabaseReplacedError, NotADatabaseError } from '../../../src/base/errors.ts';
import { Nodes, prefix } from './nodes.ts';
import { after, answerLost, before, hangs, refused, requestLost } from './scripted-driver.ts';

let nodes: Nodes;

beforeEach(() => {
  nodes = new Nodes();
});

const bytes = new Uint8Array([1]);

describe('where there is nothing', () => {
  it('the database is created: Block 0, listing, Block 0 again, and then a create-only put', async () => {
    const { db, driver } = nodes.make(0);
    await nodes.run(db.start());
    expect(driver.lines).toEqual([
      'get block0 missing',
      'list ',
      'get block0 missing',
      'put block0 written',
      'get committed/1 missing',
    ]);
    expect(await nodes.keys()).toEqual(['block0']);
    expect(await nodes.block0()).toMatchObject({ revision: 1, generation: 0, appliedSeq: 0, logFloor: 0, nodes: [0] });
  });

  it('two that create at once agree on one database', async () => {
    const a = nodes.make(0);
    const b = nodes.make(1);
    await nodes.run(Promise.all([a.db.start(), b.db.start()]));
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(nodes.insert(b, 2));
    expect(await nodes.names(b, [1, 2])).toEqual(['row 1', 'row 2']);
    expect((await nodes.block0()).revision).toBe(1);
  });

  it.each([['before the first look'], ['before the listing'], ['before the second look'], ['before the put']])(
    'somebody else may create it at any moment: %s',
    async (when) => {
      const other = nodes.make(1);
      const { db, driver } = nodes.make(0);
      const create = async (): Promise<void> => {
        await other.db.start();
        await nodes.insert(other, 1);
      };
      if (when === 'before the put') driver.onPut(/^block0$/, after(create));
      else if (when === 'before the listing') driver.onList(after(create));
      else {
        if (when === 'before the second look') driver.onGet(/^block0$/, (pass) => pass());
        driver.onGet(/^block0$/, after(create));
      }
      await nodes.run(db.start());
      expect(await nodes.names({ db, driver, log: [] }, [1])).toEqual(['row 1']);
    },
  );

  it('a creation without an answer is looked for, not repeated blindly', async () => {
    const { db, driver } = nodes.make(0);
    driver.onPut(/^block0$/, answerLost);
    await nodes.run(db.start());
    expect(driver.lines.filter((line) => line.startsWith('put'))).toEqual(['put block0 failed']);
    const lost = new Nodes();
    const second = lost.make(0);
    second.driver.onPut(/^block0$/, requestLost);
    await lost.run(second.db.start());
    expect(second.driver.lines.filter((line) => line.startsWith('put'))).toEqual([
      'put block0 failed',
      'put block0 written',
    ]);
  });

  it('a creation that the store refuses fails start(), which can be called again', async () => {
    const { db, driver } = nodes.make(0);
    driver.onPut(/^block0$/, refused, Number.POSITIVE_INFINITY);
    expect(await nodes.failure(db.start())).toMatchObject({ code: 'STORAGE' });
    driver.heal();
    await nodes.run(db.start());
  });
});

describe('where there are other objects', () => {
  it('opening is refused, and nothing is written', async () => {
    await nodes.store.put(`${prefix}/holiday.jpg`, bytes, { if: 'any' });
    const { db } = nodes.make(0);
    const error = await nodes.failure(db.start());
    expect(error).toBeInstanceOf(NotADatabaseError);
    expect(error.message).toContain('holiday.jpg');
    expect(await nodes.keys()).toEqual(['holiday.jpg']);
  });

  it('also if they are the remains of a database that lost its Block 0', async () => {
    const first = await nodes.start(0);
    await nodes.run(nodes.insert(first, 1));
    await nodes.run(first.db.stop());
    await nodes.store.delete([`${prefix}/block0`]);
    expect(await nodes.failure(nodes.make(1).db.start())).toBeInstanceOf(NotADatabaseError);
  });

  it('probes are none, however many', async () => {
    for (let i = 0; i < 1100; i++) await nodes.store.put(`${prefix}/probe/${i}`, bytes, { if: 'any' });
    await nodes.run(nodes.make(0).db.start());
    const other = new Nodes();
    for (let i = 0; i < 1100; i++) await other.store.put(`${prefix}/probe/${i}`, bytes, { if: 'any' });
    await other.store.put(`${prefix}/staged/x`, bytes, { if: 'any' });
    expect(await other.failure(other.make(0).db.start())).toBeInstanceOf(NotADatabaseError);
  });

  it('those under other prefixes are none either', async () => {
    await nodes.store.put(`${prefix}2/block0`, bytes, { if: 'any' });
    await nodes.store.put('block0', bytes, { if: 'any' });
    await nodes.run(nodes.make(0).db.start());
  });
});

describe('where there is a database', () => {
  it('nothing is listed and nothing is written', async () => {
    await nodes.start(0);
    const { db, driver } = nodes.make(1);
    await nodes.run(db.start());
    expect(driver.lines).toEqual(['get block0 found', 'get committed/1 missing']);
  });

  it('commits after Block 0 are read, and confirmed by Block 0', async () => {
    const a = await nodes.start(0);
    await nodes.run(nodes.insert(a, 1));
    const { db, driver } = nodes.make(1);
    await nodes.run(db.start());
    expect(driver.lines[0]).toBe('get block0 found');
    expect(driver.lines.at(-1)).toBe('get block0 unchanged');
    expect(await nodes.names({ db, driver, log: [] }, [1])).toEqual(['row 1']);
  });

  it('a zombie under a floor that was raised meanwhile is not believed', async () => {
    const a = await nodes.start(0);
    const late = await nodes.start(1);
    const { db, driver } = nodes.make(2);
    // The opening node has read Block 0. Then slot 1 is used, merged, trimmed, and won by somebody who had slept.
    driver.onGet(
      /^block0$/,
      before(async () => {
        await nodes.insert(a, 1);
        await a.db.checkpoint();
        await nodes.trimLog();
        late.driver.onPut(/^committed\/1$/, before(hangs));
        void nodes.insert(late, 666);
        await nodes.environment.quiesce();
      }),
    );
    await nodes.run(db.start());
    expect(driver.lines).toContain('get committed/1 found');
    expect(await nodes.names({ db, driver, log: [] }, [1, 666])).toEqual(['row 1', undefined]);
  });

  it('slots are read on after a Block 0 that has moved on meanwhile', async () => {
    const a = await nodes.start(0);
    for (let id = 1; id <= 3; id++) await nodes.run(nodes.insert(a, id));
    const { db, driver } = nodes.make(1);
    driver.onGet(
      /^committed\/2$/,
      after(async () => {
        await a.db.checkpoint();
        await nodes.trimLog();
        await a.db.refresh();
        await nodes.insert(a, 4);
      }),
    );
    await nodes.run(db.start());
    expect(await nodes.names({ db, driver, log: [] }, [1, 2, 3, 4])).toEqual(['row 1', 'row 2', 'row 3', 'row 4']);
  });

  it('a Block 0 that goes back while it is opened is noticed', async () => {
    const a = await nodes.start(0);
    const old = await nodes.store.get(`${prefix}/block0`);
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    await nodes.run(nodes.insert(a, 2));
    const { db, driver } = nodes.make(1);
    driver.onGet(
      /^committed\/2$/,
      after(async () => {
        if (old.status === 'found') await nodes.store.put(`${prefix}/block0`, old.bytes, { if: 'any' });
      }),
    );
    expect(await nodes.failure(db.start())).toBeInstanceOf(DatabaseReplacedError);
  });
});

describe('expectAtLeast', () => {
  it('refuses a database that was set back, which nothing else shows at the opening', async () => {
    const a = await nodes.start(0);
    const old = await nodes.store.get(`${prefix}/block0`);
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.checkpoint());
    const { revision, generation } = a.db.stats().log as { revision: number; generation: number };
    expect([revision, generation]).toEqual([2, 1]);
    await nodes.run(a.db.stop());
    if (old.status === 'found') await nodes.store.put(`${prefix}/block0`, old.bytes, { if: 'any' });
    for (const expectAtLeast of [{ revision }, { generation }, { revision, generation }, { revision: 1, generation }]) {
      const error = await nodes.failure(nodes.make(1).db.start({ expectAtLeast }));
      expect(error).toMatchObject({ code: 'DATABASE_REPLACED' });
      expect(error.message).toMatch(/is of revision 1 and generation 0, and at least .* was expected/);
    }
    const { db } = nodes.make(1);
    await nodes.run(db.start({ expectAtLeast: { revision: 1, generation: 0 } }));
    // The instance that had seen more opens it too, and says so.
    await nodes.run(a.db.start());
    expect(a.log.filter(({ message }) => message.includes('has seen revision'))).toHaveLength(1);
  });

  it('creates no database where there is none', async () => {
    const { db, driver } = nodes.make(0);
    const error = await nodes.failure(db.start({ expectAtLeast: { revision: 1 } }));
    expect(error).toBeInstanceOf(DatabaseReplacedError);
    expect(error.message).toContain('None was created');
    expect(driver.lines).toEqual(['get block0 missing']);
  });

  it.each([
    [{}, 'expectAtLeast'],
    [7, 'expectAtLeast'],
    [{ revision: -1 }, 'expectAtLeast.revision'],
    [{ revision: 1.5 }, 'expectAtLeast.revision'],
    [{ revisions: 1 }, 'expectAtLeast.revisions'],
    [null, 'expectAtLeast'],
  ])('refuses %o', async (expectAtLeast, option) => {
    const { db, driver } = nodes.make(0);
    const error = await nodes.failure(db.start({ expectAtLeast: expectAtLeast as never }));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option });
    expect(driver.lines).toEqual([]);
  });
});
