/** `store-db publish`: tables as static files, which a reader then reads. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { openReader } from '../../../src/reader.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const towns = {
  name: 'towns',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar }, people: { typeId: Types.uint32 } },
  primaryKey: 'id',
  indexes: ['name'],
} as const;
let folder: TestFolder;

beforeEach(async () => {
  folder = await TestFolder.make();
  const db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver: new FileDriver(folder.file('db')), logLevel: 'silent' });
  db.registerSchema(towns);
  await db.start();
  await db.load(
    towns,
    Array.from({ length: 5000 }, (_, id) => ({ id, name: `town ${id % 50}`, people: id })),
  );
  await db.stop();
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

describe('publish', () => {
  it('writes files that a server of static files serves', async () => {
    const to = `file:${folder.file('public')}#towns`;
    const words = ['--table', 'towns', '--where', 'towns=people < 1000', '--fields', 'towns=name'];
    const first = await run(['publish', folder.url(), to, ...words]);
    expect(first).toMatchObject({
      status: 0,
      output: expect.stringMatching(/^1,000 rows published at file:.+#towns: /) as unknown,
    });
    expect(readdirSync(folder.file('public/towns')).toSorted()).toEqual([
      'bundle',
      'contents',
      'data',
      'indexes',
      'manifests',
    ]);
    const again = await run(['publish', folder.url(), to, ...words, '--json']);
    expect(jsonLines(again.output)[0]).toMatchObject({ outcome: 'unchanged', writtenObjects: 0 });

    const server = createServer((request, response) => {
      const file = folder.file(`public${request.url ?? ''}`);
      response.statusCode = existsSync(file) ? 200 : 404;
      response.end(existsSync(file) ? readFileSync(file) : '');
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const reader = await openReader(`http://127.0.0.1:${port}/towns/`);
    expect(await reader.get('towns', 57)).toEqual({ id: 57, name: 'town 7' });
    expect(await reader.query('towns').where('name', '=', 'town 7').count()).toBe(20);
    const all = await run(['publish', folder.url(), to, '--keep-last', '1']);
    expect(all.output).toContain('5,000 rows published');
    expect(await reader.refresh()).toBe(true);
    expect(await reader.get('towns', 4057)).toEqual({ id: 4057, name: 'town 7', people: 4057 });
    reader.close();
    server.close();
  });

  it('names what is wrong', async () => {
    const wrong = async (...words: string[]): Promise<string> => {
      const { status, messages } = await run([
        'publish',
        folder.url(),
        `file:${folder.file('public')}#towns`,
        ...words,
      ]);
      expect(status).not.toBe(0);
      return messages;
    };
    expect(await wrong('--table', 'town')).toContain('did you mean `towns`');
    expect(await wrong('--where', 'people < 3')).toContain('it must name a table first');
    expect(await wrong('--where', 'towns=peple < 3')).toContain('did you mean people');
    expect(await wrong('--fields', 'towns=nam')).toContain('did you mean `name`');
    expect((await run(['publish', folder.url(), folder.url()])).messages).toContain('no prefix');
    expect(existsSync(folder.file('public'))).toBe(false);
  });
});
