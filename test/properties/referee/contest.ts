/** One random table in both databases. Its rows are numbered: in SQLite by a column `n`, in StoreDb by their key. */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { indexedFields, randomRow, randomTable, toSql } from './random-tables.ts';
import type { Row, Table } from './random-tables.ts';
import type { SqlDatabase } from './sqlite.ts';

export const rowCount = 120;

type Write = (table: string, row: Row) => Promise<unknown>;

/** What changes are added to. */
export interface Writes {
  insert: Write;
  update: Write;
  upsert: Write;
  delete(table: string, key: unknown): Promise<void>;
}

function nameOf(key: unknown): string {
  return key instanceof Uint8Array ? Buffer.from(key).toString('hex') : String(key);
}

export class Contest {
  readonly table: Table;
  readonly random: SeededRandom;
  readonly keys: readonly unknown[];
  readonly sqlite: SqlDatabase;
  readonly #numbers = new Map<string, number>();
  readonly #present = new Set<number>();

  /** Indexes in SQLite are none but those that `indexes` says; left out: all that the table has. */
  constructor(random: SeededRandom, sqlite: SqlDatabase, indexes?: readonly (readonly string[])[]) {
    this.random = random;
    this.table = randomTable(random, 't');
    this.keys = Array.from({ length: rowCount }, (_, i) => this.table.key(random, i));
    this.keys.forEach((key, i) => this.#numbers.set(nameOf(key), i));
    this.sqlite = sqlite;
    const columns = this.table.columns.map(({ name, kind }) => `"${name}" ${kind.sqlType}`);
    sqlite.run(`CREATE TABLE t (n INTEGER, ${columns.join(', ')})`);
    for (const fields of indexes ?? indexedFields(this.table)) {
      sqlite.run(`CREATE INDEX "by ${fields.join(', ')}" ON t ("${fields.join('", "')}")`);
    }
  }

  /** The number of the row with a key. */
  numberOf(key: unknown): number | undefined {
    return this.#numbers.get(nameOf(key));
  }

  /** Random inserts, updates, replacements and deletions, in SQLite at once and in a batch. */
  change(batch: Writes, count: number): void {
    const { random, table } = this;
    for (let i = 0; i < count; i++) {
      const n = random.integer(0, rowCount - 1);
      const key = this.keys[n];
      const row = randomRow(random, table, key);
      if (!this.#present.has(n)) {
        void batch[random.pick(['insert', 'upsert'] as const)]('t', row);
        this.#replace(n, row);
        continue;
      }
      const operation = random.pick(['delete', 'upsert', 'update'] as const);
      if (operation === 'delete') {
        void batch.delete('t', key);
        this.#delete(n);
      } else if (operation === 'upsert') {
        void batch.upsert('t', row);
        this.#replace(n, row);
      } else this.#update(batch, n, row);
    }
  }

  /** Takes changes back in both databases: nothing of what `attempt` does stays, unless it says so. */
  async try(attempt: () => Promise<boolean>): Promise<void> {
    const before = [...this.#present];
    this.sqlite.run('SAVEPOINT before');
    if (!(await attempt())) {
      this.sqlite.run('ROLLBACK TO before');
      this.#present.clear();
      for (const n of before) this.#present.add(n);
    }
    this.sqlite.run('RELEASE before');
  }

  #update(batch: Writes, n: number, row: Row): void {
    const [changed] = this.random.shuffled(this.table.columns.slice(1));
    if (changed === undefined) return;
    void batch.update('t', { k: row['k'], [changed.name]: row[changed.name] });
    const statement = this.sqlite.prepare(`UPDATE t SET "${changed.name}" = ? WHERE n = ?`);
    statement.run([toSql(row[changed.name], changed.kind.typeId), n]);
    statement.free();
  }

  #delete(n: number): void {
    this.sqlite.run(`DELETE FROM t WHERE n = ${n}`);
    this.#present.delete(n);
  }

  #replace(n: number, row: Row): void {
    this.#delete(n);
    const values = this.table.columns.map(({ name, kind }) => toSql(row[name], kind.typeId));
    const statement = this.sqlite.prepare(`INSERT INTO t VALUES (${[n, ...values].map(() => '?').join(', ')})`);
    statement.run([n, ...values]);
    statement.free();
    this.#present.add(n);
  }
}
