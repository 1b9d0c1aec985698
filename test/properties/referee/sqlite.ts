/** SQLite, compiled to WebAssembly, as far as the referee needs it. The package brings no types. */
import { createRequire } from 'node:module';

export type SqlValue = number | string | Uint8Array | bigint | null;

interface Statement {
  bind(values: readonly SqlValue[]): boolean;
  step(): boolean;
  get(values: null, options: { readonly useBigInt: boolean }): SqlValue[];
  run(values: readonly SqlValue[]): void;
  free(): boolean;
}

export interface SqlDatabase {
  run(sql: string): unknown;
  prepare(sql: string): Statement;
  close(): void;
}

type Load = () => Promise<{ readonly Database: new () => SqlDatabase }>;

const require = createRequire(import.meta.url);
const load = require('sql.js') as Load;

export async function openSqlite(): Promise<SqlDatabase> {
  const { Database } = await load();
  return new Database();
}

/** Every row that a statement gives. */
export function allRows(database: SqlDatabase, sql: string, values: readonly SqlValue[]): SqlValue[][] {
  const statement = database.prepare(sql);
  try {
    statement.bind(values);
    const found: SqlValue[][] = [];
    // Large integers are bigints in StoreDb too.
    while (statement.step()) found.push(statement.get(null, { useBigInt: true }));
    return found;
  } finally {
    statement.free();
  }
}

/** The first column of every row that a statement gives, as numbers where it holds integers. */
export function firstColumn(database: SqlDatabase, sql: string, values: readonly SqlValue[]): SqlValue[] {
  return allRows(database, sql, values).map(([value]) =>
    typeof value === 'bigint' ? Number(value) : (value as SqlValue),
  );
}
