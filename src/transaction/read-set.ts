/**
 * The read set of a transaction: single rows by their keys, and the conditions and ranges of its queries. Whether a change conflicts
 * with it is decided row by row: by the key alone where that is enough, else by the row after the change and, if that does not match,
 * by the row as the transaction saw it.
 */
import { isPromise } from '../base/brands.ts';
import type { Pacer } from '../base/pacer.ts';
import { toLatin1 } from '../base/bytes.ts';
import type { Node } from '../format/node.ts';
import { describeKey } from '../base/messages.ts';
import type { VersionedChanges } from '../view/view.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import type { QueryRead } from '../query/planner/query-host.ts';
import { haveSameKeys } from '../schema/same-shape.ts';
import { shapeOf } from '../schema/table-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { isInRange } from '../tree/cursor.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { RowRef } from '../tree/tree.ts';

/** How many rows are looked up in the store at the same time. */
const maxLookups = 16;

type Matches = NonNullable<QueryRead['matches']>;

/** A query whose matching rows cannot be recognised by their keys. */
interface Predicate {
  readonly keys: ReadonlySet<string> | undefined;
  readonly range: KeyRange | undefined;
  readonly matches: Matches;
}

/** A key as something that sets can hold. */
function textOf(key: Uint8Array): string {
  return toLatin1(key);
}

/** Whether a row matches one of several queries. A query whose registered function throws counts as a match. */
function matchesAny(predicates: readonly Predicate[], row: RowRef | undefined): boolean {
  if (row === undefined) return false;
  try {
    return predicates.some(({ matches }) => matches(row.source, row.base));
  } catch {
    // A registered function threw: so it would have for the transaction, or so it will.
    return true;
  }
}

/** The reads of one table. */
class TableReads {
  readonly shape: TableShape;
  readonly #keys = new Set<string>();
  readonly #ranges: KeyRange[] = [];
  readonly #predicates: Predicate[] = [];

  constructor(shape: TableShape) {
    this.shape = shape;
  }

  addRow(key: Uint8Array): void {
    this.#keys.add(textOf(key));
  }

  addQuery({ keys, range, matches }: QueryRead): void {
    if (matches !== undefined) {
      this.#predicates.push({ keys: keys && new Set(keys.map(textOf)), range, matches });
    } else if (keys === undefined) this.#ranges.push(range ?? {});
    else for (const key of keys) this.addRow(key);
  }

  /** Whether a row with this key conflicts, regardless of its values. */
  holds(key: Uint8Array): boolean {
    return this.#keys.has(textOf(key)) || this.#ranges.some((range) => isInRange(key, range));
  }

  /** The queries to which a row with this key makes a difference if it matches. */
  suspects(key: Uint8Array): Predicate[] {
    return this.#predicates.filter(({ keys, range }) => {
      return keys === undefined ? range === undefined || isInRange(key, range) : keys.has(textOf(key));
    });
  }
}

/** The read set of a transaction. */
export class ReadSet {
  readonly #tables = new Map<string, TableReads>();

  get isEmpty(): boolean {
    return this.#tables.size === 0;
  }

  addRow(shape: TableShape, key: Uint8Array): void {
    this.#of(shape).addRow(key);
  }

  addQuery(shape: TableShape, read: QueryRead): void {
    this.#of(shape).addQuery(read);
  }

  #of(shape: TableShape): TableReads {
    let reads = this.#tables.get(shape.name);
    if (reads === undefined) {
      reads = new TableReads(shape);
      this.#tables.set(shape.name, reads);
    }
    return reads;
  }

  /** The tables that were read, each in the version in which it was. */
  get shapes(): TableShape[] {
    return Array.from(this.#tables.values(), ({ shape }) => shape);
  }

  /** Whether anything of a table was read. */
  concerns(table: string): boolean {
    return this.#tables.has(table);
  }

  /**
   * Returns the key of a row in a flush's changes to a table that conflicts with a read; undefined if none does. `before` is the
   * table as it was read. Rejects with `BlockGone` if its blocks are gone.
   */
  async conflictWith(changes: VersionedChanges, before: TableState, pacer: Pacer): Promise<string | undefined> {
    const reads = this.#tables.get(before.shape.name);
    if (reads === undefined) return undefined;
    const { shape } = reads;
    const table = `table '${shape.name}'`;
    const own = changes.of(shape.version);
    const change = own ?? changes.first;
    // Too many rows to look at each of them.
    if (change.staged !== undefined || change.node.level > 0) return `a large part of ${table}`;
    if (own === undefined && !haveSameKeys(shapeOf(change.schema), shape)) return table;
    const found = await this.#firstConflict(reads, change.node, own === undefined ? undefined : before, pacer);
    if (found === undefined) return undefined;
    return `the row of ${table} with primary key ${describeKey(shape.keyValue(found))}`;
  }

  /**
   * Returns the key of a row that conflicts. Without `before` the changed rows are of another version than the rows that were read:
   * then every row that could match conflicts.
   */
  async #firstConflict(
    reads: TableReads,
    node: Node,
    before: TableState | undefined,
    pacer: Pacer,
  ): Promise<Uint8Array | undefined> {
    let late: Promise<Uint8Array | undefined>[] = [];
    for (let i = 0; i < node.count; i++) {
      if ((i & 0xff) === 0xff && pacer.due()) await pacer.pause();
      const key = node.key(i);
      if (reads.holds(key)) return key;
      const suspects = reads.suspects(key);
      if (suspects.length === 0) continue;
      if (before === undefined) return key;
      const after = isDeleted(node, i) ? undefined : { source: node, base: node.rowBase(i) };
      if (matchesAny(suspects, after)) return key;
      const known = before.lookup(key);
      if (isPromise(known)) {
        const looked = known.then((row) => (matchesAny(suspects, row) ? key : undefined));
        // Another one may decide first; how this one ends is then nobody's concern.
        looked.catch(() => undefined);
        late.push(looked);
      } else if (matchesAny(suspects, known)) return key;
      if (late.length < maxLookups) continue;
      const conflict = (await Promise.all(late)).find((each) => each !== undefined);
      if (conflict !== undefined) return conflict;
      late = [];
    }
    const last = await Promise.all(late);
    return last.find((each) => each !== undefined);
  }
}
