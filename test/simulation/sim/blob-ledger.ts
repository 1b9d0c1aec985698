/**
 * What the log says of blobs: which ones rows refer to after each slot, which ones no row refers to any more, and what
 * is in them. A part of the oracle, so it reads commits and objects, and nothing of the engine's.
 */
import { blobsSchema, deletedBlobsSchema } from '../../../src/blob/blob-tables.ts';
import type { CommitMember } from '../../../src/format/commit.ts';
import { blobName } from '../../../src/format/object-names.ts';
import { rowDeletedFlag } from '../../../src/format/row-layout.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import { changedRows } from './commit-rows.ts';
import type { Objects } from './commit-rows.ts';
import type { Judge } from './judge.ts';
import { rowsOf } from './model.ts';
import type { State } from './model.ts';
import { blobFieldsOf, schemas } from './tables.ts';
import type { Row } from './tables.ts';

/** The blobs of a state, by their references. */
export interface BlobLists {
  /** Rows refer to them. */
  readonly live: ReadonlySet<string>;
  /** No row refers to them: they are to be deleted. */
  readonly dead: ReadonlySet<string>;
}

const shape = new TableShape(blobsSchema);
const blobTables = schemas.map(({ name }) => name).filter((name) => blobFieldsOf(name).length > 0);

export class BlobLedger {
  readonly #judge: Judge;
  readonly #objects: Objects;
  readonly #contents = new Map<string, string>();
  /** After each slot; the first one is that of an empty database. */
  readonly #lists: BlobLists[] = [{ live: new Set(), dead: new Set() }];

  constructor(judge: Judge, objects: Objects) {
    this.#judge = judge;
    this.#objects = objects;
  }

  after(slot: number): BlobLists {
    return this.#lists[slot] as BlobLists;
  }

  contentOf(reference: string): string | undefined {
    return this.#contents.get(reference);
  }

  /** A row as the model has it: with what is in its blobs instead of their references. */
  read(table: string, row: Row): Row {
    const fields = blobFieldsOf(table);
    if (fields.every((field) => (row[field] ?? null) === null)) return row;
    return mapBlobs(table, row, (reference) => this.#contents.get(reference) ?? `unknown ${reference}`);
  }

  /** A commit was written to the next slot. Called before its rows are read. */
  landed(slot: number, members: readonly CommitMember[]): void {
    const { live: liveBefore, dead: deadBefore } = this.after(slot - 1);
    const live = new Set(liveBefore);
    const dead = new Set(deadBefore);
    let touched = false;
    for (const member of members) {
      for (const change of member.changes) {
        const isLive = change.schema.name === blobsSchema.name;
        if (!isLive && change.schema.name !== deletedBlobsSchema.name) continue;
        touched = true;
        for (const { node, i } of changedRows(change, this.#objects)) {
          const reference = shape.keyValue(node.key(i)) as string;
          const isDeleted = ((node.rows[node.rowBase(i)] as number) & rowDeletedFlag) !== 0;
          if (isLive && isDeleted) live.delete(reference);
          else if (isLive) this.#add(slot, reference, live);
          else if (isDeleted) this.#forget(slot, reference, dead);
          else dead.add(reference);
        }
      }
      for (const reference of dead) {
        if (live.has(reference))
          this.#fail(slot, `has a row that refers to blob ${reference}, and lists it as deleted`);
      }
    }
    this.#lists.push(touched ? { live, dead } : this.after(slot - 1));
  }

  #fail(slot: number, what: string): void {
    this.#judge.fail('I8 gc safety', `Slot ${slot} ${what}`);
  }

  #add(slot: number, reference: string, live: Set<string>): void {
    live.add(reference);
    const bytes = this.#objects.get(blobName(reference));
    if (bytes === undefined) this.#fail(slot, `refers to blob ${reference}, which is not there`);
    else this.#contents.set(reference, Buffer.from(bytes).toString());
  }

  /** A blob's row goes only after the blob: a flush takes one that is there, and not listed, for safe. */
  #forget(slot: number, reference: string, dead: Set<string>): void {
    dead.delete(reference);
    if (this.#objects.has(blobName(reference))) this.#fail(slot, `forgets blob ${reference}, which is still there`);
  }

  /** The records of blobs must be those of the blobs that rows refer to: `more` of them are in no table of the model. */
  check(slot: number, state: State, more: readonly string[]): void {
    const { live } = this.after(slot);
    if (live === this.after(slot - 1).live) return;
    const recorded = [...live].map((reference) => this.#contents.get(reference) as string);
    const shown = blobTables.flatMap((table) =>
      [...rowsOf(state, table).values()].flatMap((row) =>
        blobFieldsOf(table).flatMap((field) => (row[field] === null ? [] : [row[field] as string])),
      ),
    );
    shown.push(...more.map((reference) => this.#contents.get(reference) ?? `unknown ${reference}`));
    const [left, right] = [recorded, shown].map((contents) => contents.toSorted().join(', '));
    if (left !== right)
      this.#judge.fail('blob records', `After slot ${slot}: ${left} are recorded, rows show ${right}`);
  }
}

/** A row with something else in place of each blob. */
export function mapBlobs(table: string, row: Row, map: (blob: string) => string): Row {
  const mapped: Record<string, Row[string]> = { ...row };
  for (const field of blobFieldsOf(table)) {
    const blob = row[field] ?? null;
    if (blob !== null) mapped[field] = map(blob as string);
  }
  return mapped;
}
