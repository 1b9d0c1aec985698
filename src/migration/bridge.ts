/**
 * What an instance sees of a table whose active version is another one than it has registered. A row is the
 * stored row of its own version where that goes with the row of the active version as it is now; else what comes of bringing it in
 * line; else, where none is stored, what the row of the active version becomes. The active version says which rows there are.
 *
 * States are made once for each state of the active version, step by step: what a commit changes is laid over the state before it.
 */
import { isPromise } from '../base/brands.ts';
import { compareBytes, keyAfter } from '../base/bytes.ts';
import { InvalidSchemaError, MigrationPendingError } from '../base/errors.ts';
import { checkedIndexes } from '../catalog/checked-indexes.ts';
import { refuseOtherCode } from '../catalog/migration-code.ts';
import { redefined } from '../catalog/registry.ts';
import type { Registry } from '../catalog/registry.ts';
import { blockName } from '../format/object-names.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { isSameCondition } from '../schema/index-condition.ts';
import type { MigrateFunction } from '../schema/schema.ts';
import type { AddedIndex, TableShape } from '../schema/table-shape.ts';
import { BlockGone } from '../tree/block-source.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { SplitTree } from '../tree/split-tree.ts';
import { isSameTree, treeOfNode } from '../tree/tree.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import { NextVersionRows } from '../view/next-version-rows.ts';
import { TableState } from '../view/table-state.ts';
import type { MemberChange, NextVersion, View } from '../view/view.ts';
import type { FieldChangeLog } from './field-changes.ts';
import { RowNotMigrated, RowTranslation, versionConflict } from './row-translation.ts';
import { MadeEntries, TranslatedTree } from './translated-tree.ts';
import { diffTrees } from './tree-diff.ts';

/** The active version of a table, where it is another one than the one that is written. */
interface ActiveVersion {
  readonly state: TableState;
  readonly translation: RowTranslation;
  /** The schema of the version that is written, with what its rows are made with. */
  readonly schema: StoredSchema;
}

/** A table in the registered version, and what it takes to write to it. */
export interface BridgedTable {
  /** In the registered version. */
  readonly state: TableState;
  /** Whether it has all indexes of that version, with entries for all rows. */
  readonly isWhole: boolean;
  /** Whether no other version of the table is stored. */
  readonly isSole: boolean;
  /** What is to be written beside it; undefined where the registered version is active. */
  readonly active: ActiveVersion | undefined;
  /** Unique indexes that are being added to the active version, and that what is written must be checked for. */
  readonly checked: readonly AddedIndex[];
}

/** Who holds the present view. */
export interface ViewHost {
  readonly view: View;
  /** Catches up with everything that was committed. */
  refresh(): Promise<void>;
}

/** A state after some changes that are not merged yet. */
interface Step {
  readonly view: View;
  readonly changes: readonly MemberChange[];
  /** What is stored of the version; undefined where nothing is. */
  readonly stored: NextVersionRows | undefined;
  readonly state: TableState;
}

/** What lies between the rows of the active version and a state, made of trees that stay as they are. */
interface KnownDifference {
  readonly trees: readonly Tree[];
  readonly made: MadeRows;
  readonly translation: RowTranslation;
  /** Undefined: nothing. */
  readonly layer: Tree | undefined;
}

/** What a translation was made with. */
interface KnownTranslation {
  readonly from: string;
  readonly forward: MigrateFunction | undefined;
  readonly back: MigrateFunction | undefined;
  readonly translation: RowTranslation;
}

/** Steps that are remembered for each table: the newest views, and those of what is being committed. */
const maxSteps = 6;
/** States that are overtaken so often in a row are given up. */
const maxAttempts = 8;
/** Up to so many stored rows are looked up one by one to find those that are out of line. */
const fewRows = 256;

export class Bridge {
  readonly #registry: Registry;
  readonly #fieldChangeLog: FieldChangeLog;
  readonly #translations = new Map<string, KnownTranslation>();
  readonly #steps = new Map<string, Step[]>();
  readonly #differences = new Map<string, KnownDifference>();
  /** By the state of the active version that they go with. */
  readonly #states = new WeakMap<TableState, TableState>();
  readonly #making = new WeakMap<TableState, { readonly shape: TableShape; readonly state: Promise<TableState> }>();
  /** The generation of the active version that a state was made of. */
  readonly #origins = new WeakMap<TableState, number>();

  constructor(registry: Registry, fieldChangeLog: FieldChangeLog) {
    this.#registry = registry;
    this.#fieldChangeLog = fieldChangeLog;
  }

  /**
   * A table of a view in the registered version. Throws `SchemaNotFoundError`, `InvalidSchemaError` where the registered
   * version cannot be had, and `MigrationPendingError` where it cannot be had yet.
   */
  stateOf(view: View, table: string): TableState | Promise<TableState> {
    const shape = this.#registry.requireShape(table);
    const active = view.table(table);
    if (active === undefined) return view.emptyTable(shape.schema);
    if (active.shape.isSame(shape)) return active;
    refuseOtherCode(view, shape, this.#registry);
    const known = this.#states.get(active);
    return known?.shape === shape ? known : this.#stateOfNextVersion(view, active, shape);
  }

  /**
   * A table of the present view. What a state is made of may be collected while it is made: then it is made of a newer view.
   */
  presentState(host: ViewHost, table: string): TableState | Promise<TableState> {
    const state = this.stateOf(host.view, table);
    return isPromise(state) ? this.#presentState(host, table, state) : state;
  }

  async #presentState(host: ViewHost, table: string, first: Promise<TableState>): Promise<TableState> {
    let making: TableState | Promise<TableState> = first;
    for (let attempt = 1; ; attempt++) {
      const { generation } = host.view.block0;
      try {
        return await making;
      } catch (error) {
        if (!(error instanceof BlockGone) || attempt >= maxAttempts) throw error;
        await host.refresh();
        if (host.view.block0.generation === generation) throw error;
        making = this.stateOf(host.view, table);
      }
    }
  }

  /** Makes the state of a table together with the parts that writes to it need. */
  async writableTable(view: View, table: string): Promise<BridgedTable> {
    const state = await this.stateOf(view, table);
    const active = view.table(table);
    const checked = active === undefined ? [] : await checkedIndexes(view, active);
    if (active === undefined || active.shape.version === state.shape.version) {
      return { state, isWhole: true, isSole: view.nextVersion(table) === undefined, active: undefined, checked };
    }
    const isWhole = view.nextVersion(table)?.migration?.built === null;
    const schema = this.#registry.codedSchema(this.#registry.requireShape(table), active.shape.version);
    const translation = this.translation(active.shape, state.shape);
    return { state, isWhole, isSole: false, active: { state: active, translation, schema }, checked };
  }

  /** Whether a view is past the blocks that a state shows. */
  isOvertaken(state: TableState, view: View): boolean {
    const origin = this.#origins.get(state);
    if (origin !== undefined) return view.block0.generation > origin;
    const present = view.table(state.shape.name);
    if (present?.tree.ref !== state.tree.ref) return true;
    // Also where the tree was empty, and is again: staged rows of a commit go with the log once that is merged.
    return state.layers.some((layer) => layer.node?.level !== 0 && !present.layers.includes(layer));
  }

  /** How rows of one version become rows of another and back. */
  translation(from: TableShape, to: TableShape): RowTranslation {
    const forward = this.#registry.migrateFunction(to.name, to.version);
    const back = this.#registry.migrateFunction(from.name, from.version);
    const key = `${from.version} ${to.version} ${to.name}`;
    const known = this.#translations.get(key);
    // A version may have been registered since.
    if (known?.from === from.canonical && known.forward === forward && known.back === back) return known.translation;
    const translation = new RowTranslation(from, to, forward, back);
    this.#translations.set(key, { from: from.canonical, forward, back, translation });
    return translation;
  }

  #stateOfNextVersion(view: View, active: TableState, shape: TableShape): TableState | Promise<TableState> {
    const nextVersion = view.nextVersion(shape.name);
    checkVersions(shape, active, nextVersion);
    this.#fieldChangeLog.tell(active.shape, shape);
    const known = this.#making.get(active);
    if (known?.shape === shape) return known.state;
    const state = this.#make(view, active, shape).finally(() => this.#making.delete(active));
    this.#making.set(active, { shape, state });
    return state;
  }

  async #make(view: View, active: TableState, shape: TableShape): Promise<TableState> {
    const { name } = shape;
    const { generation, databaseId } = view.block0;
    const changes = view.changesOf(name);
    const translation = this.translation(active.shape, shape);
    const isBefore = (step: Step): boolean => {
      const { block0 } = step.view;
      if (block0.generation !== generation || block0.databaseId !== databaseId) return false;
      const last = step.changes.length - 1;
      return step.state.shape === shape && (last < 0 || step.changes[last]?.active === changes[last]?.active);
    };
    const steps = this.#steps.get(name) ?? [];
    const before = steps.filter(isBefore).toSorted((a, b) => b.changes.length - a.changes.length)[0];
    let step = before ?? (await this.#firstStep(view, active, translation));
    for (const change of changes.slice(step.changes.length)) step = await nextStep(step, change, view, translation);
    this.#remember(name, step);
    const { state } = step;
    const made = new TableState(state.shape, state.tree, state.indexes, state.layers);
    this.#states.set(active, made);
    this.#origins.set(made, generation);
    return made;
  }

  #remember(name: string, step: Step): void {
    const steps = this.#steps.get(name) ?? [];
    this.#steps.set(name, [step, ...steps.filter((other) => other !== step)].slice(0, maxSteps));
  }

  /** What the blocks of a view show, without its pending commits. */
  async #firstStep(view: View, { shape: from, tree }: TableState, translation: RowTranslation): Promise<Step> {
    const { to } = translation;
    const { name } = to;
    const nextVersion = view.nextVersion(name);
    const made = madeRows(nextVersion);
    const nameOf = (ref: { birth: number; id: string }): string => blockName({ table: name }, ref);
    const options = { translation, cache: view.cache, leaf: to.leafShape, nameOf };
    const ownTree = nextVersion?.rows.tree;
    const below = ownTree?.ref ? [ownTree] : [];
    let state: TableState;
    if (nextVersion !== undefined && made === 'all')
      state = new TableState(to, nextVersion.rows.tree, nextVersion.rows.indexes);
    else {
      const indexes = commonIndexes(translation, view.table(name));
      const translated = new TranslatedTree(tree, options);
      if (typeof made === 'string' || ownTree === undefined) state = new TableState(to, translated, indexes, below);
      else {
        // Indexes know the rows that were made: they lie beside the others, not over them.
        const ahead = await rowsFrom(ownTree, made);
        state = new TableState(to, new SplitTree(ownTree, translated, made), indexes, ahead);
      }
    }
    const active = view.table(name);
    const first = { view, changes: [], stored: nextVersion && active && NextVersionRows.stored(nextVersion, active) };
    if (nextVersion === undefined || (below.length === 0 && made === 'none')) return { ...first, state };
    const layer = await this.#difference(nextVersion, { shape: from, tree }, made, translation);
    if (layer !== undefined) state = new TableState(to, state.tree, state.indexes, [layer, ...state.layers]);
    return { ...first, state };
  }

  /** The rows that are not as they are stored, since the active version has changed. */
  async #difference(
    { rows, base }: NextVersion,
    { shape, tree }: Pick<TableState, 'shape' | 'tree'>,
    isMade: MadeRows,
    translation: RowTranslation,
  ): Promise<Tree | undefined> {
    const trees = [rows.tree, base.tree, tree];
    const known = this.#differences.get(shape.name);
    const isSame = known?.trees.every((other, i) => isSameTree(other, trees[i])) === true;
    if (isSame && isSameMade(known.made, isMade) && known.translation === translation) return known.layer;
    const made = new MadeEntries(translation, translation.to.changeShape);
    const add = async (key: Uint8Array, before: RowRef | undefined, after: RowRef | undefined): Promise<void> => {
      const own = ownKey(translation, key);
      if (own === undefined) {
        // A scan of the table must know: its place among the others does not matter.
        if (isMade === 'all' && after !== undefined) made.addTranslated(key, after);
        return;
      }
      const stored = await rows.tree.lookup(own);
      if (stored === undefined) {
        if (after !== undefined && hasMade(isMade, key)) made.addTranslated(own, after);
      } else if (after === undefined) made.addDeleted(own);
      else made.addInLine(own, stored, before, after);
    };
    if (isMade === 'none' && translation.keepsKeys && rows.tree.count <= fewRows) {
      const cursor = new TreeCursor(rows.tree);
      while (await cursor.next()) {
        for (let i = cursor.from; i < cursor.to; i++) {
          const key = cursor.node.key(i);
          const [before, after] = [await base.tree.lookup(key), await tree.lookup(key)];
          if (before === undefined || before.source !== after?.source || before.base !== after.base) {
            await add(key, before, after);
          }
        }
      }
    } else
      for await (const { key, before, after } of diffTrees(base.tree, tree, shape.layout))
        await add(key, before, after);
    const layer = layerOf(made);
    this.#differences.set(shape.name, { trees, made: isMade, translation, layer });
    return layer;
  }
}

/** Throws unless the registered version can be had beside the active version. */
function checkVersions(shape: TableShape, { shape: active }: TableState, nextVersion: NextVersion | undefined): void {
  const { name, version } = shape;
  if (active.version === version) throw redefined(shape, 'is stored', active);
  if (active.version > version) {
    throw new InvalidSchemaError(
      name,
      `Table '${name}' has gone from version ${version} to version ${active.version}, and version ${version} is retired, which ` +
        `is registered here. Deploy the version of the application that registers version ${active.version} of the table.`,
    );
  }
  const other = nextVersion?.rows.shape;
  if (other !== undefined && other.version !== version) {
    throw new InvalidSchemaError(
      name,
      `Table '${name}' is being brought from version ${active.version} to version ${other.version}, and version ${version} ` +
        'is registered. Finish that migration or cancel it first: there can be two versions at a time.',
    );
  }
  if (other !== undefined && other.canonical !== shape.canonical) throw redefined(shape, 'is stored', other);
  const conflict = versionConflict(active, shape);
  if (conflict !== undefined) throw new InvalidSchemaError(name, conflict);
  if (active.hasKeysOf(shape) || nextVersion?.migration?.built === null) return;
  const [done, total] = [nextVersion?.rows.tree.count ?? 0, nextVersion?.base.tree.count];
  throw new MigrationPendingError(
    name,
    `Version ${version} of table '${name}' has another type of primary key than version ${active.version}, and can be used ` +
      `once all of its rows are made${total === undefined ? '' : ` (${done} of ${total})`}: call setTargetSchemaVersion().`,
  );
}

/** The indexes of the active version that serve the other version as well, while that has none of its own. */
function commonIndexes(translation: RowTranslation, active: TableState | undefined): Map<string, Tree> {
  const indexes = new Map<string, Tree>();
  if (active === undefined) return indexes;
  for (const { name, fields, where } of translation.to.indexes) {
    const index = active.shape.indexes.find((candidate) => candidate.name === name);
    const own = index?.fields;
    const tree = active.indexes.get(name);
    const isSame =
      own?.length === fields.length &&
      own.every((field, i) => field.name === fields[i]?.name) &&
      isSameCondition(index?.where, where) &&
      [...fields, ...(where?.tests ?? []).map(({ field }) => field)].every((field) => translation.keeps(field));
    if (isSame && tree !== undefined) indexes.set(name, tree);
  }
  return indexes;
}

/** The key in the next version; undefined if it cannot be one. */
function ownKey(translation: RowTranslation, key: Uint8Array): Uint8Array | undefined {
  try {
    return translation.keyForward(key);
  } catch (error) {
    if (error instanceof RowNotMigrated) return undefined;
    throw error;
  }
}

/** Name of nodes that only memory holds. */
const memoryName = 'memory/migrated';

function layerOf(made: MadeEntries): Tree | undefined {
  return made.count === 0 ? undefined : treeOfNode(made.node(memoryName));
}

/** What is stored of a version that has come up with a change, after those before it. */
async function storedBefore(
  nextVersion: NextVersion,
  { changes }: Step,
  view: View,
): Promise<NextVersionRows | undefined> {
  const active = view.table(nextVersion.base.shape.name);
  let stored = active && NextVersionRows.stored(nextVersion, active);
  for (const change of changes) stored = await stored?.with(change, (...given) => view.layer(...given));
  return stored;
}

/** The step after a change. */
async function nextStep(before: Step, change: MemberChange, view: View, translation: RowTranslation): Promise<Step> {
  const { to, from } = translation;
  const nextVersion = view.nextVersion(to.name);
  const stored = before.stored ?? (nextVersion && (await storedBefore(nextVersion, before, view)));
  const after = await stored?.with(change, (layered, shape) => view.layer(layered, shape));
  const step = (layer: Tree | undefined): Step => {
    const state = layer === undefined ? before.state : before.state.withLayer(layer);
    return { view, changes: [...before.changes, change], stored: after, state };
  };
  if (change.shadow !== undefined) return step(view.layer(change.shadow, to));
  const active = view.layer(change.active, from);
  if ((after === undefined || after.isEmpty) && change.active.staged !== undefined && translation.keepsKeys) {
    const options = { translation, cache: view.cache, leaf: to.changeShape, nameOf: undefined };
    return step(new TranslatedTree(active, options));
  }
  const made = new MadeEntries(translation, to.changeShape);
  for await (const { key, row, gone } of rowsOf(active)) {
    const own = ownKey(translation, key);
    const storedRow = gone || own === undefined ? undefined : await after?.rows.lookup(own);
    if (gone) made.addDeleted(own ?? key);
    else if (own === undefined || storedRow === undefined) made.addTranslated(own ?? key, row);
    else made.addInLine(own, storedRow, await after?.base.lookup(key), row);
  }
  return step(layerOf(made));
}

async function* rowsOf(layer: Tree): AsyncGenerator<{ key: Uint8Array; row: RowRef; gone: boolean }> {
  const cursor = new TreeCursor(layer);
  while (await cursor.next()) {
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) {
      yield { key: node.key(i), row: { source: node, base: node.rowBase(i) }, gone: isDeleted(node, i) };
    }
  }
}

// How far the rows of the next version were made. They are made in the order of the active version's keys.

/** All rows, none in order, or those whose keys are under a bound. */
type MadeRows = 'all' | 'none' | Uint8Array;

/** What Block 0 says of it. */
function madeRows(nextVersion: NextVersion | undefined): MadeRows {
  const built = nextVersion?.migration?.built;
  if (built === null) return 'all';
  return built ? keyAfter(Buffer.from(built, 'base64')) : 'none';
}

function hasMade(made: MadeRows, key: Uint8Array): boolean {
  return typeof made === 'string' ? made === 'all' : compareBytes(key, made) < 0;
}

function isSameMade(a: MadeRows, b: MadeRows): boolean {
  return typeof a === 'string' || typeof b === 'string' ? a === b : compareBytes(a, b) === 0;
}

/** The part of a tree from a key on, if there is any. */
async function rowsFrom(tree: Tree, from: Uint8Array): Promise<Tree[]> {
  return (await new TreeCursor(tree, { from }).next()) ? [new SplitTree(undefined, tree, from)] : [];
}
