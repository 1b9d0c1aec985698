/** The tables that were dropped, as a view shows them: those that Block 0 lists, and those that pending commits drop. */
import type { CommitMember } from '../format/commit.ts';
import type { StoredDrop, StoredDrops } from '../format/stored-table.ts';

export class TableDrops {
  static readonly none: TableDrops = new TableDrops(new Map(), 0);
  /** The last drop of each table. */
  readonly #byTable: ReadonlyMap<string, StoredDrop>;
  /** Tables that are not there, and were dropped last at this slot or before, may be missing. */
  readonly forgotten: number;

  private constructor(byTable: ReadonlyMap<string, StoredDrop>, forgotten: number) {
    this.#byTable = byTable;
    this.forgotten = forgotten;
  }

  static stored(drops: StoredDrops | undefined): TableDrops {
    if (drops === undefined) return TableDrops.none;
    return new TableDrops(new Map(drops.tables.map((drop) => [drop.table, drop])), drops.forgotten);
  }

  /** Returns the drops after some more. */
  with(more: readonly StoredDrop[]): TableDrops {
    return new TableDrops(
      new Map([...this.#byTable, ...more.map((drop) => [drop.table, drop] as const)]),
      this.forgotten,
    );
  }

  /** The names of the tables that were dropped, also of those that are there again. */
  get names(): Iterable<string> {
    return this.#byTable.keys();
  }

  /** The last drop of a table; undefined if there was none, or if it is forgotten. */
  of(table: string): StoredDrop | undefined {
    return this.#byTable.get(table);
  }
}

/** The commit that a member belongs to; before it has a slot, the one that it would have. */
export interface DroppingCommit {
  readonly slot: number;
  readonly nodeId: number;
  readonly atMs: number;
}

/** Returns the drops of a member, as Block 0 lists them. */
export function dropsOf({ drops = [] }: CommitMember, { slot, nodeId, atMs }: DroppingCommit): StoredDrop[] {
  return drops.map(({ table }) => ({ table, slot, nodeId, atMs }));
}
