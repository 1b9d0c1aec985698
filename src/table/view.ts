/**
 * A view: one Block 0 and the confirmed commits after its `appliedSeq`, taken together. A query holds one view from
 * start to end and sees nothing else. Views are immutable; reading on gives a new one.
 */
import { CorruptionError } from '../base/errors.ts';
import { blockName, commitName, stagedName } from '../format/keys.ts';
import type { TreePlace } from '../format/keys.ts';
import type { Block0, StoredRoot, StoredTable } from '../format/block0.ts';
import type { Commit, CommitMember, TableChange } from '../format/commit.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import { canonicalSchema } from '../format/stored-schema.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import type { BlockReader } from '../tree/block-source.ts';
import { checkLeaf } from '../tree/leaf-shape.ts';
import { Tree, treeOfNode } from '../tree/tree.ts';
import { indexLeafShape, TableShape } from './table-shape.ts';
import { TableState } from './table-state.ts';

/** A confirmed commit and its slot. */
export interface LoggedCommit {
  readonly seq: number;
  readonly commit: Commit;
}

/** A tree and where its blocks are. */
export interface PlacedTree {
  readonly place: TreePlace;
  /** What its leaves are. */
  readonly leaf: EntryShape;
  readonly tree: Tree;
}

/** What views of one database share: where blocks come from, and shapes that were worked out already. */
export class ViewContext {
  readonly reader: BlockReader;
  readonly #shapes = new Map<string, TableShape>();

  constructor(reader: BlockReader) {
    this.reader = reader;
  }

  shape(schema: StoredSchema): TableShape {
    const canonical = canonicalSchema(schema);
    let shape = this.#shapes.get(canonical);
    if (shape === undefined) {
      shape = new TableShape(schema);
      this.#shapes.set(canonical, shape);
    }
    return shape;
  }

  emptyTable(schema: StoredSchema): TableState {
    return this.#state(this.shape(schema), () => null, new Map());
  }

  #state(
    shape: TableShape,
    rootOf: (index: string | undefined) => StoredRoot,
    inlined: ReadonlyMap<string, Node>,
  ): TableState {
    const table = shape.name;
    const indexes = shape.indexes.map(({ name }): [string, Tree] => {
      return [name, this.#tree({ table, index: name }, rootOf(name), indexLeafShape, inlined)];
    });
    const rows = this.#tree({ table }, rootOf(undefined), shape.leafShape, inlined);
    return new TableState(shape, rows, new Map(indexes));
  }

  #tree(place: TreePlace, root: StoredRoot, leaf: EntryShape, inlined: ReadonlyMap<string, Node>): Tree {
    const node = root === null ? undefined : inlined.get(blockName(place, root));
    if (node !== undefined && node.level !== root?.level) {
      throw new CorruptionError(node.name, 'A root in Block 0 is not of the level that Block 0 says');
    }
    if (node !== undefined) checkLeaf(node, leaf);
    return new Tree(this.reader.tree(place, leaf), root, node);
  }

  storedTable(table: StoredTable, inlined: ReadonlyMap<string, Node>): TableState {
    // The last version is the one in force.
    const version = table.versions[table.versions.length - 1] as StoredTable['versions'][number];
    const roots = new Map(version.indexes.map(({ name, root }) => [name, root]));
    const rootOf = (index: string | undefined): StoredRoot => {
      return index === undefined ? version.root : (roots.get(index) ?? null);
    };
    return this.#state(this.shape(version.schema), rootOf, inlined);
  }

  /** Every tree that a Block 0 refers to, of every version of every table. */
  trees(block0: Block0): PlacedTree[] {
    const inlined = inlinedNodes(block0);
    return block0.tables.flatMap(({ name: table, versions }) =>
      versions.flatMap(({ schema, root, indexes }): PlacedTree[] => {
        const { leafShape } = this.shape(schema);
        const place = { table };
        const rows = { place, leaf: leafShape, tree: this.#tree(place, root, leafShape, inlined) };
        return [
          rows,
          ...indexes.map(({ name, root: indexRoot }): PlacedTree => {
            const indexPlace = { table, index: name };
            const tree = this.#tree(indexPlace, indexRoot, indexLeafShape, inlined);
            return { place: indexPlace, leaf: indexLeafShape, tree };
          }),
        ];
      }),
    );
  }

  /** What a commit changed in a table, to be read as the table's rows are. */
  layer({ node, staged }: TableChange, { changeShape }: TableShape): Tree {
    checkLeaf(node, changeShape);
    return treeOfNode(
      node,
      staged === undefined ? undefined : this.reader.staged(staged.runs, stagedName, changeShape),
    );
  }
}

/** The roots that a Block 0 holds itself. Throws `CorruptionError` for a damaged one. */
function inlinedNodes(block0: Block0): Map<string, Node> {
  return new Map(
    block0.inlined.map(({ name, block }) => [name, openNode(name, new Uint8Array(Buffer.from(block, 'base64')))]),
  );
}

export class View {
  readonly block0: Block0;
  /** Last slot whose commit the view shows. */
  readonly tail: number;
  /** Commits after `block0.appliedSeq` up to `tail`, ascending. */
  readonly pending: readonly LoggedCommit[];
  /** Bytes that the pending commits hold in memory. */
  readonly pendingBytes: number;
  /** Whether one of them has staged runs, which are slow to read from. */
  readonly hasStaged: boolean;
  readonly tables: ReadonlyMap<string, TableState>;
  readonly #context: ViewContext;

  private constructor(
    context: ViewContext,
    block0: Block0,
    tail: number,
    pending: readonly LoggedCommit[],
    tables: ReadonlyMap<string, TableState>,
  ) {
    this.#context = context;
    this.block0 = block0;
    this.tail = tail;
    this.pending = pending;
    this.tables = tables;
    let bytes = 0;
    let staged = false;
    for (const table of tables.values()) {
      for (const layer of table.layers) {
        bytes += layer.node?.sizeBytes ?? 0;
        staged ||= (layer.node?.level ?? 0) > 0;
      }
    }
    this.pendingBytes = bytes;
    this.hasStaged = staged;
  }

  /** The state that Block 0 describes. Throws `CorruptionError` if one of its inlined roots is damaged. */
  static ofBlock0(context: ViewContext, block0: Block0): View {
    const inlined = inlinedNodes(block0);
    const tables = new Map<string, TableState>();
    for (const table of block0.tables) tables.set(table.name, context.storedTable(table, inlined));
    return new View(context, block0, block0.appliedSeq, [], tables);
  }

  /** The view with a newer Block 0 that differs in nothing but its bookkeeping (same generation). */
  withBookkeeping(block0: Block0): View {
    return new View(this.#context, block0, this.tail, this.pending, this.tables);
  }

  /** The view with the commit of the next slot. */
  withCommit(logged: LoggedCommit): View {
    if (logged.seq !== this.tail + 1) throw new RangeError(`commit ${logged.seq} does not follow ${this.tail}`);
    if (logged.commit.databaseId !== this.block0.databaseId) {
      throw new CorruptionError(commitName(logged.seq), 'The commit belongs to another database');
    }
    let tables = this.tables;
    for (const member of logged.commit.members) tables = this.#apply(tables, member);
    return new View(this.#context, this.block0, logged.seq, [...this.pending, logged], tables);
  }

  /** The view as it would be after a member that is not committed yet: for validating what follows it. */
  withMember(member: CommitMember): View {
    return new View(this.#context, this.block0, this.tail, this.pending, this.#apply(this.tables, member));
  }

  #apply(tables: ReadonlyMap<string, TableState>, member: CommitMember): ReadonlyMap<string, TableState> {
    const next = new Map(tables);
    for (const change of member.changes) {
      const table = next.get(change.schema.name) ?? this.#context.emptyTable(change.schema);
      next.set(change.schema.name, table.withLayer(this.#context.layer(change, table.shape)));
    }
    return next;
  }

  table(name: string): TableState | undefined {
    return this.tables.get(name);
  }

  /** A table as it is before its first commit. */
  emptyTable(schema: StoredSchema): TableState {
    return this.#context.emptyTable(schema);
  }

  /** The view that another Block 0 gives, with those of this one's commits that it has not applied. */
  rebased(block0: Block0): View {
    let view = View.ofBlock0(this.#context, block0);
    for (const logged of this.pending) if (logged.seq === view.tail + 1) view = view.withCommit(logged);
    return view;
  }
}
