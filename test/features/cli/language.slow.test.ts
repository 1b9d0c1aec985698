/** The language of conditions and queries: its results, and its messages for mistakes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { SchemaDefinition } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const big = 9_007_199_254_740_993n;
const cities: SchemaDefinition = {
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    country: { typeId: Types.varchar },
    people: { typeId: Types.int64 },
    founded: { typeId: Types.timestamp },
    capital: { typeId: Types.boolean },
    flag: { typeId: Types.bytes },
    more: { typeId: Types.json },
    order: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: ['country'],
};
let folder: TestFolder;

beforeAll(async () => {
  folder = await TestFolder.make();
  const driver = new FileDriver(folder.file('db'));
  const db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver, logLevel: 'silent' });
  db.registerSchema(cities);
  db.registerSchema({ name: 'two words', version: 1, fields: { id: { typeId: Types.uuid } }, primaryKey: 'id' });
  await db.start();
  const batch = db.batch();
  const city = (id: number, name: string, country: string | null, people: bigint | null, more = {}): void => {
    void batch.insert('cities', { id, name, country, people, ...more });
  };
  city(1, 'Paris', 'FR', 2_100_000n, { capital: true, founded: new Date('2024-02-01') });
  city(2, 'Paris-Plage', 'FR', 4000n, { flag: Buffer.from([0, 255]), founded: new Date('2024-01-01') });
  city(3, "L'Isle", 'FR', 3000n, { order: 1.5, more: ['isle', 3, true, '3 rivers'] });
  city(4, 'Oulu', 'FI', big, { capital: false, flag: Buffer.from([0, 1]) });
  city(5, 'New York', null, null, { order: -2 });
  city(6, '東京', 'JP', big - 1n, { more: { a: 1 } });
  void batch.insert('two words', { id: '0198c2a4-0000-7000-8000-000000000000' });
  await batch.flush();
  await db.stop();
});

afterAll(async () => {
  await folder[Symbol.asyncDispose]();
});

const asked = (...words: string[]) => run(['query', folder.url(), ...words]);

describe('a condition', () => {
  it.each<[string, number[]]>([
    ["country = 'FR' and (people > 1000000 or name like 'Paris%')", [1, 2]],
    ['country = FR AND name = Paris', [1]],
    ["country='FR'and name='Paris'", [1]],
    ["country = 'FR' and people < 4000 or country = JP", [3, 6]],
    ["country = 'FR' and (people < 4000 or country = JP)", [3]],
    ['not country = FR', [4, 5, 6]],
    ["not (country = 'FR' or country = 'FI')", [5, 6]],
    ['not not id = 1', [1]],
    ["country in ('FI', JP)", [4, 6]],
    ['country in (FI, null)', [4, 5]],
    ['country not in (FR)', [4, 5, 6]],
    ['country is null', [5]],
    ['country is not null and id > 3', [4, 6]],
    ['country = null', [5]],
    ['country <> null and id>=4', [4, 6]],
    ['id between 2 and 3 and country = FR', [2, 3]],
    ['id not between 2 and 6', [1]],
    ["name = 'L''Isle'", [3]],
    ['name = "L\'Isle"', [3]],
    ["name like 'Oulu'", [4]],
    ["name not like 'Paris%' and id < 5", [3, 4]],
    ["name prefix 'New '", [5]],
    ["name like '%'", [1, 2, 3, 4, 5, 6]],
    ['people = 9007199254740993', [4]],
    ['people = 9007199254740992', [6]],
    ['people > 2.1e6 and people < 1e7', []],
    ['people >= 3000.5 and people <= 2.1e6', [1, 2]],
    ['founded >= 2024-01-15', [1]],
    ["founded = '2024-01-01 00:00'", [2]],
    ['founded = 1704067200000', [2]],
    ['capital = true', [1]],
    ['capital = false or capital = true', [1, 4]],
    ['country = IS or country = JP', [6]],
    ["flag = x'00ff'", [2]],
    ['flag = 0x00FF', [2]],
    ["flag = 'AP8='", [2]],
    ["flag prefix x'00'", [2, 4]],
    ['"order" = 1.5', [3]],
    ['order < -1', [5]],
    ["name = '東京'", [6]],
    ['more is not null', [3, 6]],
    ['more has isle', [3]],
    ["more has '3 rivers' and more has true", [3]],
    ['more has 3', [3]],
    ["more has '3'", []],
    ['more has any (town, isle)', [3]],
    ['more HAS ALL (isle, 3)', [3]],
    ['not more has all (isle, 4)', [1, 2, 3, 4, 5, 6]],
    ['more not has isle', [1, 2, 4, 5, 6]],
    ['more.a = 1', [6]],
    ["more.a = '1'", []],
    ['more.0 = isle', [3]],
    ['more.0 like is%', [3]],
    ['more.3 >= 3 and more.2 = true', []],
    ['"more.3" prefix \'3 \' and more.2 = true', [3]],
    ['more.a is null', [1, 2, 3, 4, 5]],
    ['more.a in (1, null) and not (more.0 = isle)', [1, 2, 4, 5, 6]],
    ['more.1 between 2 and 3', [3]],
    ["(country, id) = ('FR', 2)", [2]],
    ["(country, id) != ('FR', 2)", [1, 3, 4, 5, 6]],
    ["(country, id) in (('FR', 1), (JP, 6), (FI, 1))", [1, 6]],
    ["(country, id) not in (('FR', 1), (JP, 6))", [2, 3, 4, 5]],
    ['(country, id) > (FR, 1)', [2, 3, 6]],
    ['(country, id) <= (FR, 2)', [1, 2, 4]],
    ['(country, id) between (FI, 4) and (FR, 2)', [1, 2, 4]],
    ['(country, id) not between (FI, 4) and (FR, 2)', [3, 5, 6]],
    ['((country, id) > (FR, 1) and people < 5000)', [2, 3]],
    ['not (id, country) = (1, FR) and ("order", id) = (1.5, 3)', [3]],
  ])('finds rows: %s', async (where, ids) => {
    const said = await asked('cities', '--where', where, '--json', '--fields', 'id');
    expect(said).toMatchObject({ status: 0, messages: '' });
    expect(jsonLines(said.output)).toEqual(ids.map((id) => ({ id })));
  });

  it.each<[string, string, number]>([
    ['country = FR x', 'Expected and, or or the end; a text of several words needs quotes, but found x', 14],
    ['name = New York', 'but found York', 12],
    ['contry = FR', 'Table cities has no field contry: did you mean country?', 1],
    ['id = 1 and zzz = 2', 'has no field zzz.', 12],
    ['people = many', 'Field people: "many" is no int64', 10],
    ['founded > 2024', 'Field founded: "2024" is no timestamp', 11],
    ['founded > 20240131', 'a day is written 2024-01-31', 11],
    ['founded > 2024-02-31', 'Field founded: "2024-02-31" is no timestamp', 11],
    ['capital = 2', 'Field capital: "2" is no boolean', 11],
    ["flag = x'0'", 'Field flag: "0" is not bytes', 8],
    ["name = x'00'", "Field name: x'00' is bytes, not varchar", 8],
    ['name = country', "country is a field, and fields are compared with values: write 'country' for a text", 8],
    ["name = 'Paris", "The quote ' is opened here and not closed", 8],
    ['name = and', "and is a keyword: write 'and' for a text", 8],
    ['name =', 'Expected a value, but the text ends', 7],
    ['name', 'how the field is compared', 5],
    ['', 'Expected a field, not or (, but the text ends', 1],
    ['id in 1, 2', '( with the values: in (1, 2), but found 1', 7],
    ['id in (1, 2', ') or a comma, but the text ends', 12],
    ['id between 1, 2', 'and: between 1 and 5, but found ,', 13],
    ['(id = 1', 'and, or or )', 8],
    ['id = 1)', 'but found )', 7],
    ['(country, id) = (FR)', 'Expected 2 values, one for each of country, id, but there is 1', 17],
    ['(country, id) in ((FR, 1), (FR, 1, 2))', 'Expected 2 values, one for each of country, id, but there are 3', 28],
    ['(country, id) = FR', '( with a value for each of country, id, but found FR', 17],
    ['(country, id) in (FR, 1)', '( with a value for each of country, id, but found FR', 19],
    ['(country, id) in FR', '( with the values: in ((1, 2), (3, 4)), but found FR', 18],
    ['(country, id) between (FR, 1), (FR, 2)', 'and: between (1, 2) and (3, 4), but found ,', 30],
    ["(country, id) like ('F%', 1)", 'like is not possible here: compare several fields together by =', 15],
    ['(country, id) is null', 'is is not possible here: compare several fields together by =', 15],
    ['(country, id) not = (FR, 1)', 'in or between, but found =', 19],
    ['(country, id', ') or a comma, but the text ends', 13],
    ['(country, 5) = (FR, 1)', 'Table cities has no field 5', 11],
    ['(country, country) = (FR, FR)', "names 'country' twice", 2],
    ['(country, id) = (FR, many)', 'Field id: "many" is no uint32', 22],
    ['(country, more) > (FR, 5)', 'is JSON: it takes only = null', 2],
    ['id == 1', 'There is no operator ==: write =', 4],
    ['id = 1 && id = 2', 'There is no operator &&: write and', 8],
    ['id is 5', 'null or not null', 7],
    ["name like '%is'", 'like matches the beginning of a text', 11],
    ["id like '1%'", 'Field id is uint32, and like is for varchar', 9],
    ['more = 5', 'is JSON: it takes only = null, != null, and HAS for lists', 8],
    ['more = isle', 'it takes JSON. To find an element of a list, write more has isle', 8],
    ['people prefix 5', 'PREFIX is for varchar and bytes', 15],
    ['people has 5', 'HAS is for lists in json fields', 12],
    ['more has any isle', '( with the values: has any (1, 2)', 14],
    ['(country, id) has (FR, 1)', 'has is not possible here: compare several fields together by =', 15],
    [`${'('.repeat(200)}id = 1${')'.repeat(200)}`, 'up to 40 levels deep', 41],
    [`${'not '.repeat(100_000)}id = 1`, 'up to 40 levels deep', 161],
  ])('is refused with the place: %s', async (where, message, position) => {
    const { status, output, messages } = await asked('cities', '--where', where);
    expect({ status, output, messages }).toEqual({
      status: 2,
      output: '',
      messages: expect.stringContaining(message) as unknown,
    });
    expect(messages).toContain(`(at character ${position})`);
    const [line = '', caret = ''] = messages.trimEnd().split('\n').slice(-2);
    // Of a long text there is a part.
    const before = where.slice(0, position - 1);
    expect(caret).toBe(`  ${' '.repeat(before.length > 50 ? 51 : before.length)}^`);
    expect(line.replaceAll('…', '').trim()).toBe(
      where.slice(Math.max(0, before.length - 50), before.length + 25).trim(),
    );
    const json = JSON.parse((await asked('cities', '--where', where, '--json')).messages) as object;
    expect(json).toMatchObject({ error: { code: 'USAGE', position } });
  });

  it('on several fields together finds the same rows as the library', async () => {
    const driver = new FileDriver(folder.file('db'));
    await using db = StoreDb({ dbPrefix: 'main', nodeId: 2, role: 'replica', driver, logLevel: 'silent' });
    db.registerSchema(cities);
    await db.start();
    const written = (tuple: readonly unknown[]): string => `(${tuple.map((value) => String(value)).join(', ')})`;
    for (const low of [
      ['FI', 4],
      ['FR', 2],
      ['FR', null],
      [null, 5],
      ['ZZ', 1],
    ]) {
      const high = ['FR', 3];
      const cases: readonly [string, unknown, string][] = [
        ...['=', '<', '<=', '>', '>='].map((operator) => [operator, low, written(low)] as [string, unknown, string]),
        ['IN', [low, high], `(${written(low)}, ${written(high)})`],
        ['BETWEEN', [low, high], `${written(low)} and ${written(high)}`],
      ];
      for (const [operator, value, text] of cases) {
        const condition = `(country, id) ${operator.toLowerCase()} ${text}`;
        const loose = db.query('cities').where(['country', 'id'] as never, operator as '=', value as never);
        const expected = (await loose.execute()).map(({ id }) => ({ id }));
        const { output } = await asked('cities', '--where', condition, '--json', '--fields', 'id');
        expect({ condition, found: jsonLines(output) }).toEqual({ condition, found: expected });
      }
    }
  });

  it('shows the place below wide characters, and control characters as they may be shown', async () => {
    const { messages } = await asked('cities', '--where', "name = '東京' 'x\u001b[31m'");
    expect(messages.split('\n').slice(-3, -1)).toEqual(["  name = '東京' 'x\\x1b[31m'", `${' '.repeat(16)}^`]);
  });
});

describe('a query', () => {
  it.each<[string, string[], unknown[]]>([
    ["cities where country = 'FR' order by people limit 1", ['--fields', 'id'], [{ id: 3 }]],
    ['select id from cities order by people desc, id limit 2 offset 1', [], [{ id: 6 }, { id: 1 }]],
    ['SELECT id AS n, "order" FROM cities WHERE id = 3', [], [{ n: 3, order: 1.5 }]],
    ['select id as n from cities order by n desc limit 1', [], [{ n: 6 }]],
    ['select * from "two words"', [], [{ id: '0198c2a4-0000-7000-8000-000000000000' }]],
    ['two words', ['--where', 'id = 0198c2a4-0000-7000-8000-000000000001'], []],
    [
      'cities group by country',
      [],
      [
        { country: null, count: 1 },
        { country: 'FI', count: 1 },
        { country: 'FR', count: 3 },
        { country: 'JP', count: 1 },
      ],
    ],
    [
      'cities where id > 1 group by country order by count() desc, country limit 2 offset 1',
      [],
      [
        { country: null, count: 1 },
        { country: 'FI', count: 1 },
      ],
    ],
    [
      'select country, count(people), sum(people) as all, min(name), max(id), avg("order") from cities where id < 6 group by country order by all desc limit 2',
      [],
      [
        { country: 'FI', 'count(people)': 1, all: String(big), 'min(name)': 'Oulu', 'max(id)': 4, 'avg(order)': null },
        { country: 'FR', 'count(people)': 3, all: 2_107_000, 'min(name)': "L'Isle", 'max(id)': 3, 'avg(order)': 1.5 },
      ],
    ],
    ['select count(*), min(founded) from cities', [], [{ count: 6, 'min(founded)': '2024-01-01T00:00:00.000Z' }]],
    [
      'cities where id > 1',
      ['--where', 'id < 5', '--where', 'id != 3', '--fields', 'id', '--order', 'id desc'],
      [{ id: 4 }, { id: 2 }],
    ],
    ['cities group by country', ['--order', 'count() desc, country', '--limit', '1'], [{ country: 'FR', count: 3 }]],
  ])('gives: %s %j', async (text, words, rows) => {
    const said = await asked(text, '--json', ...words);
    expect(said).toMatchObject({ status: 0, messages: '' });
    expect(jsonLines(said.output)).toEqual(rows);
  });

  it.each<[string, string[], string]>([
    ['citis', [], 'There is no table citis in'],
    ['citis where id = 1', [], ': did you mean cities?'],
    ['cities where', [], 'a field, not or (, but the text ends'],
    ['cities limit ten', [], 'a whole number, but found ten'],
    ['cities limit 1 where id = 1', [], 'Expected offset or the end, but found where'],
    ['cities where id = 1 here', [], 'Expected and, or, group by, order by, limit, offset or the end, but found here'],
    ['cities order by nme', [], 'did you mean name?'],
    ['cities order by more', [], 'Field more is json, which has no order'],
    ['cities order by count()', [], 'Only groups have aggregates'],
    ['cities group by more', [], 'is json'],
    ['select name, count() from cities group by country', [], 'The query is not grouped by name'],
    ['select sum(name) from cities', [], 'sum takes numbers, and name is not a number'],
    ['select median(id) from cities', [], 'There is no aggregate median'],
    ['select id, id from cities', [], 'Two columns have the name id'],
    ['select id cities', [], 'from and a table, or a comma, but found cities'],
    ['cities limit 1', ['--limit', '2'], 'The query contains limit already'],
    ['select id from cities', ['--fields', 'id'], 'The query contains fields already'],
    ['cities', ['--limit', '-1'], '--limit is -1'],
    ['cities', ['--fields', 'id, nme'], 'did you mean name?'],
    ['cities group by country', ['--count'], '--count counts rows'],
  ])('is refused: %s %j', async (text, words, message) => {
    const { status, output, messages } = await asked(text, ...words);
    expect({ status, output, messages }).toEqual({
      status: 2,
      output: '',
      messages: expect.stringContaining(message) as unknown,
    });
  });

  it('reads the system tables of blobs, which no other command takes', async () => {
    await using own = await TestFolder.make();
    const db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver: new FileDriver(own.file('db')), logLevel: 'silent' });
    const fields = { id: { typeId: Types.uint8 }, data: { typeId: Types.blob } };
    db.registerSchema({ name: 'photos', version: 1, fields, primaryKey: 'id' });
    await db.start();
    const batch = db.batch();
    void batch.insert('photos', { id: 1, data: db.Blob('one', { contentType: 'image/png' }) });
    void batch.insert('photos', { id: 2, data: db.Blob('two') });
    await batch.flush();
    await batch.delete('photos', 2);
    await batch.flush();
    await db.stop();
    const text = "select field, sizeBytes, contentType from _blobs where table = 'photos'";
    const said = await run(['query', own.url(), text, '--json']);
    expect(said).toMatchObject({ status: 0, messages: '' });
    expect(jsonLines(said.output)).toEqual([{ field: 'data', sizeBytes: 3, contentType: 'image/png' }]);
    expect(await run(['query', own.url(), '_deleted_blobs', '--count'])).toMatchObject({ status: 0, output: '1\n' });
    const shell = await run(['shell', own.url()], { input: '_blobs group by field\n.schema _blobs\n' });
    expect(shell).toMatchObject({ status: 0, output: expect.stringMatching(/contentType\s+varchar/) as unknown });
    for (const words of [
      ['clear', own.url(), '_blobs', '--yes'],
      ['drop', own.url(), '_blobs', '--yes'],
      ['export', own.url(), '_blobs', own.file('none')],
    ]) {
      const refused = await run(words);
      expect(refused).toMatchObject({ status: 2, output: '' });
      expect(refused.messages).toContain('There is no table _blobs in');
    }
  });

  it('is explained as it is asked', async () => {
    const { status, output } = await run(['explain', folder.url(), 'cities where country = FR group by country']);
    expect(status).toBe(0);
    expect(output).toContain('country');
  });
});
