/**
 * What the crash tests write: batches over two tables with indexes. A batch follows from its number and from what is
 * stored, so that the parent of a killed process knows what that process was writing.
 */
import type { Batch } from '../../../src/batch/batch.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Snapshot } from '../../../src/api/snapshot.ts';
import { Types } from '../../../src/format/types.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';

const accounts = defineSchema({
  name: 'accounts',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    owner: { typeId: Types.varchar },
    balance: { typeId: Types.int32 },
    note: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['owner', 'balance'],
});

const events = defineSchema({
  name: 'events',
  version: 1,
  fields: { id: { typeId: Types.varchar }, account: { typeId: Types.int32 }, detail: { typeId: Types.json } },
  primaryKey: 'id',
  indexes: ['account'],
});

export const tables: readonly [typeof accounts, typeof events] = [accounts, events];
type TableName = 'accounts' | 'events';
type Key = number | string;
type Row = { readonly id: Key; readonly [field: string]: unknown };

/** The rows of both tables, by primary key. */
export type State = Readonly<Record<TableName, ReadonlyMap<Key, Row>>>;

export type Operation =
  | { readonly kind: 'insert' | 'update'; readonly table: TableName; readonly row: Row }
  | { readonly kind: 'delete'; readonly table: TableName; readonly key: Key };

export const emptyState: State = { accounts: new Map(), events: new Map() };

export interface WorkloadOptions {
  readonly seed: number;
  /** About how many rows each table comes to have. */
  readonly rows: number;
  /** Most operations of a batch. */
  readonly batchSize: number;
}

const owners = ['ada', 'grace', 'edsger', 'barbara', 'leslie', 'a name that does not fit into its view'];

function randomRow(random: SeededRandom, table: TableName, id: Key): Row {
  if (table === 'events') {
    const detail = random.chance(0.2) ? null : { n: random.integer(0, 9), text: 'x'.repeat(random.integer(0, 40)) };
    return { id, account: random.chance(0.1) ? null : random.integer(0, 20), detail };
  }
  const note = random.chance(0.2) ? null : 'note '.repeat(random.integer(0, 12));
  return { id, owner: random.pick(owners), balance: random.integer(-5, 50), note };
}

/** Keys in an order that does not depend on how the state came about. */
function sortedKeys(rows: ReadonlyMap<Key, Row>): Key[] {
  return [...rows.keys()].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Operations of batch `number` on this state. Every one of them is allowed on it, in this order. */
export function batchOf({ seed, rows, batchSize }: WorkloadOptions, number: number, state: State): Operation[] {
  const random = new SeededRandom(`${seed}.${number}`);
  const operations: Operation[] = [];
  const present = { accounts: sortedKeys(state.accounts), events: sortedKeys(state.events) };
  for (let i = random.integer(1, batchSize); i > 0; i--) {
    const table = random.chance(0.6) ? 'accounts' : 'events';
    const keys = present[table];
    const at = random.integer(0, Math.max(0, keys.length - 1));
    const key = keys[at];
    if (key !== undefined && random.chance(0.35)) {
      // Some of the fields: the others stay as they are.
      const { id, ...fields } = randomRow(random, table, key);
      const changed = Object.entries(fields).filter(() => random.chance(0.6));
      operations.push({ kind: 'update', table, row: { id, ...Object.fromEntries(changed) } });
    } else if (key !== undefined && random.chance(keys.length > rows ? 0.7 : 0.2)) {
      operations.push({ kind: 'delete', table, key });
      keys.splice(at, 1);
    } else {
      // Keys are never used again, and do not come in order.
      const next = (Math.imul(number * 64 + i, 0x9e3779b1) >>> 0) - 0x80000000;
      const id = table === 'accounts' ? next : `event ${next}`;
      operations.push({ kind: 'insert', table, row: randomRow(random, table, id) });
      keys.push(id);
    }
  }
  return operations;
}

export function apply(state: State, operations: readonly Operation[]): State {
  const next = { accounts: new Map(state.accounts), events: new Map(state.events) };
  for (const operation of operations) {
    const rows = next[operation.table];
    if (operation.kind === 'delete') rows.delete(operation.key);
    else rows.set(operation.row.id, { ...rows.get(operation.row.id), ...operation.row });
  }
  return next;
}

export function addTo(batch: Batch, operations: readonly Operation[]): void {
  for (const operation of operations) {
    // What is wrong with one shows when the batch is flushed.
    if (operation.kind === 'delete') void batch.delete(operation.table, operation.key);
    else void batch[operation.kind](operation.table, operation.row);
  }
}

export async function readState(db: Pick<Database, 'query'>): Promise<State> {
  const read = async (table: TableName): Promise<Map<Key, Row>> => {
    const rows = (await db.query(table).execute()) as Row[];
    return new Map(rows.map((row) => [row.id, row]));
  };
  return { accounts: await read('accounts'), events: await read('events') };
}

function rowText(row: Row): string {
  const fields = Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(fields);
}

/** Everything in a state, as one text that is the same for equal states. */
export function stateText({ accounts: a, events: e }: State): string {
  return [...a.values(), ...e.values()].map(rowText).toSorted().join('\n');
}

/**
 * Compares what a database holds with the states that it may be in and gives the number of the one that it is in.
 * Throws if it is in none, if `verify()` finds anything, or if an index answers otherwise than the table.
 */
export async function checkDatabase(db: Database, allowed: readonly State[]): Promise<number> {
  const state = await readState(db);
  const text = stateText(state);
  const at = allowed.findIndex((one) => stateText(one) === text);
  if (at < 0)
    throw new Error(`What is stored is in none of ${allowed.length} states:\n${difference(allowed[0], text)}`);
  for (const [table, field] of [
    ['accounts', 'owner'],
    ['accounts', 'balance'],
    ['events', 'account'],
  ] as const) {
    const values = new Set([...state[table].values()].map((row) => row[field]));
    for (const value of [...values].slice(0, 4)) {
      const found = await db.query(table).where(field, '=', value).count();
      const expected = [...state[table].values()].filter((row) => row[field] === value).length;
      if (found !== expected)
        throw new Error(`Index ${table}.${field} has ${found} rows of ${String(value)}, not ${expected}`);
    }
  }
  const report = await db.verify();
  if (!report.ok) throw new Error(`verify() found ${JSON.stringify(report.findings.slice(0, 5))}`);
  return at;
}

function difference(expected: State | undefined, text: string): string {
  const wanted = new Set(expected === undefined ? [] : stateText(expected).split('\n'));
  const stored = new Set(text.split('\n'));
  const missing = [...wanted].filter((row) => !stored.has(row)).map((row) => `- ${row}`);
  const extra = [...stored].filter((row) => !wanted.has(row)).map((row) => `+ ${row}`);
  return [...missing, ...extra].slice(0, 20).join('\n');
}

/** What the papers say, by their ids. */
export type Papers = ReadonlyMap<number, string>;

export const papers = defineSchema({
  name: 'papers',
  version: 1,
  fields: { id: { typeId: Types.int32 }, content: { typeId: Types.blob } },
  primaryKey: 'id',
});

const maxPapers = 3;

/** Blobs beside the rows: each batch brings a paper, changes the one before it, and drops the oldest. */
export function nextPapers(present: Papers, number: number): Papers {
  const next = new Map(present);
  const last = [...present.keys()].at(-1);
  if (last !== undefined) next.set(last, `paper ${last} as of batch ${number}`);
  next.set(number, `paper ${number} ${'x'.repeat((number * 7919) % 3000)}`);
  for (const id of [...next.keys()].slice(0, -maxPapers)) next.delete(id);
  return next;
}

/** Adds to a batch what leads from some papers to others. */
export function addPapers(db: Database, batch: Batch, present: Papers, next: Papers): void {
  for (const [id, content] of next) {
    if (present.get(id) !== content) void batch.upsert('papers', { id, content: db.Blob(content) });
  }
  for (const id of present.keys()) if (!next.has(id)) void batch.delete('papers', id);
}

export async function readPapers(state: Database | Snapshot): Promise<Papers> {
  const rows = await state.query(papers).execute();
  const read = rows.map(async ({ id, content }): Promise<[number, string]> => {
    return [id, await state.getBlob(content as string).getString()];
  });
  return new Map(await Promise.all(read));
}

export function papersText(shown: Papers): string {
  return [...shown].map(([id, content]) => `${id} ${content}`).join('\n');
}
