/** A batch together with what the oracle must know of it: which operations each call of `flush()` added. */
import type { Batch } from '../../../src/batch/batch.ts';
import { StoreDbError, UniqueIndexError } from '../../../src/base/errors.ts';
import type { DuplicateKeyError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Ledger, Segment } from './ledger.ts';
import { markOp } from './ledger.ts';
import type { Agreement, Op, Verdict } from './model.ts';
import { blobFieldsOf, engineKey, modelKey } from './tables.ts';
import { tableName } from './versions.ts';

export type FlushOutcome = 'acked' | 'none' | 'unknown';

export interface FlushReport {
  readonly outcome: FlushOutcome;
  readonly error?: unknown;
  /** What was acknowledged. */
  readonly acked: readonly Segment[];
  /** Whether nothing of it was flushed before. */
  readonly isFirst: boolean;
}

async function addTo(db: Database, batch: Batch, op: Op): Promise<void> {
  const table = tableName(op.table);
  if (op.kind === 'delete') return batch.delete(table, engineKey(op.table, op.key));
  const document: Record<string, unknown> = { ...op.document };
  for (const field of blobFieldsOf(op.table)) {
    const blob = document[field] ?? null;
    if (blob !== null) document[field] = db.Blob(blob as string);
  }
  await batch[op.kind](table, document);
}

export function verdictOf(error: unknown): Verdict | undefined {
  if (error instanceof UniqueIndexError) {
    const { table, index, value, primaryKey, otherKey } = error;
    const agreement = { index, value, keys: [modelKey(primaryKey), modelKey(otherKey)] } as Agreement;
    return { code: 'UNIQUE_INDEX', table, key: modelKey(primaryKey), agreement };
  }
  const { code } = error as StoreDbError;
  if (code !== 'DUPLICATE_KEY' && code !== 'ROW_NOT_FOUND') return undefined;
  const { table, primaryKey } = error as DuplicateKeyError;
  return { code, table, key: modelKey(primaryKey) };
}

export class SimBatch {
  readonly batch: Batch;
  readonly #db: Database;
  readonly #ledger: Ledger;
  /** Added since the last flush was called. */
  #added: Op[] = [];
  /** Flushed before, and neither acknowledged nor dropped. */
  #segments: Segment[] = [];

  constructor(db: Database, ledger: Ledger) {
    this.batch = db.batch();
    this.#db = db;
    this.#ledger = ledger;
  }

  /** Operations that an overlay of this batch shows; undefined if some of them may have been applied already. */
  get overlay(): readonly Op[] | undefined {
    if (this.#segments.some(({ status }) => status !== 'none')) return undefined;
    return [...this.#segments.flatMap((segment) => [...segment.ops, markOp(segment)]), ...this.#added];
  }

  get isEmpty(): boolean {
    return this.#added.length === 0 && this.#segments.length === 0;
  }

  async add(op: Op): Promise<void> {
    await addTo(this.#db, this.batch, op);
    this.#added.push(op);
  }

  /** Adds operations by way of a sub-batch; `drop`: it is not flushed, and so takes no part. */
  async addSub(ops: readonly Op[], drop: boolean): Promise<void> {
    const sub = this.batch.subBatch();
    for (const op of ops) await addTo(this.#db, sub, op);
    if (drop) return;
    await sub.flush();
    this.#added.push(...ops);
  }

  /** Flushes, and tells the oracle. The first part happens at once: flushes are called in the order of their numbers. */
  async flush(signal: AbortSignal | undefined): Promise<FlushReport> {
    const isFirst = this.#segments.length === 0;
    if (this.#added.length > 0) {
      const segment = this.#ledger.segment(this.#added);
      try {
        await addTo(this.#db, this.batch, markOp(segment));
      } catch (error) {
        // The instance was stopped: the operations wait for the next flush, and its mark.
        segment.status = 'none';
        return { outcome: 'none', error, acked: [], isFirst };
      }
      this.#added = [];
      this.#segments.push(segment);
    }
    const segments = this.#segments;
    const doubtful = new Set(segments.filter(({ status }) => status === 'unknown'));
    for (const segment of segments) if (segment.status === 'none') segment.status = 'pending';
    const since = this.#ledger.tail;
    try {
      await this.batch.flush(signal === undefined ? {} : { signal });
    } catch (error) {
      return { outcome: this.#failed(error, segments, doubtful, since), error, acked: [], isFirst };
    }
    this.#ledger.acked(segments);
    this.#segments = [];
    return { outcome: 'acked', acked: segments, isFirst };
  }

  #failed(error: unknown, segments: readonly Segment[], doubtful: ReadonlySet<Segment>, since: number): FlushOutcome {
    const code = error instanceof StoreDbError ? error.code : String(error);
    if (code === 'COMMIT_OUTCOME_UNKNOWN') {
      for (const segment of segments) segment.status = 'unknown';
      return 'unknown';
    }
    // Nothing was asked of the log: what was in doubt still is.
    const untouched = code === 'NOT_STARTED' ? doubtful : new Set<Segment>();
    // What was in doubt has been settled first, one way or the other.
    const applied = segments.filter((segment) => doubtful.has(segment) && segment.landed !== undefined);
    const rest = segments.filter((segment) => !untouched.has(segment) && !applied.includes(segment));
    if (untouched.size === 0) {
      this.#ledger.acked(applied);
      this.#segments = this.#segments.filter((segment) => !applied.includes(segment));
    }
    this.#ledger.rejected(rest, since, verdictOf(error), code);
    return untouched.size > 0 ? 'unknown' : 'none';
  }

  /** Drops what the batch holds; what was in doubt stays in doubt. */
  clear(): void {
    this.batch.clear();
    this.#added = [];
    this.#segments = [];
  }
}
