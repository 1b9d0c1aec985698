/** The call that changes one row, unless somebody else has changed it meanwhile. */
import { InvalidOptionError, Types } from '../index.ts';
import type { Transaction } from '../index.ts';
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import type { KnownTable } from './known-tables.ts';
import type { Calls, Row, Saved } from './messages.ts';

type Values = Record<string, unknown>;

/** Whether two cells hold the same value. JSON from a browser may have its properties in another order. */
function isSameCell(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return (a ?? null) === (b ?? null);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as Values, b as Values];
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && isSameCell(left[name], right[name]))
  );
}

function isSameRow(a: Row | null, b: Row | null, table: KnownTable): boolean {
  if (a === null || b === null) return a === b;
  return table.columns.every((name) => isSameCell(a[name], b[name]));
}

/** Returns a row that was asked for. Throws `InvalidOptionError`. */
function rowAsked(table: KnownTable, asked: Asked, name: string): Row | null {
  const given = asked.any(name);
  if (given === null) return null;
  if (typeof given !== 'object' || Array.isArray(given)) asked.fail(name, 'a row, or null');
  for (const field of Object.keys(given)) table.field(field);
  return given as Row;
}

/** Decodes the fields to write. Blobs are not among them. */
function documentOf(table: KnownTable, row: Row): Values {
  const fields = Object.entries(row).filter(([name]) => table.field(name).typeId !== Types.blob);
  return Object.fromEntries(fields.map(([name, cell]) => [name, table.value(name, cell)]));
}

/** Returns the cells of a row's key; undefined if the database is to generate one of them. */
function keyIn(table: KnownTable, row: Row): unknown[] | undefined {
  const cells = table.keyNames.map((name) => row[name] ?? null);
  return cells.includes(null) ? undefined : cells;
}

async function insert(tx: Transaction, table: KnownTable, after: Row): Promise<Saved> {
  const cells = keyIn(table, after);
  const stored: Values | undefined = cells && (await tx.get(table.name, table.key(cells)));
  if (stored !== undefined) return { status: 'conflict', stored: table.row(stored) };
  const key: unknown = await tx.insert(table.name, documentOf(table, after));
  const row: Values | undefined = await tx.get(table.name, key);
  return { status: 'saved', row: row === undefined ? null : table.row(row), position: 0 };
}

async function change(tx: Transaction, table: KnownTable, before: Row, after: Row | null): Promise<Saved> {
  const cells = keyIn(table, before);
  if (cells === undefined) throw new InvalidOptionError('before', 'The row has no primary key.');
  if (after !== null && !isSameCell(keyIn(table, after), cells)) {
    const message = 'The primary key of a row does not change: insert a row with the new key, and delete this one.';
    throw new InvalidOptionError('after', message);
  }
  const key = table.key(cells);
  const found: Values | undefined = await tx.get(table.name, key);
  const stored = found === undefined ? null : table.row(found);
  if (!isSameRow(stored, before, table)) return { status: 'conflict', stored };
  if (after === null) {
    await tx.delete(table.name, key);
    return { status: 'saved', row: null, position: 0 };
  }
  await tx.update(table.name, documentOf(table, after));
  const row: Values | undefined = await tx.get(table.name, key);
  return { status: 'saved', row: row === undefined ? null : table.row(row), position: 0 };
}

/** `save`: inserts, changes or deletes a row. */
export async function save(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['save'][1]> {
  context.requireWrite('save');
  const table = await context.tables.get(asked.text('table'), signal);
  const before = rowAsked(table, asked, 'before');
  const after = rowAsked(table, asked, 'after');
  const saved = await context.db.transaction(
    (tx) => {
      if (before !== null) return change(tx, table, before, after);
      if (after !== null) return insert(tx, table, after);
      throw new InvalidOptionError('after', 'There is nothing to save: give the row before, the row after, or both.');
    },
    { signal },
  );
  return saved.status === 'saved' ? { ...saved, position: context.db.position } : saved;
}
