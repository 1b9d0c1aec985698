/** Every command on a database in a folder: its output, as text and as JSON, and its exit status. */
import { readdir, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { SchemaDefinition } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const cities: SchemaDefinition = {
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    country: { typeId: Types.varchar },
    people: { typeId: Types.int64 },
    founded: { typeId: Types.timestamp },
  },
  primaryKey: 'id',
  indexes: ['country', { fields: ['country', 'name'], unique: true }],
};

let folder: TestFolder;

/** A row for each number: every third in Finland. */
const row = (id: number): Record<string, unknown> => ({
  id,
  name: `City ${id}`,
  country: ['FI', 'FR', 'IS'][id % 3],
  people: BigInt(id) * 1000n,
  founded: new Date(id * 86_400_000),
});

async function open(prefix: string): Promise<ReturnType<typeof StoreDb>> {
  const driver = new FileDriver(folder.file('db'));
  const db = StoreDb({ dbPrefix: prefix, nodeId: 1, driver, logLevel: 'silent', blockSizeBytes: 4096 });
  db.registerSchema(cities);
  await db.start();
  return db;
}

beforeAll(async () => {
  folder = await TestFolder.make();
  const db = await open('main');
  const batch = db.batch();
  for (let id = 0; id < 300; id++) void batch.insert('cities', row(id));
  await batch.flush();
  await db.checkpoint();
  const more = db.batch();
  void more.insert('cities', { ...row(300), name: 'bad\u001b[31m\nname' });
  void more.delete('cities', 7);
  await more.flush();
  await db.stop();
});

afterAll(async () => {
  await folder[Symbol.asyncDispose]();
});

const shown = (words: string[], options = {}) => run([words[0] as string, folder.url(), ...words.slice(1)], options);

describe('reading commands', () => {
  it('tables: versions, rows, fields and indexes', async () => {
    const text = await shown(['tables']);
    expect(text).toMatchObject({ status: 0, messages: '' });
    expect(
      text.output
        .split('\n')
        .slice(0, 2)
        .map((line) => line.trim().split(/ {2,}/)),
    ).toEqual([
      ['table', 'version', 'rows', 'primary key', 'indexes', 'fields'],
      ['cities', '1', '300', 'id', 'country, country+name (unique)', expect.stringContaining('people int64')],
    ]);
    const json = await shown(['tables', '--json']);
    expect(jsonLines(json.output)).toEqual([[{ ...cities, rows: 300 }]]);
  });

  it('indexes: which there are, and how far they are', async () => {
    const text = await shown(['indexes', 'cities']);
    expect(text).toMatchObject({ status: 0, messages: '' });
    const lines = text.output
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().split(/ {2,}/));
    expect(lines).toEqual([
      ['index', 'on', 'unique', 'where', 'state', 'rows done', 'entries', 'problem'],
      ['country', 'country', 'ready', '300 of 300', '300'],
      ['country,name', 'country, name', 'unique', 'ready', '300 of 300', '300'],
    ]);
    const sized = await shown(['indexes', 'cities', '--sizes']);
    expect(sized.output).toMatch(/entries +size/);
    expect(sized.output.match(/300 of 300 +300 +[\d.]+ (B|KB)/g)).toHaveLength(2);
    const json = await shown(['indexes', 'cities', '--json']);
    expect(json.output).not.toContain('sizeBytes');
    const [bytes] = jsonLines((await shown(['indexes', 'cities', '--sizes', '--json'])).output) as [
      { sizeBytes: number }[],
    ];
    expect(bytes.every(({ sizeBytes }) => sizeBytes > 1000)).toBe(true);
    expect(jsonLines(json.output)).toMatchObject([
      [
        { name: 'country', state: 'ready' },
        { unique: true, rowsDone: 300 },
      ],
    ]);
    expect((await shown(['indexes', 'citie'])).messages).toContain('did you mean cities?');
  });

  it('stats: the contents of a database', async () => {
    const { output, status } = await shown(['stats', '--json']);
    expect(status).toBe(0);
    expect(jsonLines(output)[0]).toMatchObject({
      tables: 1,
      rows: 300,
      tail: 2,
      appliedSeq: 1,
      pendingCommits: 1,
      objects: expect.arrayContaining([expect.objectContaining({ kind: 'commits', objects: 2 })]) as unknown,
    });
    const text = await shown(['stats']);
    expect(text.output).toMatch(/^commits +2, 1 of them to be merged$/m);
    expect(text.output).toMatch(/^total +\d+ +[\d.]+ KB$/m);
  });

  it.each([
    [
      ['--where', 'country = IS', '--where', 'id < 10'],
      [2, 5, 8],
    ],
    [
      ['--where', 'id IN (3,1, 2)'],
      [1, 2, 3],
    ],
    [
      ['--where', 'id BETWEEN 5 and 8'],
      [5, 6, 8],
    ],
    [
      ['--where', "name PREFIX 'City 29'"],
      [29, 290, 291, 292, 293, 294, 295, 296, 297, 298, 299],
    ],
    [
      ['--where', 'people >= 299000'],
      [299, 300],
    ],
    [
      ['--where', 'founded<1970-01-03'],
      [0, 1],
    ],
    [['--where', 'name = null'], []],
    [
      ['--order', 'country', '--order', 'id:desc', '--limit', '2', '--offset', '1'],
      [297, 294],
    ],
    [
      ['--where', '"id" != 5', '--limit', '6'],
      [0, 1, 2, 3, 4, 6],
    ],
  ])('query %j', async (words, ids) => {
    const { output, status } = await shown(['query', 'cities', '--json', '--fields', 'id', ...words]);
    expect(status).toBe(0);
    expect(jsonLines(output)).toEqual(ids.map((id) => ({ id })));
  });

  it('query: a table of texts, or a count', async () => {
    const { output } = await shown(['query', 'cities', '--where', 'id >= 299', '--fields', 'id, name,people']);
    // What is in the database does not get at the terminal.
    expect(output).toBe(
      ' id  name              people\n299  City 299          299000\n300  bad\\x1b[31m\u23cename  300000\n',
    );
    expect(await shown(['query', 'cities', '--count'])).toMatchObject({ status: 0, output: '300\n' });
    expect((await shown(['query', 'cities', '--where', 'id = 7', '--count', '--json'])).output).toBe('{"count":0}\n');
  });

  it('query: limits of its cost', async () => {
    const { status, messages } = await shown(['query', 'cities', '--max-requests', '1']);
    expect({ status, messages }).toEqual({
      status: 3,
      messages: expect.stringContaining('[BUDGET_EXCEEDED]') as unknown,
    });
  });

  it('explain: steps, and their reads', async () => {
    const { output, status } = await shown(['explain', 'cities', '--where', 'country = IS', '--run', '--json']);
    expect(status).toBe(0);
    expect(jsonLines(output)[0]).toMatchObject({ table: 'cities', steps: expect.any(Array) as unknown });
    const text = await shown(['explain', 'cities', '--where', 'people > 5', '--run']);
    expect(text.output).toMatch(/^table +estimated/m);
    expect(text.output).toMatch(/actual +300 /);
  });

  it('log: commits, the newest first', async () => {
    const { output, status } = await shown(['log', '--json']);
    expect(status).toBe(0);
    expect(jsonLines(output)).toMatchObject([
      { slot: 2, nodeId: 1, merged: false, tables: { cities: 2 } },
      { slot: 1, nodeId: 1, merged: true, tables: { cities: 300 } },
    ]);
    expect((await shown(['log', '--limit', '1'])).output.split('\n')).toHaveLength(3);
  });

  it('cat: a catalogue, and Block 0 with the tables in it', async () => {
    const driver = new FileDriver(folder.file('many'));
    const db = StoreDb({ dbPrefix: 'many', nodeId: 1, driver, logLevel: 'silent', blockSizeBytes: 512 });
    const names = Array.from({ length: 20 }, (_, i) => `t${i}`);
    for (const name of names) {
      db.registerSchema({ name, version: 1, fields: { id: { typeId: Types.uint32 } }, primaryKey: 'id' });
    }
    await db.start();
    const batch = db.batch();
    for (const name of names) void batch.insert(name, { id: 1 });
    await batch.flush();
    await db.checkpoint();
    await db.stop();
    const cat = async (name: string): Promise<Record<string, unknown>> => {
      return JSON.parse((await run(['cat', `file:${folder.file('many')}`, name])).output) as Record<string, unknown>;
    };
    const { catalogue, tables } = await cat('block0');
    expect(tables).toHaveLength(20);
    const { name, tables: held } = await cat(catalogue as string);
    expect(name).toBe(catalogue);
    expect(held).toHaveLength(20);
  });

  it('cat: Block 0, commits and blocks', async () => {
    const block0 = JSON.parse((await shown(['cat'])).output) as Record<string, unknown>;
    expect(block0).toMatchObject({ format: 1, appliedSeq: 1, tables: [{ name: 'cities' }] });
    const commit = JSON.parse((await shown(['cat', 'main/committed/0000000000000002'])).output) as object;
    expect(commit).toMatchObject({
      slot: 2,
      members: [
        {
          changes: [
            {
              table: 'cities',
              entries: [
                { key: 7, deleted: true },
                { key: 300, row: { people: 300000 } },
              ],
            },
          ],
        },
      ],
    });
    const names = await readdir(folder.file('db'), { recursive: true });
    expect(names.length).toBeGreaterThan(5);
    const inlined = block0['inlined'] as { name: string }[];
    const nodes = await Promise.all(
      inlined.map(async ({ name }) => JSON.parse((await shown(['cat', name])).output) as object),
    );
    expect(nodes).toContainEqual(
      expect.objectContaining({
        level: 1,
        entries: expect.arrayContaining([expect.objectContaining({ child: expect.any(Object) as unknown })]) as unknown,
      }),
    );
  });

  it('snapshots, migration status, cost', async () => {
    expect(await shown(['snapshots'])).toMatchObject({ status: 0, output: '', messages: 'No snapshot is held.\n' });
    expect((await shown(['migrate', 'cities', '--json'])).output).toContain('"state":"none"');
    const { output, status } = await shown(['cost', '--commits-per-day', '100', '--nodes', '2', '--json']);
    expect(status).toBe(0);
    // 2 nodes, a look every 5 s, 30 days.
    expect(jsonLines(output)[0]).toMatchObject({
      commitsPerDay: 100,
      // 34,560 reads a day for each node, as docs/costs.md has it for one that nobody uses.
      dollarsPerMonth: { polling: expect.closeTo(((2 * 34_560 * 30) / 1000) * 0.0004, 8) as unknown },
    });
    // What was loaded in a second is no rate: commits count as those of a day at least.
    const own = jsonLines((await shown(['cost', '--json'])).output)[0];
    const { commitsPerDay } = own as { commitsPerDay: number };
    expect(Number.isInteger(commitsPerDay) && commitsPerDay > 0 && commitsPerDay < 100).toBe(true);
  });
});

describe('checks and repair', () => {
  it('verify reports faults, repair mends them, and exit statuses show both', async () => {
    const db = await open('damaged');
    const batch = db.batch();
    for (let id = 0; id < 600; id++) void batch.insert('cities', row(id));
    await batch.flush();
    await db.checkpoint();
    await db.stop();
    const url = folder.url('damaged');
    expect(await run(['verify', url, '--deep'])).toMatchObject({
      status: 0,
      output: expect.stringContaining('Nothing is wrong.') as unknown,
    });
    const driver = new FileDriver(folder.file('db'));
    const { entries } = await driver.list('damaged/indexes/cities/country/');
    const name = entries[0]?.key as string;
    const found = await driver.get(name);
    if (found.status !== 'found') throw new Error('no block');
    const bytes = new Uint8Array(found.bytes);
    bytes[40] = (bytes[40] as number) ^ 1;
    await driver.put(name, bytes, { if: 'any' });
    const bad = await run(['verify', url]);
    expect(bad.status).toBe(1);
    expect(bad.output).toContain('indexes/cities/country/');
    expect(jsonLines((await run(['verify', url, '--json'])).output)[0]).toMatchObject({ ok: false });
    expect((await run(['cat', url, name])).status).toBe(3);
    const dry = await run(['repair', url, '--dry-run']);
    expect(dry.output).toContain('Index country of cities would be rebuilt: 600 entries.');
    expect((await run(['verify', url])).status).toBe(1);
    // Nobody is there to say yes.
    expect(await run(['repair', url])).toMatchObject({
      status: 2,
      messages: expect.stringContaining('--yes') as unknown,
    });
    expect((await run(['repair', url, '--yes'])).status).toBe(0);
    expect((await run(['verify', url])).status).toBe(0);
  });

  it('repair reports the losses of a hole in the log, and goes on as asked', async () => {
    const db = await open('holed');
    for (let id = 0; id < 4; id++) {
      const batch = db.batch();
      void batch.insert('cities', row(id));
      await batch.flush();
    }
    await db.stop();
    const url = folder.url('holed');
    const driver = new FileDriver(folder.file('db'));
    const { entries } = await driver.list('holed/committed/');
    await driver.delete([entries[1]?.key as string]);
    const wrong = await run(['verify', url]);
    expect(wrong).toMatchObject({ status: 1, output: expect.stringContaining('The commit is missing') as unknown });
    const told = await run(['repair', url, '--yes']);
    expect(told.status).toBe(1);
    expect(told.output).toMatch(
      /Lost: 1 acknowledged commit, in slot 2\.[^]*cities 1[^]*--log stop gives them up, --log skip/,
    );
    expect((await run(['repair', url, '--log', 'drop', '--yes'])).status).toBe(2);
    const mended = await run(['repair', url, '--log', 'skip', '--yes']);
    expect(mended).toMatchObject({
      status: 0,
      output: expect.stringContaining('2 commits after the hole were kept.') as unknown,
    });
    expect((await run(['verify', url])).status).toBe(0);
    expect((await run(['query', url, 'cities', '--count'])).output.trim()).toBe('3');
  });

  it('gc reports first, asks, and deletes', async () => {
    const url = folder.url('damaged');
    expect(await run(['gc', url])).toMatchObject({ status: 2 });
    const dry = await run(['gc', url, '--dry-run', '--log-hours', '0']);
    expect(dry).toMatchObject({ status: 0, output: expect.stringMatching(/object(s)? would be deleted/) as unknown });
    const done = await run(['gc', url, '--yes', '--log-hours', '0', '--json']);
    expect(jsonLines(done.output)[0]).toMatchObject({ failed: [] });
    expect((await run(['gc', url, '--dry-run', '--log-hours', '0'])).output).toBe('Nothing to delete.\n');
    expect((await run(['gc', url, '--yes', '--log-hours', '-1'])).status).toBe(2);
  });

  it('doctor tries the store out', async () => {
    const { output, status } = await run(['doctor', folder.url('nothing-yet'), '--json']);
    expect(status).toBe(0);
    expect(jsonLines(output)[0]).toMatchObject({ safe: true, database: { status: 'none' } });
    const { entries } = await new FileDriver(folder.file('db')).list('nothing-yet/');
    expect(entries).toEqual([]);
  });
});

describe('migrate', () => {
  it('brings a table to a version that a file describes, and waits for it', async () => {
    const db = await open('migrated');
    const batch = db.batch();
    for (let id = 0; id < 50; id++) void batch.insert('cities', row(id));
    await batch.flush();
    await db.checkpoint();
    await db.stop();
    const url = folder.url('migrated');
    const schema = folder.file('cities-v2.json');
    const fields = { id: 'uint32', name: 'varchar', country: 'varchar', people: 'int64', mayor: 'varchar' };
    await writeFile(
      schema,
      JSON.stringify({ name: 'cities', version: 2, fields, primaryKey: 'id', indexes: ['name'] }),
    );
    const asked = await run(['migrate', url, 'cities', '--to', schema]);
    expect(asked).toMatchObject({ status: 2 });
    expect(asked.messages).toContain('Field mayor (varchar) is new: it is null in every existing row.');
    const dropping = folder.file('cities-v2-dropping.json');
    await writeFile(
      dropping,
      JSON.stringify({ name: 'cities', version: 2, fields: { id: 'uint32', town: 'varchar' }, primaryKey: 'id' }),
    );
    const refused = await run(['migrate', url, 'cities', '--to', dropping]);
    expect(refused.status).toBe(2);
    for (const field of ['name', 'country', 'people']) expect(refused.messages).toContain(`Field ${field} (`);
    expect(refused.messages).toContain('Bring cities to version 2 as shown above, without a migrate function?');
    const { output, status, messages } = await run(['migrate', url, 'cities', '--to', schema, '--yes', '--json']);
    expect(status).toBe(0);
    expect(messages).toMatch(/^store-db: .* without a migrate function\. Field founded \(timestamp\) is dropped.*\n$/);
    expect(jsonLines(output)[0]).toMatchObject({ state: expect.stringMatching(/^(switched|none)$/) as unknown });
    const found = await run(['query', url, 'cities', '--where', "name = 'City 7'", '--json']);
    expect(jsonLines(found.output)).toEqual([{ id: 7, name: 'City 7', country: 'FR', people: 7000, mayor: null }]);
    // It can be written to as well, whether or not the old version has gone by now.
    const more = await run(['import', url, 'cities'], { input: '{"id":1000,"name":"New","mayor":"Ada"}\n' });
    expect(more).toMatchObject({ status: 0, output: '1 row imported into cities.\n' });
    const all = await run(['query', url, 'cities', '--where', 'id >= 49', '--fields', 'id,mayor', '--json']);
    expect(jsonLines(all.output)).toEqual([
      { id: 49, mayor: null },
      { id: 1000, mayor: 'Ada' },
    ]);
    expect((await run(['verify', url])).status).toBe(0);
    // The old version stays until somebody asks, and then those who use it are shown first.
    const late = await open('migrated');
    expect(await run(['migrate', url, 'cities', '--finish'])).toMatchObject({ status: 2 });
    const used = await run(['migrate', url, 'cities', '--finish', '--yes']);
    expect(used.status).not.toBe(0);
    expect(used.messages).toMatch(/An instance of node \d+ uses version 1 since/);
    expect((await run(['migrate', url, 'cities', '--json'])).output).toContain('"state":"switched"');
    expect(await run(['migrate', url, 'cities', '--finish', '--cancel'])).toMatchObject({ status: 2 });
    await late.stop();
    const finished = await run(['migrate', url, 'cities', '--finish', '--yes', '--json']);
    expect(finished.messages).toBe('');
    expect(jsonLines(finished.output)[0]).toMatchObject({ state: 'none', from: 2 });
  });
});

describe('migrate with names that fields had', () => {
  it('keeps their values, and says so; refuses keys that do not fit the stored objects before it asks', async () => {
    const db = await open('renamed');
    const batch = db.batch();
    for (let id = 0; id < 50; id++) void batch.insert('cities', row(id));
    await batch.flush();
    await db.stop();
    const url = folder.url('renamed');
    const write = async (renames: object): Promise<string> => {
      const file = folder.file('cities-renamed.json');
      const fields = { id: 'uint32', title: 'varchar', country: 'varchar', people: 'uint32', founded: 'timestamp' };
      await writeFile(file, JSON.stringify({ name: 'cities', version: 2, fields, primaryKey: 'id', renames }));
      return file;
    };
    const wrong = await run(['migrate', url, 'cities', '--to', await write({ title: 'nmae' })]);
    expect(wrong.status).not.toBe(0);
    expect(wrong.messages).toMatch(
      /field 'title' was called 'nmae', and version 1, which is stored, has no such field/,
    );
    expect(wrong.messages).not.toContain('Bring cities');
    const schema = await write({ title: 'name' });
    const asked = await run(['migrate', url, 'cities', '--to', schema]);
    expect(asked.messages).toContain('Field title is field name under another name: its values stay.');
    expect(asked.messages).not.toContain('is dropped');
    const { status } = await run(['migrate', url, 'cities', '--to', schema, '--yes', '--json']);
    expect(status).toBe(0);
    const found = await run(['query', url, 'cities', '--where', "title = 'City 7'", '--fields', 'id,title', '--json']);
    expect(jsonLines(found.output)).toEqual([{ id: 7, title: 'City 7' }]);
    const finished = await run(['migrate', url, 'cities', '--finish', '--yes', '--json']);
    expect(jsonLines(finished.output)[0]).toMatchObject({ state: 'none', from: 2 });
    const { output } = await run(['query', url, 'cities', '--fields', 'title', '--json']);
    expect(jsonLines(output)).toHaveLength(50);
    expect(output).not.toContain('null');
  });
});

describe('a table that an application brings up with a migrate function', () => {
  it('is read in its old version, refused without the function, and finished', async () => {
    const first = await open('coded');
    const batch = first.batch();
    for (let id = 0; id < 50; id++) void batch.insert('cities', row(id));
    await batch.flush();
    await first.stop();
    const url = folder.url('coded');
    const driver = new FileDriver(folder.file('db'));
    const options = { dbPrefix: 'coded', nodeId: 1, driver, logLevel: 'silent', writeForwardInterval: 200 } as const;
    const fields = { id: { typeId: Types.uint32 }, title: { typeId: Types.varchar } };
    const cities2 = { name: 'cities', version: 2, fields, primaryKey: 'id' } as const;
    const db = StoreDb(options);
    db.registerSchema({ ...cities2, migrate: ({ id, name }) => ({ id, title: name }), migrateVersion: 'a' });
    await db.start();
    await db.setTargetSchemaVersion('cities', 2);
    while ((await db.migrationStatus('cities')).state !== 'switched') await sleep(20);
    await db.stop();
    const found = await run(['query', url, 'cities', '--where', 'id = 7', '--fields', 'id,name', '--json']);
    expect(jsonLines(found.output)).toEqual([{ id: 7, name: 'City 7' }]);
    const schema = folder.file('cities-coded.json');
    await writeFile(schema, JSON.stringify({ ...cities2, fields: { id: 'uint32', title: 'varchar' } }));
    const refused = await run(['migrate', url, 'cities', '--to', schema, '--yes']);
    expect(refused.status).not.toBe(0);
    expect(refused.messages).toMatch(
      /from version 1 to version 2 with a `migrate` function of version 'a'.*field 'title'/,
    );
    const finished = await run(['migrate', url, 'cities', '--finish', '--yes', '--json']);
    expect(finished).toMatchObject({ status: 0, messages: '' });
    expect(jsonLines(finished.output)[0]).toMatchObject({ state: 'none', from: 2 });
    const { output } = await run(['query', url, 'cities', '--json']);
    expect(jsonLines(output)).toHaveLength(50);
    expect(output).not.toContain('null');
  });
});

describe('migrate --finish', () => {
  const second = { name: 'cities', version: 2, primaryKey: 'id' } as const;
  const fields = { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar }, mayor: { typeId: Types.varchar } };

  /** A table whose migration an instance has begun, and not ended: it stops as soon as the new version stands beside the old one. */
  async function begin(
    dbPrefix: string,
    asks: boolean,
    migrate?: (row: Record<string, unknown>) => object,
  ): Promise<void> {
    const first = await open(dbPrefix);
    const batch = first.batch();
    for (let id = 0; id < 3000; id++) void batch.insert('cities', row(id));
    await batch.flush();
    await first.checkpoint();
    await first.stop();
    const driver = new FileDriver(folder.file('db'));
    const db = StoreDb({ dbPrefix, nodeId: 1, driver, logLevel: 'silent', polling: 'onDemand' });
    const code = migrate && {
      migrate: migrate as (row: Record<string, unknown>) => Record<string, unknown>,
      migrateVersion: 'a',
    };
    db.registerSchema({ ...second, fields, ...code });
    await db.start();
    const written = db.batch();
    void written.upsert('cities', { id: 5000, name: 'New', mayor: 'Ada' });
    await written.flush();
    await db.checkpoint();
    if (asks) await db.setTargetSchemaVersion('cities', 2);
    await db.stop();
  }

  it.each([
    ['somebody has asked for', true],
    ['nobody has asked for', false],
  ])('makes the rest of a version that %s, and retires the old one', async (_, asks) => {
    const prefix = asks ? 'half-made' : 'unasked';
    await begin(prefix, asks);
    const url = folder.url(prefix);
    const before = jsonLines((await run(['migrate', url, 'cities', '--json'])).output)[0];
    expect(before).toMatchObject({ state: asks ? 'building' : 'dual-write', from: 1, to: 2 });
    const asked = await run(['migrate', url, 'cities', '--finish']);
    expect(asked).toMatchObject({ status: 2, output: '' });
    expect(asked.messages).toMatch(/Migrate the rest of cities to version 2, which has [\d,]+ of 3,\d+ rows\?/);
    const finished = await run(['migrate', url, 'cities', '--finish', '--yes', '--json']);
    expect(finished).toMatchObject({ status: 0 });
    expect(jsonLines(finished.output)[0]).toMatchObject({ state: 'none', from: 2 });
    expect((await run(['query', url, 'cities', '--count'])).output).toBe('3001\n');
    const kept = await run(['query', url, 'cities', '--where', 'id in (7, 5000)', '--json']);
    expect(jsonLines(kept.output)).toEqual([
      { id: 7, name: 'City 7', mayor: null },
      { id: 5000, name: 'New', mayor: 'Ada' },
    ]);
    expect((await run(['verify', url])).status).toBe(0);
  });

  it('asks for the application where its function makes the rows', async () => {
    await begin('coded-half', false, ({ id, name }) => ({ id, name }));
    const refused = await run(['migrate', folder.url('coded-half'), 'cities', '--finish', '--yes']);
    expect(refused).toMatchObject({ status: 2, output: '' });
    expect(refused.messages).toContain(
      'needs the migrate function of the application, which has not started the migration',
    );
  });
});

describe('backups and keys', () => {
  it('name the keys that they need, and are rewritten, step by step as documented', async () => {
    const db = await open('turned');
    const batch = db.batch();
    for (let id = 0; id < 3000; id++) void batch.insert('cities', row(id));
    await batch.flush();
    await db.stop();
    const [url, to] = [folder.url('turned'), `file:${folder.file('safe')}#turned`];
    const keysFile = async (name: string, value: object): Promise<string> => {
      const file = folder.file(name);
      await writeFile(file, JSON.stringify(value));
      return file;
    };
    const key = (byte: number): string =>
      Buffer.from(Array.from({ length: 32 }, (_, i) => byte + i)).toString('base64');
    const moving = await keysFile('moving', { keys: { a: key(1) }, current: 'a', acceptUnencrypted: true });
    const rotating = await keysFile('rotating', { keys: { a: key(1), b: key(2) }, current: 'b' });
    const final = await keysFile('final', { keys: { b: key(2) }, current: 'b' });
    const step = async (words: string[]): Promise<{ output: string; messages: string }> => {
      const done = await run(words);
      expect(done, words.join(' ')).toMatchObject({ status: 0 });
      return done;
    };
    await step(['backup', url, to]);
    expect((await step(['backups', to, '--keys'])).output).toMatch(/none: \d+\.\n$/);
    for (const file of [moving, rotating]) {
      await step(['rewrite', url, '--keys', file, '--compression', 'none']);
      const { messages } = await step(['backup', url, to, '--keys', file]);
      expect(messages).toContain('store-db rewrite-backups');
      const [mixed] = jsonLines((await step(['backups', to, '--keys', file, '--json'])).output) as [
        { keys: object; unencrypted: number },
      ];
      expect(Object.keys(mixed.keys).length + mixed.unencrypted).toBeGreaterThan(1);
      expect(await run(['rewrite-backups', to, '--keys', file])).toMatchObject({ status: 2 });
      await step(['rewrite-backups', to, '--keys', file, '--compression', 'none', '--dry-run']);
      await step(['rewrite-backups', to, '--keys', file, '--compression', 'none']);
      expect((await step(['backup', url, to, '--keys', file])).messages).not.toContain('rewrite-backups');
    }
    const { output } = await step(['backups', to, '--keys', final]);
    expect(output).not.toMatch(/none: |a: /);
    for (const { id } of jsonLines((await run(['backups', to, '--json'])).output) as { id: string }[]) {
      await step(['restore', to, folder.url(`again-${id}`), '--backup', id, '--keys', final]);
      await step(['verify', folder.url(`again-${id}`), '--deep', '--keys', final]);
    }
    const blind = await run(['backups', to, '--keys', moving]);
    expect(blind).toMatchObject({ status: 1, messages: expect.stringContaining("key 'b'") as unknown });
  });
});

describe('backups', () => {
  it('are taken, listed, restored and pruned; clones are made', async () => {
    const db = await open('backed');
    const batch = db.batch();
    for (let id = 0; id < 3000; id++) void batch.insert('cities', row(id));
    await batch.flush();
    await db.stop();
    const [url, to] = [folder.url('backed'), `file:${folder.file('safe')}#backed`];
    const first = jsonLines((await run(['backup', url, to, '--json'])).output)[0] as {
      id: string;
      copiedObjects: number;
    };
    expect(first.copiedObjects).toBeGreaterThan(0);
    await run(['import', url, 'cities'], { input: '{"id":9000,"name":"Later"}\n' });
    const second = await run(['backup', url, to]);
    expect(second).toMatchObject({ status: 0, output: expect.stringMatching(/of \d+ copied, \d/) as unknown });
    const listed = jsonLines((await run(['backups', to, '--json'])).output) as { id: string }[];
    expect(listed).toHaveLength(2);
    expect(listed[0]).toMatchObject({ id: first.id });

    const restored = folder.url('restored');
    expect((await run(['restore', to, restored, '--backup', first.id])).status).toBe(0);
    expect(await run(['restore', to, restored])).toMatchObject({ status: 2 });
    const later = ['--where', 'id = 9000', '--count'];
    expect((await run(['query', restored, 'cities', ...later])).output).toBe('0\n');
    expect((await run(['query', url, 'cities', ...later])).output).toBe('1\n');

    expect(await run(['prune', to, '--yes'])).toMatchObject({ status: 2 });
    expect(await run(['prune', to, '--keep-within', '3 days', '--yes'])).toMatchObject({ status: 2 });
    expect(await run(['prune', to, '--keep-last', '1'])).toMatchObject({ status: 2 });
    const dry = await run(['prune', to, '--keep-last', '1', '--dry-run']);
    expect(dry).toMatchObject({ status: 0, output: expect.stringContaining('1 backup would be removed') as unknown });
    const done = await run(['prune', to, '--keep-within', '0h', '--yes', '--json']);
    expect(jsonLines(done.output)[0]).toMatchObject({ removed: [{ id: first.id }], isPostponed: false });
    expect(jsonLines((await run(['backups', to, '--json'])).output)).toHaveLength(1);

    // In the same folder the store copies by itself.
    expect(await run(['backup', url, folder.url('beside')])).toMatchObject({
      output: expect.stringContaining('copied, by the store itself') as unknown,
    });
    expect((await run(['clone', url, folder.url('copy')])).status).toBe(0);
    expect((await run(['verify', folder.url('copy'), '--deep'])).status).toBe(0);
  });
});
