/**
 * The bridge shows an instance a table in the version that it has registered, while another version is active. The active
 * version decides which rows exist. A row is the stored row of the registered version if that is in line with the active row; a
 * stored row that is out of line is brought in line in memory; where no row is stored, the active row is translated.
 *
 * A state is made once for each state of the active version, step by step: the changes of each commit become a layer over the
 * state before it.
 */
import { isPromise } from '../base/brands.ts';
import { compareBytes, fromBase64, keyAfter } from '../base/bytes.ts';
import { InvalidSchemaError, MigrationPendingError } from '../base/errors.ts';
import { checkedIndexes } from '../catalog/checked-indexes.ts';
import { refuseOtherCode } from '../catalog/migration-code.ts';
import { redefined } from '../catalog/registry.ts';
import type { Registry } from '../catalog/registry.ts';
import { blockName } from '../format/object-names.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { isSameCondition } from '../schema/index-condition.ts';
import type { MigrateFunction } from '../schema/schema.ts';
import { haveSameKeys, isSameShape } from '../schema/same-shape.ts';
import type { AddedIndex, TableShape } from '../schema/table-shape.ts';
import { BlockGone } from '../tree/block-source.ts';
import { readAll, TreeCursor } from '../tree/cursor.ts';
import { TwoPartTree } from '../tree/two-part-tree.ts';
import { isSameTree, treeOfNode } from '../tree/tree.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import { NextVersionRows } from '../view/next-version-rows.ts';
import { layeredState } from '../view/layered-state.ts';
import { TableState } from '../view/table-state.ts';
import type { MemberChange, NextVersion, View } from '../view/view.ts';
import type { FieldChangeLog } from './field-changes.ts';
import { RowNotMigrated, RowTranslation, versionConflict } from './row-translation.ts';
import { MadeEntries, TranslatedTree } from './translated-tree.ts';
import { diffTrees } from './tree-diff.ts';

/** The active version of a table, if rows are written in another version. */
interface ActiveVersion {
  readonly state: TableState;
  readonly translation: RowTranslation;
  /** The schema of the version that is written, with the `code` that makes its rows. */
  readonly schema: StoredSchema;
}

/** A table in the registered version, with the parts that writes to it need. */
export interface BridgedTable {
  /** The state of the table in the registered version. */
  readonly state: TableState;
  /** Whether the state has all indexes of that version, with entries for all rows. */
  readonly isWhole: boolean;
  /** Whether no other version of the table is stored. */
  readonly isSole: boolean;
  /** The active version, which must be written as well; undefined if the registered version is active. */
  readonly active: ActiveVersion | undefined;
  /** Unique indexes that are being added to the active version, for which writes must be checked. */
  readonly checked: readonly AddedIndex[];
}

/** The holder of the present view. */
export interface ViewHost {
  readonly view: View;
  /** Catches up with all commits. */
  refresh(): Promise<void>;
}

/** A state after some changes that are not merged yet. */
interface Step {
  readonly view: View;
  /** The last drop of the table: its slot. */
  readonly droppedAt: number | undefined;
  readonly changes: readonly MemberChange[];
  /** The stored rows of the version; undefined if there are none. */
  readonly stored: NextVersionRows | undefined;
  readonly state: TableState;
}

/** The rows of a state that are out of line, with the trees and the translation that they were computed from. */
interface KnownDifference {
  readonly trees: readonly Tree[];
  readonly made: MadeRows;
  readonly translation: RowTranslation;
  /** Undefined if all rows are in line. */
  readonly layer: Tree | undefined;
}

/** A translation, with the schema and the functions that it was made with. */
interface KnownTranslation {
  readonly from: string;
  readonly forward: MigrateFunction | undefined;
  readonly back: MigrateFunction | undefined;
  readonly translation: RowTranslation;
}

/** Steps kept for each table: the newest views, and the views of flushes that are being committed. */
const maxSteps = 6;
/** Attempts to make a state whose blocks are collected meanwhile. */
const maxAttempts = 8;
/** Up to this number of stored rows, each one is looked up to find those that are out of line. */
const fewRows = 256;

export class Bridge {
  readonly #registry: Registry;
  readonly #fieldChangeLog: FieldChangeLog;
  readonly #translations = new Map<string, KnownTranslation>();
  readonly #steps = new Map<string, Step[]>();
  readonly #differences = new Map<string, KnownDifference>();
  /** The states made so far, by the state of the active version that each belongs to. */
  readonly #states = new WeakMap<TableState, TableState>();
  readonly #making = new WeakMap<TableState, { readonly shape: TableShape; readonly state: Promise<TableState> }>();
  /** The generation of the active version that each state was made from. */
  readonly #origins = new WeakMap<TableState, number>();

  constructor(registry: Registry, fieldChangeLog: FieldChangeLog) {
    this.#registry = registry;
    this.#fieldChangeLog = fieldChangeLog;
  }

  /**
   * Returns a table of a view in the registered version. Throws `SchemaNotFoundError`, `InvalidSchemaError` if the registered
   * version is not available, and `MigrationPendingError` if it is not available yet.
   */
  stateOf(view: View, table: string): TableState | Promise<TableState> {
    const known = this.stateInMemory(view, table);
    if (known !== undefined) return known;
    return this.#stateOfNextVersion(view, view.table(table) as TableState, this.#registry.requireShape(table));
  }

  /** As {@link stateOf}, but undefined if the state must be made first. */
  stateInMemory(view: View, table: string): TableState | undefined {
    const shape = this.#registry.requireShape(table);
    const active = view.table(table);
    if (active === undefined) return view.emptyTable(shape.schema);
    if (isSameShape(active.shape, shape)) return active;
    // The table was created again, in other versions that have the same numbers.
    this.#registry.dropped.refuseAnew(view, shape);
    refuseOtherCode(view, shape, this.#registry);
    const known = this.#states.get(active);
    return known?.shape === shape ? known : undefined;
  }

  /** Returns a table of the present view. If blocks are collected while the state is made, it is made from a newer view. */
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

  /** Whether the blocks of a state may have been collected, because the view has moved on. */
  isOutdated(state: TableState, view: View): boolean {
    const origin = this.#origins.get(state);
    if (origin !== undefined) return view.block0.generation > origin;
    const present = view.table(state.shape.name);
    if (present?.tree.ref !== state.tree.ref) return true;
    // The roots of two empty trees are equal, so the layers are compared too: staged rows go with the log once their commit is
    // merged.
    return state.layers.some((layer) => layer.node?.level !== 0 && !present.layers.includes(layer));
  }

  /** Returns the translation of rows of one version into rows of another and back. */
  translation(from: TableShape, to: TableShape): RowTranslation {
    const forward = this.#registry.migrateFunction(to.name, to.version);
    const back = this.#registry.migrateFunction(from.name, from.version);
    const key = `${from.version} ${to.version} ${to.name}`;
    const known = this.#translations.get(key);
    // A version may have been registered since the translation was made.
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
    const droppedAt = view.drops.of(name)?.slot;
    const isBefore = (step: Step): boolean => {
      const { block0 } = step.view;
      if (block0.generation !== generation || block0.databaseId !== databaseId) return false;
      if (step.droppedAt !== droppedAt) return false;
      const last = step.changes.length - 1;
      return step.state.shape === shape && (last < 0 || step.changes[last]?.active === changes[last]?.active);
    };
    const steps = this.#steps.get(name) ?? [];
    const before = steps.filter(isBefore).toSorted((a, b) => b.changes.length - a.changes.length)[0];
    let step = before ?? (await this.#firstStep(view, active, translation));
    for (const change of changes.slice(step.changes.length)) step = await nextStep(step, change, view, translation);
    this.#remember(name, step);
    const { state } = step;
    const { shape: to, tree, indexes, layers, indexVersions, blanks, added, layering } = state;
    const made = new TableState(to, tree, indexes, layers, indexVersions, blanks, added, layering);
    this.#states.set(active, made);
    this.#origins.set(made, generation);
    return made;
  }

  #remember(name: string, step: Step): void {
    const steps = this.#steps.get(name) ?? [];
    this.#steps.set(name, [step, ...steps.filter((other) => other !== step)].slice(0, maxSteps));
  }

  /** Makes the state that the blocks of a view show, without its pending commits. */
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
      state = layeredState(to, nextVersion.rows.tree, nextVersion.rows.indexes);
    else {
      const indexes = commonIndexes(translation, view.table(name));
      const translated = new TranslatedTree(tree, options);
      if (typeof made === 'string' || ownTree === undefined) state = layeredState(to, translated, indexes, below);
      else {
        // Indexes have entries for the rows that were made, so those rows are split off and do not form a layer over the
        // others.
        const ahead = await rowsFrom(ownTree, made);
        state = layeredState(to, new TwoPartTree(ownTree, translated, made), indexes, ahead);
      }
    }
    const active = view.table(name);
    const stored = nextVersion && active && NextVersionRows.stored(nextVersion, active);
    const first = { view, droppedAt: view.drops.of(name)?.slot, changes: [], stored };
    if (nextVersion === undefined || (below.length === 0 && made === 'none')) return { ...first, state };
    const layer = await this.#difference(nextVersion, { shape: from, tree }, made, translation);
    if (layer !== undefined) state = layeredState(to, state.tree, state.indexes, [layer, ...state.layers]);
    return { ...first, state };
  }

  /** Returns a layer of the rows whose stored row is out of line, because the active version has changed since. */
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
        // A scan of the table must report the row; its position among the others does not matter.
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
      const cursor = readAll(rows.tree);
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

/** Throws unless the registered version can be used while the other version is active. */
function checkVersions(shape: TableShape, { shape: active }: TableState, nextVersion: NextVersion | undefined): void {
  const { name, version } = shape;
  if (active.version === version) throw redefined(shape, 'is stored', active);
  if (active.version > version) {
    throw new InvalidSchemaError(
      name,
      `Table '${name}' has gone from version ${version} to version ${active.version}, and version ${version}, which is ` +
        `registered here, is retired. Deploy the version of the application that registers version ${active.version} of the table.`,
    );
  }
  const other = nextVersion?.rows.shape;
  if (other !== undefined && other.version !== version) {
    throw new InvalidSchemaError(
      name,
      `Table '${name}' is being migrated from version ${active.version} to version ${other.version}, but version ${version} ` +
        'is registered here. Finish or cancel that migration first: a table can have at most two versions at a time.',
    );
  }
  if (other !== undefined && other.canonical !== shape.canonical) throw redefined(shape, 'is stored', other);
  const conflict = versionConflict(active, shape);
  if (conflict !== undefined) throw new InvalidSchemaError(name, conflict);
  if (haveSameKeys(active, shape) || nextVersion?.migration?.built === null) return;
  const [done, total] = [nextVersion?.rows.tree.count ?? 0, nextVersion?.base.tree.count];
  throw new MigrationPendingError(
    name,
    `Version ${version} of table '${name}' has another type of primary key than version ${active.version}, and can be used ` +
      `once all rows are migrated to it${total === undefined ? '' : ` (${done} of ${total})`}: call setTargetSchemaVersion().`,
  );
}

/** Returns the indexes of the active version that also fit the other version, for as long as that has no indexes of its own. */
function commonIndexes(translation: RowTranslation, active: TableState | undefined): Map<string, Tree> {
  const indexes = new Map<string, Tree>();
  if (active === undefined) return indexes;
  for (const { name, fields, where, included, each, text } of translation.to.indexes) {
    const index = active.shape.indexes.find((candidate) => candidate.name === name);
    const tree = active.indexes.get(name);
    if (index === undefined || tree === undefined) continue;
    const held = included?.fields ?? [];
    const read = [...(text?.fields ?? fields), ...held];
    for (const { field } of where?.tests ?? []) read.push(field);
    const isSame =
      (index.each === undefined) === (each === undefined) &&
      index.text?.language === text?.language &&
      areNamedAlike(index.text?.fields ?? [], text?.fields ?? []) &&
      areNamedAlike(index.fields, fields) &&
      areNamedAlike(index.included?.fields ?? [], held) &&
      isSameCondition(index.where, where) &&
      read.every((field) => translation.keeps(fieldOf(field)));
    if (isSame) indexes.set(name, tree);
  }
  return indexes;
}

function areNamedAlike(fields: readonly LayoutField[], others: readonly LayoutField[]): boolean {
  return (
    fields.length === others.length &&
    fields.every((field, i) => {
      const { name, path, typeId } = field;
      const other = others[i];
      if (name !== other?.name || isOfPath(field) !== isOfPath(other)) return false;
      // Other fields of one name are compared by the translation.
      return path === undefined || typeId === other.typeId;
    })
  );
}

/** Whether what entries have of a field is a value inside of it, or more of them. */
function isOfPath({ path, elementsOf, jsonOf }: LayoutField): boolean {
  return (path ?? elementsOf?.path ?? jsonOf?.path) !== undefined;
}

/** Returns the field of rows from which what entries have of a field is made. */
function fieldOf(field: LayoutField): LayoutField {
  const of = field.elementsOf ?? field.jsonOf ?? field;
  return of.path?.of ?? of;
}

/** Returns the key in the next version; undefined if the key does not fit there. */
function ownKey(translation: RowTranslation, key: Uint8Array): Uint8Array | undefined {
  try {
    return translation.keyForward(key);
  } catch (error) {
    if (error instanceof RowNotMigrated) return undefined;
    throw error;
  }
}

/** Name of nodes that exist in memory only. */
const memoryName = 'memory/migrated';

function layerOf(made: MadeEntries): Tree | undefined {
  return made.count === 0 ? undefined : treeOfNode(made.node(memoryName));
}

/** Returns the stored rows of the next version before a change, in a state whose earlier changes had no next version yet. */
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

/** Returns the step after a change. */
async function nextStep(before: Step, change: MemberChange, view: View, translation: RowTranslation): Promise<Step> {
  const { to, from } = translation;
  const nextVersion = view.nextVersion(to.name);
  const stored = before.stored ?? (nextVersion && (await storedBefore(nextVersion, before, view)));
  const after = await stored?.with(change, (layered, shape) => view.layer(layered, shape));
  const step = (layer: Tree | undefined): Step => {
    const state = layer === undefined ? before.state : before.state.withLayer(layer);
    return { ...before, view, changes: [...before.changes, change], stored: after, state };
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
  const cursor = readAll(layer);
  while (await cursor.next()) {
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) {
      yield { key: node.key(i), row: { source: node, base: node.rowBase(i) }, gone: isDeleted(node, i) };
    }
  }
}

/**
 * The rows of the next version that a migration has made so far: all, none, or those with keys below a bound. A migration makes
 * rows in the order of the active version's keys.
 */
type MadeRows = 'all' | 'none' | Uint8Array;

/** Returns the rows made so far, as Block 0 has them. */
function madeRows(nextVersion: NextVersion | undefined): MadeRows {
  const built = nextVersion?.migration?.built;
  if (built === null) return 'all';
  return built ? keyAfter(fromBase64(built)) : 'none';
}

function hasMade(made: MadeRows, key: Uint8Array): boolean {
  return typeof made === 'string' ? made === 'all' : compareBytes(key, made) < 0;
}

function isSameMade(a: MadeRows, b: MadeRows): boolean {
  return typeof a === 'string' || typeof b === 'string' ? a === b : compareBytes(a, b) === 0;
}

/** Returns the part of a tree from a key on; no tree if that part is empty. */
async function rowsFrom(tree: Tree, from: Uint8Array): Promise<Tree[]> {
  return (await new TreeCursor(tree, { from }).next()) ? [new TwoPartTree(undefined, tree, from)] : [];
}
