/** Rows that have expired are in no answer of the command line, and in no file that it exports. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const sessions = {
  name: 'sessions',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, user: { typeId: Types.varchar }, seen: { typeId: Types.timestamp } },
  primaryKey: 'id',
  indexes: ['seen', 'user'],
  expireAfter: { field: 'seen', seconds: 3600 },
} as const;

let folder: TestFolder;
let url: string;

beforeEach(async () => {
  folder = await TestFolder.make();
  url = folder.url('main');
  const driver = new FileDriver(folder.file('db'));
  const db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver, logLevel: 'silent', polling: 'onDemand' });
  db.registerSchema(sessions);
  await db.start();
  const batch = db.batch();
  // Expired for two minutes, so that nothing deletes it yet; expires in half an hour; never.
  void batch.insert(sessions, { id: 1, user: 'ann', seen: new Date(Date.now() - 3_720_000) });
  void batch.insert(sessions, { id: 2, user: 'bob', seen: new Date(Date.now() - 1_800_000) });
  void batch.insert(sessions, { id: 3, user: 'ann', seen: null });
  await batch.flush();
  await db.checkpoint();
  await db.stop();
});

afterEach(() => folder[Symbol.asyncDispose]());

it('answers queries without rows that have expired', async () => {
  const count = await run(['query', url, 'sessions', '--count']);
  expect(count.output).toBe('2\n');
  const rows = await run(['query', url, 'sessions', '--json']);
  expect(jsonLines(rows.output).map((row) => (row as { id: number }).id)).toEqual([2, 3]);
  const found = await run(['query', url, 'sessions', '--where', 'user = ann', '--count']);
  expect(found.output).toBe('1\n');
});

it('exports no rows that have expired', async () => {
  const ndjson = await run(['export', url, 'sessions', '--format', 'ndjson']);
  expect(jsonLines(ndjson.output).map((row) => (row as { id: number }).id)).toEqual([2, 3]);
  const csv = await run(['export', url, 'sessions', '--format', 'csv']);
  expect(csv.output.trim().split('\n')).toHaveLength(3);
});

it('shows in the list of tables when rows expire', async () => {
  const { output } = await run(['tables', url]);
  expect(output).toContain('seen timestamp (rows expire 1 hour after it)');
});
