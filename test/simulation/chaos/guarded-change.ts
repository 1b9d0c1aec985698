/**
 * A read-modify-write of some rows by plain batches: whoever changes rows inserts, in the same flush, the next version of
 * each as a row of its own. Of two that read the same version only one can, and the other begins anew. So this rests on
 * `DuplicateKeyError` being right on every node, at every moment.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Batch } from '../../../src/batch/batch.ts';
import type { Database } from '../../../src/api/database.ts';
import { flushOnce } from './flush.ts';
import type { Patience } from './flush.ts';
import { guards } from './tables.ts';

export interface VersionedRow {
  readonly id: string;
  readonly version: number | null;
}

export interface GuardedChange<Row extends VersionedRow, T> {
  readonly table: string;
  /** The rows that are read, and changed: what is only read is guarded as well. */
  readonly ids: readonly string[];
  /** Adds to the batch, given the rows that there are, and the version that each row has to be given. */
  readonly change: (rows: ReadonlyMap<string, Row>, batch: Batch, versionOf: (id: string) => number) => T;
}

/** Why an operation had no effect, in the manner of the errors of the database. */
export class Refusal extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

const maxAttempts = 12;

/** Gives what `change` gave when it succeeded, and how often it was begun anew. */
export async function changeGuarded<Row extends VersionedRow, T>(
  db: Database,
  { table, ids, change }: GuardedChange<Row, T>,
  patience: Patience,
  onRetry: () => void,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const rows = (await db
      .query(table)
      .where('id', 'IN', [...ids])
      .execute()) as unknown as Row[];
    const byId = new Map(rows.map((row) => [row.id, row]));
    const versionOf = (id: string): number => (byId.get(id)?.version ?? 0) + 1;
    const batch = db.batch();
    for (const id of ids) void batch.insert(guards, { id: `${id}/${versionOf(id)}` });
    const value = change(byId, batch, versionOf);
    try {
      await flushOnce(batch, patience);
      return value;
    } catch (error) {
      if ((error as { code?: string }).code !== 'DUPLICATE_KEY') throw error;
      if (attempt >= maxAttempts) throw new Refusal('CONTENTION');
    }
    onRetry();
    await sleep(Math.random() * Math.min(400, 20 * 2 ** attempt));
    // What it lost to may not be in its view yet.
    await db.refresh();
  }
}
