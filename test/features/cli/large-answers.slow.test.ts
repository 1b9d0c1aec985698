/** Answers that are larger than the memory of the process that prints them. */
import { execFile } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { bundleProgram } from '../../simulation/crash/program-bundle.ts';
import { TestFolder } from './shell.ts';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../../../', import.meta.url));
const rows = 12_000;
const textLength = 5000;
/** Of JavaScript's objects. All texts are 60 MB. */
const heapMebibytes = 40;

let folder: TestFolder;
let program: string;

beforeAll(async () => {
  folder = await TestFolder.make();
  const driver = new FileDriver({ path: folder.file('db'), durability: 'none' });
  const db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver, logLevel: 'silent', polling: 'onDemand' });
  const fields = { id: { typeId: Types.uint32 }, back: { typeId: Types.uint32 }, text: { typeId: Types.varchar } };
  db.registerSchema({ name: 'notes', version: 1, fields, primaryKey: 'id' });
  await db.start();
  for (let from = 0; from < rows; from += 2000) {
    const batch = db.batch();
    for (let id = from; id < from + 2000; id++) {
      void batch.insert('notes', { id, back: rows - id, text: `${id} `.padEnd(textLength, 'x') });
    }
    await batch.flush();
  }
  await db.checkpoint();
  await db.stop();
  const folders = path.join(folder.path, 'package', 'dist', 'cli');
  program = bundleProgram(new URL('../../../src/cli/main.ts', import.meta.url), folders);
  await copyFile(path.join(root, 'package.json'), path.join(folder.path, 'package', 'package.json'));
}, 120_000);
afterAll(() => folder[Symbol.asyncDispose]());

/** A line for a shell in which `store-db` is the command, in a process with little memory. Resolves to its exit status and output. */
async function shell(line: string): Promise<{ status: number; stdout: string; stderr: string }> {
  const node = `'${process.execPath}' --max-old-space-size=${heapMebibytes} '${program}'`;
  const script = `set -o pipefail; store-db() { ${node} "$@"; }; cd '${folder.path}'; ${line}`;
  const env = { ...process.env, URL: folder.url(), NODE_OPTIONS: '' };
  try {
    return { status: 0, ...(await execute('bash', ['-c', script], { env })) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, stdout, stderr };
  }
}

describe('an answer that is larger than the memory', { timeout: 120_000 }, () => {
  it.each([
    ['as lines of JSON', 'query "$URL" notes --json', rows],
    ['as a table', 'query "$URL" notes', rows + 1],
  ])('is printed row by row %s', async (_, command, lines) => {
    const { status, stdout, stderr } = await shell(`store-db ${command} | wc -lc`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const [counted, bytes] = stdout.trim().split(/\s+/).map(Number) as [number, number];
    expect(counted).toBe(lines);
    expect(bytes).toBeGreaterThan(rows * textLength);
  });

  it('waits for a reader that is slower than the store, from the shell too', async () => {
    const statement = 'select id, text from notes';
    const { status, stdout, stderr } = await shell(
      `store-db shell "$URL" --json <<< '${statement}' | (sleep 3; wc -l)`,
    );
    expect({ status, stdout: stdout.trim(), stderr }).toEqual({ status: 0, stdout: String(rows), stderr: '' });
  });

  it('would not fit if it were held, as rows are that come in an order of their own', async () => {
    const { status, stdout } = await shell('ulimit -c 0; store-db query "$URL" "notes order by back" --json | wc -l');
    // The process was out of memory, and ended by itself with SIGABRT.
    expect({ status, stdout: stdout.trim() }).toEqual({ status: 128 + 6, stdout: '0' });
  });
});
