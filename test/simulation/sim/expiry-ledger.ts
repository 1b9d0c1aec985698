/** The table whose rows expire, as the log has it: its rows after every commit, and who deleted which of them. A part of the oracle. */
import type { Commit } from '../../../src/format/commit.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { rowDeletedFlag } from '../../../src/format/row-layout.ts';
import { Types } from '../../../src/format/types.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import { isExpiry } from '../../../src/view/merged-cursor.ts';
import { changedRows } from './commit-rows.ts';
import type { Objects } from './commit-rows.ts';
import type { Judge } from './judge.ts';

/** How long rows last. */
export const lastsMs = 600_000;

export const sessions = defineSchema({
  name: 'sessions',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, seen: { typeId: Types.timestamp }, photo: { typeId: Types.blob } },
  primaryKey: 'id',
  indexes: ['seen'],
  expireAfter: { field: 'seen', seconds: lastsMs / 1000 },
});

export interface Session {
  /** When it expires, by the right clock; infinite: never. */
  readonly endMs: number;
  /** The reference of its blob. */
  readonly photo: string | null;
}

export type Sessions = ReadonlyMap<number, Session>;

const invariant = 'rows that expire';
/** Rows stay for five minutes after they have expired, give or take what the answers of the store take on their way. */
const staysMs = 240_000;

export class ExpiryLedger {
  readonly #judge: Judge;
  readonly #objects: Objects;
  /** The right clock. */
  readonly #now: () => number;
  /** The rows after each slot. */
  readonly #states: Sessions[] = [new Map()];
  /** How many rows were deleted since they had expired. */
  deleted = 0;

  constructor(judge: Judge, objects: Objects, now: () => number) {
    this.#judge = judge;
    this.#objects = objects;
    this.#now = now;
  }

  after(slot: number): Sessions {
    return this.#states[slot] ?? new Map<number, Session>();
  }

  /** References of the blobs that rows hold after a slot. */
  photos(slot: number): string[] {
    return [...this.after(slot).values()].flatMap(({ photo }) => photo ?? []);
  }

  landed(slot: number, { members }: Commit): void {
    const rows = new Map(this.after(slot - 1));
    for (const change of members.flatMap(({ changes }) => changes)) {
      if (change.schema.name !== sessions.name) continue;
      const shape = new TableShape(change.schema);
      for (const { node, i } of changedRows(change, this.#objects)) {
        const id = shape.keyValue(node.key(i)) as number;
        const base = node.rowBase(i);
        if (((node.rows[base] as number) & rowDeletedFlag) === 0) {
          const { seen, photo } = decodeRow(shape.layout, node, base) as { seen: Date | null; photo: string | null };
          rows.set(id, { endMs: seen === null ? Number.POSITIVE_INFINITY : seen.getTime() + lastsMs, photo });
          continue;
        }
        if (!isExpiry(node, i)) this.fail(`Slot ${slot} deletes session ${id}, and no application asked for that`);
        this.#deleted(slot, id, rows.get(id));
        rows.delete(id);
      }
    }
    this.#states[slot] = rows;
  }

  #deleted(slot: number, id: number, row: Session | undefined): void {
    this.deleted++;
    if (row === undefined) return this.fail(`Slot ${slot} deletes session ${id}, which is not there`);
    const early = row.endMs + staysMs - this.#now();
    return early > 0 ? this.fail(`Slot ${slot} deletes session ${id} ${early} ms before it may`) : undefined;
  }

  fail(what: string): void {
    this.#judge.fail(invariant, what);
  }

  /** Compares what an instance shows at a position with the rows there, by its own clock before and after the query. */
  judge(node: string, position: number, found: readonly number[], [fromMs, toMs]: readonly [number, number]): void {
    const shown = new Set(found);
    const rows = this.after(position);
    for (const [id, { endMs }] of rows) {
      if (shown.has(id) && endMs <= fromMs) this.fail(`${node} shows session ${id}, which has expired at ${endMs}`);
      if (!shown.has(id) && endMs > toMs) this.fail(`${node} hides session ${id}, which expires at ${endMs}`);
    }
    const more = found.find((id) => !rows.has(id));
    if (more !== undefined) this.fail(`${node} shows session ${more} at ${position}, and the log has none`);
  }
}
