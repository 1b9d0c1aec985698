/** The rows that a flush changes in a table, with their keys: worked out once for all queries that watch it. */
import { toLatin1 } from '../base/bytes.ts';
import type { Node } from '../format/node.ts';
import { decodeRow } from '../format/row-decode.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { VersionedChanges } from '../view/view.ts';

/** A changed row. */
export class ChangedRow {
  readonly key: Uint8Array;
  /** The key as something that sets can hold. */
  readonly text: string;
  /** Where the row is, unless it was deleted, in `node`. */
  readonly node: Node;
  readonly at: number;
  #row: Readonly<Record<string, unknown>> | undefined;

  constructor(node: Node, at: number) {
    this.key = node.key(at).slice();
    this.text = toLatin1(this.key);
    this.node = node;
    this.at = at;
  }

  /** The row as queries return it, with all fields: one object for all of them. */
  row({ layout }: TableShape): Readonly<Record<string, unknown>> {
    this.#row ??= decodeRow(layout, this.node, this.node.rowBase(this.at));
    return this.#row;
  }
}

export class ChangedRows {
  readonly #changes: VersionedChanges;
  readonly #byVersion = new Map<number, readonly ChangedRow[] | undefined>();

  constructor(changes: VersionedChanges) {
    this.#changes = changes;
  }

  /** The changed rows in a version of the table; undefined if they are in other versions only, or too many to look at each of them. */
  of(version: number): readonly ChangedRow[] | undefined {
    if (!this.#byVersion.has(version)) this.#byVersion.set(version, this.#rowsOf(version));
    return this.#byVersion.get(version);
  }

  #rowsOf(version: number): readonly ChangedRow[] | undefined {
    const own = this.#changes.of(version);
    if (own === undefined || own.staged !== undefined || own.node.level > 0) return undefined;
    const { node } = own;
    return Array.from({ length: node.count }, (_, at) => new ChangedRow(node, at));
  }
}
