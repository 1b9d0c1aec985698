/** Names and values never control a terminal, in any output: users of the database choose them freely. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cutToWidth, displayWidth } from '../../../src/cli/terminal/terminal.ts';
import { withoutControls } from '../../../src/base/messages.ts';
import { StoreDb, Types } from '../../../src/index.ts';
import type { SchemaDefinition } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';
import type { Ran, RunOptions } from './shell.ts';

/** Turns the title of a window, colours, deletes, ends lines, turns the direction of text. */
const hostile = '\u001b]0;owned\u0007\u001b[31m\u009b2J\u007f\u2028\u202e\r\nx';
const table = `t${hostile}`;
const field = `f${hostile}`;
const prefix = `app${hostile.replace('\n', '')}`;

const schema: SchemaDefinition = {
  name: table,
  version: 1,
  fields: {
    id: { typeId: Types.varchar },
    [field]: { typeId: Types.varchar },
    j: { typeId: Types.json },
    b: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: [field],
};

let folder: TestFolder;
let url: string;
let blob: string;

beforeAll(async () => {
  folder = await TestFolder.make();
  url = `file:${folder.file('db')}#${encodeURIComponent(prefix)}`;
  const driver = new FileDriver(folder.file('db'));
  const db = StoreDb({ dbPrefix: prefix, nodeId: 1, driver, logLevel: 'silent' });
  db.registerSchema(schema);
  await db.start();
  const batch = db.batch();
  void batch.insert(table, { id: `1${hostile}`, [field]: hostile, j: { [hostile]: hostile }, b: db.Blob(hostile) });
  await batch.flush();
  await db.checkpoint();
  blob = String((await db.query(table).execute())[0]?.['b']);
  await db.snapshot();
  await db.stop();
});
afterAll(() => folder[Symbol.asyncDispose]());

// eslint-disable-next-line no-control-regex
const obeyed = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;
/** What the command itself colours. */
// eslint-disable-next-line no-control-regex
const styles = /\u001b\[(?:1|22|31|32|39)m/g;

const commands: readonly (readonly string[])[] = [
  ['tables'],
  ['stats'],
  ['query', table],
  ['query', table, '--where', `"${field}" = nothing`],
  ['query', `${table}, which is not there`],
  ['query', table, '--fields', hostile],
  ['query', table, '--where', hostile],
  ['explain', table, '--run'],
  ['export', table],
  ['verify', '--deep'],
  ['gc', '--dry-run'],
  ['repair', '--dry-run'],
  ['log'],
  ['snapshots'],
  ['cat'],
  ['cat', 'committed/0000000000000001'],
  ['cat', hostile],
  ['migrate', table],
  ['doctor'],
  ['cost'],
  ['backups'],
  [hostile],
  ['tables', `--${hostile}`],
];

const asked = ([name, ...words]: readonly string[], more: string[], options: RunOptions = {}): Promise<Ran> =>
  run([name as string, url, ...words, ...more], options);

describe('printed text', () => {
  it.each(commands)('as text, in a pipe and in a terminal: %j', async (...words) => {
    for (const options of [{}, { tty: 'output' }] as const) {
      const { output, messages } = await asked(words, [], options);
      const text = output.replaceAll(styles, '');
      expect(obeyed.exec(text), JSON.stringify(text)).toBe(null);
      expect(obeyed.exec(messages), JSON.stringify(messages)).toBe(null);
      // Nor does it begin a line of its own.
      expect(`${text}${messages}`).not.toMatch(/^x/m);
    }
  });

  it.each(commands)('as JSON: %j', async (...words) => {
    const { output, messages } = await asked(words, ['--json']);
    expect(obeyed.exec(output + messages)).toBe(null);
    jsonLines(output);
  });

  it('is exact as JSON', async () => {
    const [row] = jsonLines((await asked(['query', table], ['--json'])).output);
    expect(row).toEqual({ id: `1${hostile}`, [field]: hostile, j: { [hostile]: hostile }, b: blob });
  });

  it('is refused where a terminal would get the bytes of a blob, and goes elsewhere as it is', async () => {
    const stored = (await readdir(folder.file('db'), { recursive: true })).find((name) =>
      name.includes(blob.slice(-12)),
    );
    expect(stored).toBeDefined();
    const refused = await asked(['cat', `blobs/${blob}`], [], { tty: 'output' });
    const piped = await asked(['cat', `blobs/${blob}`], []);
    expect(piped).toMatchObject({ status: 0, output: hostile });
    expect(refused).toMatchObject({
      status: 2,
      output: '',
      messages: expect.stringContaining('is not text') as unknown,
    });
  });
});

describe('CSV', () => {
  it('has heads without controls, exact values in files, and is read back exactly', async () => {
    const file = folder.file('rows.csv');
    expect(await asked(['export', table, file], ['--blobs', folder.file('blobs')])).toMatchObject({ status: 0 });
    const text = await readFile(file, 'utf8');
    const head = text.slice(0, text.indexOf('\n'));
    expect(obeyed.exec(head)).toBe(null);
    expect(head).toContain(withoutControls(field));
    expect(text).toContain(hostile);
    const where = folder.url('copy');
    await writeFile(folder.file('schema.json'), JSON.stringify(schema));
    const words = ['--schema', folder.file('schema.json'), '--blobs', folder.file('blobs')];
    expect(await run(['import', where, table, file, ...words])).toMatchObject({ status: 0 });
    const [row] = jsonLines((await run(['query', where, table, '--json'])).output);
    expect(row).toMatchObject({ id: `1${hostile}`, [field]: hostile, j: { [hostile]: hostile } });
  });

  it('does nothing to a terminal', async () => {
    const { output } = await asked(['export', table], ['--format', 'csv'], { tty: 'output' });
    expect(obeyed.exec(output)).toBe(null);
  });
});

describe('the width of text', () => {
  it.each([
    ['abc', 3],
    ['', 0],
    ['日本', 4],
    ['한국어', 6],
    ['e\u0301', 1],
    ['👩‍👩‍👧‍👦', 2],
    ['ｗｉｄｅ', 8],
  ])('%j takes %i columns', (text, width) => {
    expect(displayWidth(text)).toBe(width);
    expect(cutToWidth(text, width)).toBe(text);
    for (let most = 1; most < width; most++) expect(displayWidth(cutToWidth(text, most))).toBeLessThanOrEqual(most);
  });
});
