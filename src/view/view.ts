/**
 * A view: one Block 0 and the confirmed commits after its `appliedSeq`, taken together. A query holds one view from
 * start to end and sees nothing else. Views are immutable; reading on gives a new one.
 */
import { fromBase64 } from '../base/bytes.ts';
import { CorruptionError, invariant } from '../base/errors.ts';
import type { BlockCache } from '../cache/block-cache.ts';
import { CachedNode } from '../cache/cached-node.ts';
import { openStored } from '../cache/dense-node.ts';
import type { Block0 } from '../format/block0.ts';
import { follows } from '../format/commit.ts';
import type { Commit, CommitMember, TableChange } from '../format/commit.ts';
import { blockName, commitName, stagedName } from '../format/object-names.ts';
import type { TreePlace } from '../format/object-names.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { canonicalSchema } from '../format/stored-schema.ts';
import type { StoredIndexes, StoredSchema } from '../format/stored-schema.ts';
import { decodeBound } from '../format/stored-table.ts';
import type {
  StoredTableVersion,
  StoredRoot,
  StoredAddedIndex,
  StoredIndexVersion,
  StoredMigration,
  StoredTable,
} from '../format/stored-table.ts';
import { functionIndex, indexLeafShape, shapeOf, tableIndex } from '../schema/table-shape.ts';
import type { AddedIndex, TableShape } from '../schema/table-shape.ts';
import { checkLeaf } from '../tree/block-source.ts';
import type { BlockReader } from '../tree/block-source.ts';
import { isSameTree, Tree, treeOfNode } from '../tree/tree.ts';
import type { IndexVersion } from './index-version.ts';
import { LayerIndexes } from './layer-indexes.ts';
import { maxLayers } from './layers.ts';
import { layeredState } from './layered-state.ts';
import { dropsOf, TableDrops } from './table-drops.ts';
import type { DroppingCommit } from './table-drops.ts';
import { TableState } from './table-state.ts';

/** A confirmed commit and its slot. */
export interface LoggedCommit {
  readonly slot: number;
  readonly commit: Commit;
  /** Whether it stands for a slot that a repair of the log gives up: a commit of nothing. */
  readonly givenUp?: true;
}

/** A tree and where its blocks are. */
export interface PlacedTree {
  readonly place: TreePlace;
  /** The shape of its leaves. */
  readonly leaf: EntryShape;
  readonly tree: Tree;
  /** Whether it is of an index that has not the entries of all rows: not yet, or because its condition does not hold for all. */
  readonly isPartial?: boolean;
  /** Whether a row may have any number of entries: one for each element of a list, or word of texts. */
  readonly isOfMany?: boolean;
}

/**
 * A next version of a table, as Block 0 holds it, or as it begins, when only commits have rows of it.
 */
export interface NextVersion {
  /** Undefined: Block 0 does not know of it yet. */
  readonly migration: StoredMigration | undefined;
  /** The rows that are stored of the version, perhaps not all, without those of pending commits. */
  readonly rows: TableState;
  /** The rows of the active version that these rows belong to, also without pending commits. */
  readonly base: TableState;
}

/** The parts that views of one database share: the reader of blocks, and the shapes of tables. */
export class ViewContext {
  readonly reader: BlockReader;
  readonly #shapes = new Map<string, TableShape>();
  /** The shapes by the schemas that were seen. */
  readonly #shapesOf = new WeakMap<StoredSchema, TableShape>();
  readonly #layerIndexes = new LayerIndexes();
  /** Of the versions of tables in Block 0s that were seen. */
  readonly #states = new WeakMap<StoredTableVersion, TableState>();

  constructor(reader: BlockReader) {
    this.reader = reader;
  }

  shape(schema: StoredSchema): TableShape {
    let shape = this.#shapesOf.get(schema);
    if (shape === undefined) {
      shape = this.#shapeOf(schema);
      this.#shapesOf.set(schema, shape);
    }
    return shape;
  }

  #shapeOf(schema: StoredSchema): TableShape {
    const canonical = canonicalSchema(schema);
    const { code, codeBack } = schema;
    const key = code === undefined ? canonical : `${canonical} ${JSON.stringify([code, codeBack ?? null])}`;
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      shape = shapeOf(schema);
      this.#shapes.set(key, shape);
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
    indexVersions: readonly StoredIndexVersion[] = [],
    added: readonly StoredAddedIndex[] = [],
  ): TableState {
    const table = shape.name;
    const indexes = shape.indexes.map(({ name }): [string, Tree] => {
      return [name, this.#tree({ table, index: name }, rootOf(name), indexLeafShape, inlined)];
    });
    const rows = this.#tree({ table }, rootOf(undefined), shape.leafShape, inlined);
    const stored = indexVersions.map((indexVersion) => this.#indexVersion(shape, indexVersion, rows, inlined));
    const blanks = shape.functionIndexes.map(({ name }): [string, Tree] => {
      return [name, this.#tree({ table, index: name }, null, indexLeafShape, inlined)];
    });
    const more = added.map((index) => this.#addedIndex(shape, index, inlined));
    return new TableState(shape, rows, new Map(indexes), [], stored, new Map(blanks), more, this.#layerIndexes);
  }

  #addedIndex(
    { name, layout, keyFields }: TableShape,
    added: StoredAddedIndex,
    inlined: ReadonlyMap<string, Node>,
  ): AddedIndex {
    const { index, root, built, rows, birth, problem } = added;
    return {
      stored: index,
      index: tableIndex(layout, keyFields, index),
      tree: this.#tree({ table: name, index: index.name }, root, indexLeafShape, inlined),
      built: decodeBound(built),
      rows,
      birth,
      problem,
    };
  }

  /** The tree of an index that has no entries. */
  emptyIndex(table: string, index: string): Tree {
    return this.#tree({ table, index }, null, indexLeafShape, new Map());
  }

  #indexVersion(
    shape: TableShape,
    stored: StoredIndexVersion,
    rows: Tree,
    inlined: ReadonlyMap<string, Node>,
  ): IndexVersion {
    const { index: name, version, built, failed, behindFrom } = stored;
    const { name: table, functionIndexes, leafShape } = shape;
    const on = functionIndexes.find((index) => index.name === name);
    invariant(on !== undefined, `Table ${table} has a version of ${name}, which is none of its indexes`);
    const base = this.#tree({ table }, stored.base, leafShape, inlined);
    return {
      index: functionIndex(on, version),
      tree: this.#tree({ table, index: name }, stored.root, indexLeafShape, inlined),
      base,
      isCurrent: isSameTree(base, rows),
      built: decodeBound(built),
      failed,
      behindFrom,
    };
  }

  #tree(place: TreePlace, root: StoredRoot, leaf: EntryShape, inlined: ReadonlyMap<string, Node>): Tree {
    const node = root === null ? undefined : inlined.get(blockName(place, root));
    if (node !== undefined && node.level !== root?.level) {
      throw new CorruptionError(node.name, 'A root in Block 0 is not of the level that Block 0 says');
    }
    if (node !== undefined) checkLeaf(node, leaf);
    return new Tree(this.reader.tree(place, leaf), root, node);
  }

  /** The rows of one version of a table that Block 0 holds. Worked out once for each, since most tables stay as they are. */
  storedVersion(version: StoredTableVersion, inlined: ReadonlyMap<string, Node>): TableState {
    let state = this.#states.get(version);
    if (state === undefined) {
      state = this.#storedState(version, inlined);
      this.#states.set(version, state);
    }
    return state;
  }

  #storedState(
    { schema, root, indexes, editions: indexVersions, added }: StoredTableVersion,
    inlined: ReadonlyMap<string, Node>,
  ): TableState {
    const roots = new Map(indexes.map(({ name, root: indexRoot }) => [name, indexRoot]));
    const rootOf = (index: string | undefined): StoredRoot => {
      return index === undefined ? root : (roots.get(index) ?? null);
    };
    return this.#state(this.shape(schema), rootOf, inlined, indexVersions, added);
  }

  /** The version that a migration brings up. `shape`: of the active version. */
  storedNextVersion(
    version: StoredTableVersion,
    migration: StoredMigration,
    shape: TableShape,
    inlined: ReadonlyMap<string, Node>,
  ): NextVersion {
    const base = this.#tree({ table: shape.name }, migration.base, shape.leafShape, inlined);
    return { migration, rows: this.storedVersion(version, inlined), base: layeredState(shape, base, new Map()) };
  }

  /** Returns a next version without stored rows, on the active version as it is in the blocks. */
  newNextVersion(schema: StoredSchema, { shape, tree }: TableState): NextVersion {
    return { migration: undefined, rows: this.emptyTable(schema), base: layeredState(shape, tree, new Map()) };
  }

  /**
   * Every tree that a Block 0 refers to, of every version of every table, and bases. An index follows the tree whose rows
   * it is of.
   */
  trees(block0: Block0): PlacedTree[] {
    const inlined = inlinedNodes(block0);
    const bases = block0.tables.flatMap((stored): PlacedTree[] => {
      const { active, migration } = versionsOf(block0, stored);
      if (migration === undefined) return [];
      const place = { table: stored.name };
      const { leafShape: leaf } = this.shape(active.schema);
      return [{ place, leaf, tree: this.#tree(place, migration.base, leaf, inlined) }];
    });
    const rows = block0.tables.flatMap(({ name: table, versions }) =>
      versions.flatMap(({ schema, root, indexes, editions: indexVersions = [], added = [] }): PlacedTree[] => {
        const { leafShape } = this.shape(schema);
        const isOfSome = (name: string): boolean =>
          schema.indexes.some((index) => index.name === name && index.where !== undefined);
        const isOfMany = (name: string, { indexes: on, functionIndexes = [] }: StoredIndexes = schema): boolean =>
          on.some((index) => index.name === name && (index.each ?? index.text) !== undefined) ||
          functionIndexes.some((index) => index.name === name && index.each === true);
        const place = { table };
        const leaves = { place, leaf: leafShape, tree: this.#tree(place, root, leafShape, inlined) };
        const ofIndexVersions = indexVersions.flatMap(({ index, root: entries, base, built }): PlacedTree[] => {
          const entriesPlace = { table, index };
          return [
            { place, leaf: leafShape, tree: this.#tree(place, base, leafShape, inlined) },
            {
              place: entriesPlace,
              leaf: indexLeafShape,
              tree: this.#tree(entriesPlace, entries, indexLeafShape, inlined),
              isPartial: built !== null,
              isOfMany: isOfMany(index),
            },
          ];
        });
        return [
          ...ofIndexVersions,
          leaves,
          ...indexes.map(({ name, root: indexRoot }): PlacedTree => {
            const indexPlace = { table, index: name };
            const tree = this.#tree(indexPlace, indexRoot, indexLeafShape, inlined);
            return {
              place: indexPlace,
              leaf: indexLeafShape,
              tree,
              isPartial: isOfSome(name),
              isOfMany: isOfMany(name),
            };
          }),
          ...added.map(({ index, root: entries }): PlacedTree => {
            const indexPlace = { table, index: index.name };
            const tree = this.#tree(indexPlace, entries, indexLeafShape, inlined);
            return {
              place: indexPlace,
              leaf: indexLeafShape,
              tree,
              isPartial: true,
              isOfMany: isOfMany(index.name, { indexes: [index] }),
            };
          }),
        ];
      }),
    );
    return [...bases, ...rows];
  }

  /** Returns the changes of a commit to a table as a layer, which is read like the table's rows. */
  layer({ node, staged }: TableChange, { changeShape }: TableShape): Tree {
    checkLeaf(node, changeShape);
    if (staged === undefined) return treeOfNode(node);
    const root = new CachedNode(node.name, node.kind, node.rows);
    return treeOfNode(root, this.reader.staged(staged.runs, stagedName, changeShape));
  }
}

/** The roots that a Block 0 holds itself. Throws `CorruptionError` for a damaged one. */
function inlinedNodes(block0: Block0): Map<string, CachedNode> {
  return new Map(block0.inlined.map(({ name, block }) => [name, openStored(name, fromBase64(block))]));
}

/** The contents of a view, apart from its Block 0. */
interface Shown {
  readonly tables: ReadonlyMap<string, TableState>;
  readonly nextVersions: ReadonlyMap<string, NextVersion>;
  /** Bytes of the rows that pending commits hold of next versions, and of tables that later ones drop. */
  readonly shadowBytes: number;
  readonly drops: TableDrops;
}

export class View {
  readonly block0: Block0;
  /** Last slot whose commit the view shows. */
  readonly tail: number;
  /** Commits after `block0.appliedSeq` up to `tail`, ascending. */
  readonly pending: readonly LoggedCommit[];
  /** Id of the commit at the tail; undefined where nobody knows it, as after a restore. */
  readonly tailId: string | undefined;
  /** The tables by name, each in the active version. */
  readonly tables: ReadonlyMap<string, TableState>;
  /** Members that follow them and are not committed yet. */
  readonly #uncommitted: readonly CommitMember[];
  /** Bytes that the pending commits hold in memory. */
  readonly pendingBytes: number;
  /** Whether they are slow to read from: one has staged runs, or a table has many layers. */
  readonly isSlow: boolean;
  readonly #context: ViewContext;
  readonly #shown: Shown;
  readonly #changes = new Map<string, readonly MemberChange[]>();
  #byTable: ReadonlyMap<string, readonly VersionedChanges[]> | undefined;

  private constructor(
    context: ViewContext,
    block0: Block0,
    tail: number,
    pending: readonly LoggedCommit[],
    shown: Shown,
    uncommitted: readonly CommitMember[] = [],
  ) {
    this.#context = context;
    this.block0 = block0;
    this.tail = tail;
    this.pending = pending;
    this.tailId = pending.at(-1)?.commit.commitId ?? block0.applied.at(-1)?.id;
    this.#shown = shown;
    this.tables = shown.tables;
    this.#uncommitted = uncommitted;
    let bytes = shown.shadowBytes;
    let slow = false;
    for (const table of shown.tables.values()) {
      for (const layer of table.layers) {
        bytes += layer.node?.memoryBytes ?? 0;
        slow ||= (layer.node?.level ?? 0) > 0;
      }
      slow ||= table.layers.length > maxLayers;
    }
    this.pendingBytes = bytes;
    this.isSlow = slow;
  }

  /** Whether rows of pending commits are read from the store: such commits have staged runs. */
  get readsLog(): boolean {
    return this.pending.some(({ commit }) =>
      commit.members.some(({ changes }) => changes.some(({ staged }) => staged !== undefined)),
    );
  }

  /** The state that Block 0 describes. Throws `CorruptionError` if one of its inlined roots is damaged. */
  static ofBlock0(context: ViewContext, block0: Block0): View {
    const inlined = inlinedNodes(block0);
    const tables = new Map<string, TableState>();
    const nextVersions = new Map<string, NextVersion>();
    for (const table of block0.tables) {
      const { active, nextVersion, migration } = versionsOf(block0, table);
      const state = context.storedVersion(active, inlined);
      tables.set(table.name, state);
      if (nextVersion === undefined || migration === undefined) continue;
      nextVersions.set(table.name, context.storedNextVersion(nextVersion, migration, state.shape, inlined));
    }
    const drops = TableDrops.stored(block0.dropped);
    return new View(context, block0, block0.appliedSeq, [], { tables, nextVersions, shadowBytes: 0, drops });
  }

  /** The view with a newer Block 0 that differs in nothing but its bookkeeping (same generation). */
  withBookkeeping(block0: Block0): View {
    const nextVersions = new Map(this.#shown.nextVersions);
    for (const migration of block0.migrations) {
      const nextVersion = nextVersions.get(migration.table);
      if (nextVersion?.migration !== undefined) nextVersions.set(migration.table, { ...nextVersion, migration });
    }
    return new View(this.#context, block0, this.tail, this.pending, { ...this.#shown, nextVersions });
  }

  /** Whether a commit was written on top of this view's tail, as far as both are known. */
  isFollowedBy(commit: Commit): boolean {
    return follows(commit, this.tailId);
  }

  /** The view with the commit of the next slot. */
  withCommit(logged: LoggedCommit): View {
    if (logged.slot !== this.tail + 1) throw new RangeError(`commit ${logged.slot} does not follow ${this.tail}`);
    if (logged.commit.databaseId !== this.block0.databaseId) {
      throw new CorruptionError(commitName(logged.slot), 'The commit belongs to another database');
    }
    const { nodeId, atMs } = logged.commit;
    const commit = { slot: logged.slot, nodeId, atMs };
    const shown = this.#apply(logged.commit.members, commit, (table, layers) => table.withLayers(layers));
    return new View(this.#context, this.block0, logged.slot, [...this.pending, logged], shown);
  }

  /** Returns the view as it would be after a member that is not committed yet: for validating the members after it. */
  withMember(member: CommitMember): View {
    const shown = this.#apply([member], { slot: this.tail + 1, nodeId: 0, atMs: 0 }, (table, layers) =>
      layers.reduce((over, layer) => over.withLooseLayer(layer), table),
    );
    return new View(this.#context, this.block0, this.tail, this.pending, shown, [...this.#uncommitted, member]);
  }

  /** Returns the contents after some members of a commit. `over` puts layers on a table, the newest last. */
  #apply(
    members: readonly CommitMember[],
    commit: DroppingCommit,
    over: (table: TableState, layers: readonly Tree[]) => TableState,
  ): Shown {
    const tables = new Map(this.#shown.tables);
    const nextVersions = new Map(this.#shown.nextVersions);
    let { shadowBytes, drops } = this.#shown;
    const added = new Map<string, Tree[]>();
    for (const member of members) {
      const dropped = dropsOf(member, commit);
      if (dropped.length > 0) drops = drops.with(dropped);
      for (const { table } of dropped) {
        // The commits hold these rows until they are merged.
        for (const layer of tables.get(table)?.layers ?? []) shadowBytes += layer.node?.memoryBytes ?? 0;
        tables.delete(table);
        nextVersions.delete(table);
        added.delete(table);
      }
      for (const [name, changes] of changesByTable(member)) {
        const stored = tables.get(name);
        const { active, shadow } = changes.ofVersion(stored?.shape.version);
        const table = stored ?? this.#context.emptyTable(active.schema);
        const layer = this.#context.layer(active, table.shape);
        const others = added.get(name);
        if (others === undefined) added.set(name, [layer]);
        else others.push(layer);
        tables.set(name, table);
        if (shadow === undefined) continue;
        if (!nextVersions.has(name)) nextVersions.set(name, this.#context.newNextVersion(shadow.schema, table));
        shadowBytes += shadow.node.sizeBytes;
      }
    }
    for (const [name, layers] of added) tables.set(name, over(tables.get(name) as TableState, layers));
    return { tables, nextVersions, shadowBytes, drops };
  }

  /** The tables that were dropped. */
  get drops(): TableDrops {
    return this.#shown.drops;
  }

  /** Whether a pending commit drops a table. Then whatever Block 0 has of it is gone. */
  isDropped(table: string): boolean {
    return (this.drops.of(table)?.slot ?? 0) > this.block0.appliedSeq;
  }

  /** A table in the active version. */
  table(name: string): TableState | undefined {
    return this.#shown.tables.get(name);
  }

  /** The next version; undefined if there is none. */
  nextVersion(name: string): NextVersion | undefined {
    return this.#shown.nextVersions.get(name);
  }

  /**
   * Returns the changes of the pending commits, and of the members after them, to a table, in order, since it was dropped last. Rows of a
   * version that is no longer stored are left out: only rows of the active version still count.
   */
  changesOf(name: string): readonly MemberChange[] {
    let changes = this.#changes.get(name);
    if (changes === undefined) {
      changes = this.#readChanges(name);
      this.#changes.set(name, changes);
    }
    return changes;
  }

  #readChanges(name: string): MemberChange[] {
    const activeVersion = this.table(name)?.shape.version;
    const nextVersionNumber = this.nextVersion(name)?.rows.shape.version;
    this.#byTable ??= this.#membersByTable();
    return (this.#byTable.get(name) ?? []).map((changes) => {
      const change = changes.ofVersion(activeVersion);
      return change.shadow?.schema.version === nextVersionNumber
        ? change
        : { active: change.active, shadow: undefined };
    });
  }

  #membersByTable(): Map<string, VersionedChanges[]> {
    const byTable = new Map<string, VersionedChanges[]>();
    const add = (member: CommitMember): void => {
      for (const { table } of member.drops ?? []) byTable.delete(table);
      for (const [name, changes] of changesByTable(member)) {
        const known = byTable.get(name);
        if (known === undefined) byTable.set(name, [changes]);
        else known.push(changes);
      }
    };
    for (const { commit } of this.pending) commit.members.forEach(add);
    this.#uncommitted.forEach(add);
    return byTable;
  }

  /** The blocks that are in memory. */
  get cache(): BlockCache {
    return this.#context.reader.cache;
  }

  /** A change as a layer over a state of its own version. Throws `CorruptionError` where it is of another one. */
  layer(change: TableChange, shape: TableShape): Tree {
    return this.#context.layer(change, shape);
  }

  /** A table as it is before its first commit. */
  emptyTable(schema: StoredSchema): TableState {
    return this.#context.emptyTable(schema);
  }

  /** Returns the view of another Block 0, with the commits of this view that it has not applied. */
  rebased(block0: Block0): View {
    let view = View.ofBlock0(this.#context, block0);
    for (const logged of this.pending) if (logged.slot === view.tail + 1) view = view.withCommit(logged);
    return view;
  }
}

/** The stored versions of a table. Only this file decides which of them is active. */
export interface StoredVersions {
  /** The version whose trees hold all rows. */
  readonly active: StoredTableVersion;
  /** The next version, which a migration fills; undefined, like `migration`, where none is under way. */
  readonly nextVersion: StoredTableVersion | undefined;
  readonly migration: StoredMigration | undefined;
}

/** While a migration of the table is under way, the version that it comes from is active, until that is retired. */
function versionsOf(block0: Block0, { name, versions }: StoredTable): StoredVersions {
  const migration = block0.migrations.find(({ table }) => table === name);
  const ofVersion = (version: number): StoredTableVersion | undefined => {
    return versions.find(({ schema }) => schema.version === version);
  };
  const active = migration === undefined ? versions[0] : ofVersion(migration.from);
  invariant(active !== undefined, `Table ${name} is stored in no version that could be active`);
  return { active, nextVersion: migration && ofVersion(migration.to), migration };
}

/** The changes of a flush to a table: rows of the active version and, where they were written in a newer version, their shadow rows. */
export interface MemberChange {
  /** In the active version. */
  readonly active: TableChange;
  /** The rows in the version that they were written in, if that is newer than the active one. */
  readonly shadow: TableChange | undefined;
}

/** The changes of one flush in one table: mostly one, two where they are in two versions. */
export class VersionedChanges {
  readonly first: TableChange;
  readonly #changes: TableChange[];

  constructor(first: TableChange) {
    this.first = first;
    this.#changes = [first];
  }

  add(change: TableChange): void {
    this.#changes.push(change);
  }

  /** Undefined if none is of the version. */
  of(version: number): TableChange | undefined {
    return this.#changes.find(({ schema }) => schema.version === version);
  }

  /**
   * Returns the changes for a table with this active version; undefined: the table is new, and the version of its first change is
   * active. Of changes written before an older version was retired, only the rows of the active version count. If there are none of
   * it, the first changes are returned, and the state refuses them.
   */
  ofVersion(activeVersion: number | undefined): MemberChange {
    const changes = this.#changes;
    const active = (activeVersion === undefined ? undefined : this.of(activeVersion)) ?? this.first;
    return { active, shadow: changes.find(({ schema }) => schema.version > active.schema.version) };
  }
}

/** A flush's changes by table. */
export function changesByTable({ changes }: CommitMember): Map<string, VersionedChanges> {
  const byTable = new Map<string, VersionedChanges>();
  for (const change of changes) {
    const { name } = change.schema;
    const known = byTable.get(name);
    if (known === undefined) byTable.set(name, new VersionedChanges(change));
    else known.add(change);
  }
  return byTable;
}

/** Whether a view has a table whose rows expire. */
export function hasExpiry(view: View): boolean {
  for (const [, { shape }] of view.tables) if (shape.expiry !== undefined) return true;
  return false;
}
