/**
 * Loads a table many times as large as a budget of memory, or reads it within that budget, in a process of its own: what
 * it reports is how much more memory it held. Run by budget.slow.test.ts.
 */
import { loadAll } from '../../../src/base/later.ts';
import { defineSchema, MemoryBudgetError, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import type { GetOptions, GetResult } from '../../../src/storage/index.ts';

const [mode, folder, budget, count] = process.argv.slice(2) as [string, string, string, string];
const maxMemoryBytes = Number(budget);
const rows = Number(count);
/** Half of the usual: more of them fit in a small budget. */
const blockBytes = 32_768;

const pages = defineSchema({
  name: 'pages',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, rank: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['rank'],
});

const filler = 'All work and no play makes a dull table. '.repeat(96);

function rankOf(id: number): number {
  return (id * 7919) % rows;
}

function textOf(id: number): string {
  return `${rankOf(id * 31)} ${filler}`;
}

async function open(options: { readonly maxMemoryBytes?: number } = {}): Promise<Database> {
  // Durability would only measure the disk.
  const driver = new WatchedDriver({ path: folder, durability: 'none' });
  const sizes = { blockSizeBytes: blockBytes, cacheBlockSize: blockBytes };
  const db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent', ...sizes, ...options });
  db.registerSchema(pages);
  await db.start();
  return db;
}

async function load(): Promise<void> {
  const db = await open();
  for (let id = 0; id < rows; ) {
    const batch = db.batch();
    for (const end = Math.min(rows, id + 1900); id < end; id++) {
      void batch.insert(pages, { id, rank: rankOf(id), text: textOf(id) });
    }
    await batch.flush();
  }
  await db.checkpoint();
  await db.stop();
}

/** Bytes that are in use once the garbage is gone. How much of it the runtime lets lie is its own affair: some 64 MB. */
function heldBytes(): number {
  // The second one waits until what the first has found is given back.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

let isWatched = false;
let most = 0;
function watch(): void {
  if (isWatched) most = Math.max(most, heldBytes());
}

/** How many objects are read between two looks: however slow the machine is, what is seen is the same. */
const usualReads = 256;
let readsPerLook = usualReads;

class WatchedDriver extends FileDriver {
  #reads = 0;

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    if (++this.#reads % readsPerLook === 0) watch();
    return super.get(key, options);
  }
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`wrong: ${what}`);
}

/** Everything that reads, over the first `n` rows. */
async function read(db: Database, n: number): Promise<void> {
  let sum = 0;
  for await (const { id, text } of db.query(pages).where('id', '<', n)) {
    sum += id;
    if ((id & 4095) === 0) {
      check(text === textOf(id), 'scanned row');
      watch();
    }
  }
  check(sum === (n * (n - 1)) / 2, 'scan');
  check((await db.query(pages).where('id', '<', n).where('text', '!=', null).count()) === n, 'count');
  watch();
  const top = await db.query(pages).where('id', '<', n).orderBy('text', 'desc').limit(20).execute();
  check(
    top.length === 20 && top.every(({ text }, i) => i === 0 || (text ?? '') <= (top[i - 1]?.text ?? '')),
    'top rows',
  );
  watch();
  const many = await db.query(pages).where('id', '<', n).orderBy('text').select('id').limit(125).execute();
  check(many.length === Math.min(n, 125), 'more top rows');
  watch();
  const ordered = await db.query(pages).orderBy('rank', 'desc').limit(75).execute();
  check(ordered[0]?.rank === rows - 1 && ordered.length === 75, 'order of an index');
  watch();
  for (let i = 0; i < Math.min(n, 400); i++) {
    const id = (i * 7907) % n;
    check((await db.get(pages, id))?.rank === rankOf(id), 'point read');
    if ((i & 127) === 0) watch();
  }
  watch();
}

/** Calls that want more than there is room for: each is to say so. */
async function refuse(db: Database): Promise<string[]> {
  const messages: string[] = [];
  // What is collected is gone as soon as there is too much of it.
  readsPerLook = 16;
  for (const call of [() => db.query(pages).orderBy('text').execute(), () => db.query(pages).execute()]) {
    try {
      await call();
      messages.push('was not refused');
    } catch (error) {
      if (!(error instanceof MemoryBudgetError)) throw error;
      messages.push(error.message);
    }
  }
  readsPerLook = usualReads;
  return messages;
}

if (mode === 'load') await load();
else {
  // Code that is loaded a while after a start would count otherwise.
  await loadAll();
  // What the runtime makes of code that runs for the first time would count otherwise: nothing of this stays.
  const warm = await open();
  await read(warm, 1000);
  await warm.stop();
  const small = await open({ maxMemoryBytes: 1024 * 1024 });
  await refuse(small);
  await small.stop();
  const db = await open({ maxMemoryBytes });
  const before = heldBytes();
  isWatched = true;
  await read(db, rows);
  const readBytes = most - before;
  const messages = await refuse(db);
  const { memory } = db.stats();
  await db.stop();
  process.stdout.write(JSON.stringify({ readBytes, grownBytes: most - before, messages, memory }));
}
