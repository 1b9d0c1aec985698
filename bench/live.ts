/**
 * The processor time that watched queries add to a commit of one row: `npm run bench:live [-- <rounds>]`. 1,000 queries watch a table of
 * 100,000 rows, and ten of them show the row that a commit changes. A database without watched queries takes turns with it, for 20 commits
 * each.
 */
import { setImmediate as yieldToEventLoop, setTimeout as sleep } from 'node:timers/promises';
import CliTable from 'cli-table3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';

const rounds = Number(process.argv[2] ?? 30);
const perRound = 20;
const rowCount = 100_000;
const queryCount = 1000;
const lists = 100;
/** Queries that show the same rows. */
const perList = queryCount / lists;

const todos = defineSchema({
  name: 'todos',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    list: { typeId: Types.uint32 },
    text: { typeId: Types.varchar, maxLength: 64 },
    rank: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: ['list'],
});

type Watch = (db: Database, list: number) => { subscribe(callback: () => void): () => void };

let changed = 0;
let results = 0;

const haveCome = (count: number): boolean => results >= count;

async function open(): Promise<Database> {
  const db = StoreDb({
    dbPrefix: 'bench',
    driver: new MemoryDriver(),
    nodeId: 0,
    logLevel: 'silent',
    maxMemoryBytes: 400 * 1024 ** 2,
  });
  db.registerSchema(todos);
  await db.start();
  const rows = Array.from({ length: rowCount }, (_, id) => ({
    id,
    list: id % lists,
    text: `to do ${id}`,
    rank: id / 7,
  }));
  await db.load(todos, rows);
  await db.checkpoint();
  return db;
}

async function commit(db: Database): Promise<void> {
  changed++;
  const id = (changed * 7919) % 2000;
  const batch = db.batch();
  void batch.update(todos, { id, text: `changed ${changed}` });
  await batch.flush();
}

/** CPU of a commit and what follows it, in milliseconds. */
async function round(db: Database, shown: number): Promise<number> {
  const from = process.cpuUsage();
  for (let i = 0; i < perRound; i++) {
    const due = results + shown;
    await commit(db);
    while (!haveCome(due)) await yieldToEventLoop();
  }
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000 / perRound;
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

async function measure(name: string, watch: Watch): Promise<void> {
  const [bare, watched] = [await open(), await open()];
  const ends: (() => void)[] = [];
  results = 0;
  for (let i = 0; i < queryCount; i++) ends.push(watch(watched, i % lists).subscribe(() => results++));
  while (!haveCome(queryCount)) await sleep(10);
  const without: number[] = [];
  const withAll: number[] = [];
  for (let i = -3; i < rounds; i++) {
    const one = await round(bare, 0);
    const other = await round(watched, perList);
    if (i < 0) continue;
    without.push(one);
    withAll.push(other);
  }
  const figures = [median(without), median(withAll), median(withAll.map((cost, i) => cost - (without[i] as number)))];
  table.push([name, ...figures.map((ms) => ms.toFixed(2))]);
  for (const end of ends) end();
  await bare.stop();
  await watched.stop();
}

const table = new CliTable({
  head: ['Each query shows', 'Commit without queries, ms', 'With them, ms', 'Added, ms'],
  colAligns: ['left', 'right', 'right', 'right'],
  style: { head: [], border: [] },
});
const ofList = (db: Database, list: number) => db.query(todos).where('list', '=', list);
await measure('20 rows of 1,000', (db, list) => ofList(db, list).orderBy('id').limit(20).watch());
await measure('1,000 rows', (db, list) => ofList(db, list).watch());
console.log(table.toString());
