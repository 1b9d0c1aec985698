/** `store-db query --search`: ranked rows, their words in colour in a terminal, and what to do without an index. */
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const articles = {
  name: 'articles',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, title: { typeId: Types.varchar }, body: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [
    { fields: ['title', 'body'], text: { language: 'en', weights: { title: 3 } } },
    { fields: ['body'], text: {}, name: 'as written' },
  ],
} as const;
const plain = {
  name: 'plain',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, meta: { typeId: Types.json } },
  primaryKey: 'id',
  indexes: [{ function: 'words', typeId: Types.json, each: true }],
} as const;
let folder: TestFolder;

beforeAll(async () => {
  folder = await TestFolder.make();
  const driver = new FileDriver({ path: folder.file('db'), durability: 'none' });
  const db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver, logLevel: 'silent', polling: 'onDemand' });
  db.registerSchema(articles);
  db.registerSchema(plain);
  await db.start();
  const long = 'Long before that there were only casks. '.repeat(10);
  const batch = db.batch();
  await batch.insert(articles, { id: 1, title: 'Cellars', body: `${long}A cellar keeps\tred wine cool. ${long}` });
  await batch.insert(articles, { id: 2, title: 'Red wines', body: 'Grapes\nand casks' });
  await batch.insert(articles, { id: 3, title: 'Tea', body: 'Leaves, and no \u001b[31m wine' });
  for (const [id, n] of ['b', 7, null, 'a', [1], 10, false, 7].entries())
    await batch.insert(plain, { id, meta: { n } });
  await batch.flush();
  await db.stop();
});
afterAll(() => folder[Symbol.asyncDispose]());

const query = (...words: string[]) => run(['query', folder.url(), ...words]);
const ids = async (...words: string[]): Promise<unknown[]> => {
  const { output } = await query('articles', '--fields', 'id', '--json', ...words);
  return (jsonLines(output) as { id: number }[]).map(({ id }) => id);
};

describe('query --search', () => {
  it('prints the best rows first, with conditions, orders, limits, counts and groups', async () => {
    expect(await ids('--search', 'red wine')).toEqual([2, 1]);
    expect(await ids('--search', '"red wine" -grapes')).toEqual([1]);
    expect(await ids('--search', 'tea cellars', '--any')).toEqual([3, 1]);
    expect(await ids('--search', 'red cas', '--prefix')).toEqual([2, 1]);
    expect(await ids('--search', 'wime', '--fuzzy', '--where', 'id > 1', '--order', 'id desc')).toEqual([3, 2]);
    expect(await ids('--search', 'wine', '--limit', '1')).toEqual([2]);
    expect((await query('articles', '--search', 'wine', '--count')).output).toBe('3\n');
    const grouped = await query('select count() as all from articles', '--search', 'red wine', '--json');
    expect(jsonLines(grouped.output)).toEqual([{ all: 2 }]);
    expect(await ids('--search', 'cellars')).toEqual([1]);
    expect(await ids('--search', 'cellars', '--index', 'as written')).toEqual([]);
    expect(await ids('--search', 'cellar', '--index', 'as written')).toEqual([1]);
    const other = await query('articles', '--search', 'cellar', '--index', 'title');
    expect(other.messages).toContain("no index on texts of the name 'title', but 'title,body', 'as written'");
    const explained = ['explain', folder.url(), 'articles', '--search'];
    const plan = await run([...explained, 'wine']);
    expect(plan.output).toContain('Finds 3 rows by the words in index');
    const inTitles = await run([...explained, 'wine', '--in', 'title', '--weights', 'title = 2']);
    expect(inTitles.output).toContain('Finds 1 row by the words in index');
  });

  it('searches the fields that --in names, and weighs them by --weights', async () => {
    expect(await ids('--search', 'wine casks', '--any')).toEqual([2, 1, 3]);
    expect(await ids('--search', 'wine', '--in', 'title')).toEqual([2]);
    expect(await ids('--search', 'wine', '--in', '"body"')).toEqual([3, 1]);
    expect(await ids('--search', 'wine', '--in', 'title, body')).toEqual([2, 3, 1]);
    // The index that has only the bodies.
    expect(await ids('--search', 'cellars', '--in', 'body')).toEqual([1]);
    expect(await ids('--search', 'cellars', '--in', 'body', '--index', 'as written')).toEqual([]);
    expect(await ids('--search', 'wine', '--weights', 'title=0.01, body = 5')).toEqual([3, 1, 2]);
    const marked = await run(['query', folder.url(), 'articles', '--search', 'wine', '--in', 'title', '--no-pager'], {
      tty: 'output',
    });
    expect(marked.output).toContain('Grapes');
    expect(marked.output).not.toContain('cellar');
  });

  it.each([
    [['--in', 'titel'], 'Table articles has no field titel: did you mean title? It has id, title, body'],
    [['--in', 'id'], "no index on texts of table 'articles' has the fields id. It has 'title,body' (title, body)"],
    [['--in', 'title', '--index', 'as written'], "has the fields title. It has 'as written' (body)"],
    [['--in', ''], 'Expected the name of a field'],
    [['--weights', 'title'], 'Expected = and its weight'],
    [['--weights', 'titel = 3'], 'Table articles has no field titel'],
    [['--weights', 'id = 3'], "`weights` has 'id'"],
    [['--weights', 'title = 3, body = 0'], 'The weight of body must be a number above 0, and is 0 (at character 19)'],
    [['--weights', 'title = heavy'], 'The weight of title must be a number above 0, and is heavy'],
    [['--weights', "title = ''"], 'The weight of title must be a number above 0'],
    [['--weights', 'title = 3, title = 4'], 'There are two weights of title (at character 12)'],
  ])('refuses %j, and says why', async (words, message) => {
    const refused = await query('articles', '--search', 'wine', ...words);
    expect(refused.status).not.toBe(0);
    expect(refused.output).toBe('');
    expect(refused.messages).toContain(message);
  });

  it('shows the part of a long text with the words, within the width of a terminal and in colour', async () => {
    const asked = ['query', folder.url(), 'articles', '--search', 'wine', '--no-pager'];
    process.env['FORCE_COLOR'] = '1';
    const { output } = await run(asked, { tty: 'output' });
    delete process.env['FORCE_COLOR'];
    const yellow = output
      .split('\u001b[33m')
      .slice(1)
      .map((text) => text.slice(0, text.indexOf('\u001b')));
    expect(yellow).toEqual(['wines', 'wine', 'wine']);
    for (const line of output.split('\n')) {
      expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(90);
    }
    expect(output).toContain('keeps red');
    expect(output).not.toContain('\u001b[31m');
    const whole = await run(asked);
    expect(whole.output).not.toContain('\u001b');
    expect(whole.output).toContain('A cellar keeps red wine cool. Long before');
  });

  it('says what is missing', async () => {
    const without = await query('plain', '--search', 'wine');
    expect(without.status).toBe(2);
    expect(without.messages).toContain(
      'Table plain has no index on texts, which --search needs. Add one to its schema',
    );
    for (const words of [['--prefix'], ['--index', 'as written'], ['--in', 'title'], ['--weights', 'title=1']]) {
      const alone = await query('articles', ...words);
      expect(alone).toMatchObject({ status: 2, messages: expect.stringContaining('add --search') as unknown });
    }
  });
});

it('orders groups by values inside of JSON, as queries do', async () => {
  const grouped = async (order: string): Promise<unknown[]> => {
    const { output } = await query(
      `select meta.n, count() as all from plain group by meta.n order by ${order}`,
      '--json',
    );
    return (jsonLines(output) as { 'meta.n': unknown }[]).map((row) => row['meta.n']);
  };
  expect(await grouped('meta.n')).toEqual([null, false, 7, 10, 'a', 'b', [1]]);
  expect(await grouped('meta.n desc')).toEqual([[1], 'b', 'a', 10, 7, false, null]);
  expect(await grouped('all desc, max(meta.n)')).toEqual([7, null, false, 10, 'a', 'b', [1]]);
});

it('tells which indexes are on words and elements', async () => {
  const told = async (table: string): Promise<string> => (await run(['indexes', folder.url(), table])).output;
  expect(await told('articles')).toContain('words of title, body (en)');
  expect(await told('articles')).toContain('words of body');
  expect(await told('plain')).toContain('each of function words');
});
