/**
 * Checks a whole database. Everything is read from the store, past the cache that queries use. Trees must be sorted and
 * balanced with right counts; every row must decode and stand under its own key; every index must hold exactly the entries
 * that the rows imply; pending commits must be whole. A deep check also reads the blobs, the states that are kept, and the
 * list of all objects.
 *
 * Invariant: every finding is damage in a state that is kept. If garbage may have been collected past the checked state, which
 * looks like damage, the check is repeated on the newest state, which is pinned if possible.
 */
import type { Environment } from '../../base/env.ts';
import { ContentionError, ReadOnlyError, SnapshotExpiredError, StorageError, isUnreadable } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import { BlobStore } from '../../blob/blob-store.ts';
import { blobsSchema } from '../../blob/blob-tables.ts';
import { readCatalogue, Block0Reader } from '../../block0/block0-reader.ts';
import type { Block0Register } from '../../block0/block0-register.ts';
import { isRetained } from '../../engine/snapshot-pins.ts';
import type { Block0 } from '../../format/block0.ts';
import { catalogueName } from '../../format/catalogue.ts';
import type { CatalogueRef } from '../../format/catalogue.ts';
import { commitName, parseCommitName, parseStagedName } from '../../format/object-names.ts';
import type { Node } from '../../format/node.ts';
import { haveSameKeys } from '../../schema/same-shape.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import type { Finding, UnreadableNode } from '../../tree/check.ts';
import type { Tree } from '../../tree/tree.ts';
import { NextVersionRows } from '../../view/next-version-rows.ts';
import type { TableMergeContext } from '../../merge/growing-tree.ts';
import { View } from '../../view/view.ts';
import type { PlacedTree, NextVersion } from '../../view/view.ts';
import type { HeldSnapshot } from '../snapshots/held-snapshot.ts';
import { BlobCheck } from './blob-check.ts';
import { CheckRun } from './check-run.ts';
import type { Subject } from './check-run.ts';
import { checkLog } from './log-check.ts';
import type { LogDamage } from './log-check.ts';
import { historyStates, pinnedStates, ObjectCensus, readRetainedState } from './object-census.ts';
import type { GarbageCount, RetainedState } from './object-census.ts';
import { TableCheck } from './table-check.ts';
import type { VerifiedTable, TableCheckOptions } from './table-check.ts';
import type { VerifyProgress } from './verify-options.ts';

/** The result of `db.verify()`. */
export interface VerifyReport {
  /** Whether there are no findings. */
  readonly ok: boolean;
  /** All damage that was found, and in which object; at most 100 findings per tree. */
  readonly findings: readonly Finding[];
  /** All tables, including the system tables. */
  readonly tables: readonly VerifiedTable[];
  /** Commits in the log that are not merged yet. */
  readonly pendingCommits: number;
  /** Blobs that were read to the end and are sound. Only with `deep`. */
  readonly blobs?: { readonly objects: number; readonly bytes: number };
  /** Number of states of snapshots and history that were checked. Only with `deep`. */
  readonly keptStates?: number;
  /**
   * Objects that nothing needs any more, and that `db.gc()` would remove: no damage. Blocks and blobs are left out where damage
   * hides whether anything refers to them. Only with `deep`.
   */
  readonly garbage?: GarbageCount;
  /** Names of objects under the prefix that do not belong to the database, 1,000 at most: no damage. Only with `deep`. */
  readonly unknownObjects?: readonly string[];
}

/** An index that must be rebuilt. */
export interface WrongIndex {
  readonly table: string;
  readonly index: string;
}

/** Rows that cannot be read, and the node that would hold them. */
export interface LostRows {
  readonly shape: TableShape;
  readonly node: UnreadableNode;
}

export interface Verified {
  readonly report: VerifyReport;
  readonly block0: Block0;
  readonly wrongIndexes: readonly WrongIndex[];
  readonly lostRows: readonly LostRows[];
  /** Damage of the log; undefined if it is whole. */
  readonly log: LogDamage | undefined;
  /** The catalogue, where its object is missing or damaged. */
  readonly lostCatalogue: CatalogueRef | undefined;
}

export interface VerifyContext {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly register: Block0Register;
  /** Memory for blocks while checking, in bytes. */
  readonly cacheBytes: number;
  /** The functions that are registered here. */
  readonly functions: TableMergeContext['functions'];
  /** Pins a state. */
  readonly hold: (block0: Block0) => Promise<HeldSnapshot>;
}

export interface VerifySettings {
  readonly deep: boolean;
  /** Only this table, or this index of it. */
  readonly only?: { readonly table: string; readonly index?: string | undefined };
  readonly onProgress?: ((progress: VerifyProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Attempts if other nodes collect garbage past the state that is being checked. */
const maxAttempts = 5;

export async function verifyDatabase(context: VerifyContext, settings: VerifySettings): Promise<Verified> {
  const { register } = context;
  const { signal } = settings;
  let held: HeldSnapshot | undefined;
  try {
    for (let attempt = 1; ; attempt++) {
      const { block0 } = await register.refresh(signal);
      if (attempt > 1) {
        await held?.release();
        held = await holdIfPossible(context, block0);
      }
      const present = async (): Promise<Block0 | undefined> => {
        const { block0: newest } = await register.refresh(signal);
        const isHeld = newest.snapshots.some(({ id }) => id === held?.pin.id);
        return isHeld || isRetained(newest, block0.generation) ? newest : undefined;
      };
      const verified = await verifiedWhileKept(context, settings, block0, present);
      if (verified?.report.findings.length === 0) return verified;
      const newest = verified && (await present());
      if (verified !== undefined && newest !== undefined) return withoutPassed(verified, newest);
      if (attempt < maxAttempts) continue;
      throw new ContentionError(
        'Garbage was collected past what was being checked, again and again. Check while no db.gc() runs.',
      );
    }
  } finally {
    await held?.release();
  }
}

/** Thrown when garbage was collected past the state that is being checked. */
class Passed extends Error {}

/** Checks a state. Undefined if it is found to be no longer kept. `present`: the newest Block 0, if it still keeps the state. */
async function verifiedWhileKept(
  context: VerifyContext,
  settings: VerifySettings,
  block0: Block0,
  present: () => Promise<Block0 | undefined>,
): Promise<Verified | undefined> {
  const stillKept = async (): Promise<void> => {
    if ((await present()) === undefined) throw new Passed();
  };
  try {
    return await new Verification(context, settings, block0, stillKept).run();
  } catch (error) {
    if (error instanceof Passed) return undefined;
    throw error;
  }
}

/** Pins a state if possible. A state that cannot be pinned may still be there until the check ends. */
async function holdIfPossible({ hold }: VerifyContext, block0: Block0): Promise<HeldSnapshot | undefined> {
  try {
    return await hold(block0);
  } catch (error) {
    const mayGoOn =
      error instanceof SnapshotExpiredError ||
      error instanceof ContentionError ||
      error instanceof StorageError ||
      error instanceof ReadOnlyError;
    if (!mayGoOn) throw error;
    return undefined;
  }
}

/** Leaves out findings in states that are no longer kept, and in commits that were merged meanwhile. */
function withoutPassed(verified: Verified, present: Block0): Verified {
  const findings = verified.report.findings.filter(({ name, generation, snapshot }) => {
    if (snapshot !== undefined) return present.snapshots.some(({ id }) => id === snapshot);
    if (generation !== undefined) return present.history !== null && generation >= present.history.floor;
    const slot = parseCommitName(name) ?? parseStagedName(name.replace(/\+.*/, ''));
    return slot === undefined || slot > present.appliedSeq;
  });
  const log = verified.log !== undefined && verified.log.slot > present.appliedSeq ? verified.log : undefined;
  return { ...verified, log, report: { ...verified.report, ok: findings.length === 0, findings } };
}

/** One check of the state of one Block 0. */
class Verification {
  readonly #functions: VerifyContext['functions'];
  readonly #settings: VerifySettings;
  readonly #block0: Block0;
  readonly #run: CheckRun;
  readonly #blobs: BlobCheck | undefined;

  constructor(context: VerifyContext, settings: VerifySettings, block0: Block0, stillKept: () => Promise<void>) {
    const { environment, driver, prefix, cacheBytes, functions } = context;
    this.#functions = functions;
    const { deep, only, signal, onProgress } = settings;
    this.#settings = settings;
    this.#block0 = block0;
    const remembers = deep && only === undefined;
    this.#run = new CheckRun({ environment, driver, prefix, cacheBytes, remembers, signal, onProgress, stillKept });
    this.#blobs = deep ? new BlobCheck(this.#run, new BlobStore(driver, prefix)) : undefined;
  }

  async run(): Promise<Verified> {
    const base = this.#openBlock0();
    if (base !== undefined) return this.#check(base);
    const { list: findings } = this.#run.findings;
    const report = { ok: false, findings, tables: [], pendingCommits: 0 };
    return { report, block0: this.#block0, wrongIndexes: [], lostRows: [], log: undefined, lostCatalogue: undefined };
  }

  /** The view of the blocks; undefined if a root in Block 0 is damaged, so that the database cannot be opened. */
  #openBlock0(): View | undefined {
    try {
      return View.ofBlock0(this.#run.context, this.#block0);
    } catch (error) {
      this.#run.findings.addError({}, error, '');
      return undefined;
    }
  }

  /** Reads the catalogue. This instance has its content in memory, but an instance that opens the database has to read it. */
  async #checkCatalogue(): Promise<CatalogueRef | undefined> {
    const { findings, options, signal } = this.#run;
    const { catalogue } = this.#block0;
    if (catalogue === undefined) return undefined;
    try {
      await readCatalogue(options.driver, options.prefix, catalogue.ref, defined({ signal }));
      return undefined;
    } catch (error) {
      findings.addError({}, error, catalogueName(catalogue.ref));
      return catalogue.ref;
    }
  }

  async #check(base: View): Promise<Verified> {
    const run = this.#run;
    const { only } = this.#settings;
    const lostCatalogue = await this.#checkCatalogue();
    const { tail, damage: log } = await checkLog(run.options, base);
    if (log !== undefined) run.findings.add({}, commitName(log.slot), log.message);
    const check = new TableCheck({ run, base, tail, blobs: this.#blobs, functions: this.#functions });
    const tables: VerifiedTable[] = [];
    const wrongIndexes: WrongIndex[] = [];
    const lostRows: LostRows[] = [];
    const wanted = [...tail.tables.values()].filter(({ shape }) => only === undefined || only.table === shape.name);
    for (const { tree, shape, indexes, indexVersions, added } of wanted) {
      run.expect([...indexes.values()].reduce((sum, { count }) => sum + count, tree.count));
      for (const indexVersion of [...indexVersions, ...added]) run.expect(indexVersion.tree.count);
      if (shape.name === blobsSchema.name) this.#blobs?.expect(tree.count);
    }
    for (const table of wanted) {
      const { name } = table.shape;
      const { verified, wrongIndexes: wrong, unreadable } = await check.check(table, only?.index);
      tables.push(verified);
      for (const index of wrong) wrongIndexes.push({ table: name, index });
      for (const node of unreadable) lostRows.push({ shape: table.shape, node });
      await check.checkLayers(table);
      if (only === undefined)
        await checkNextVersion({ run, base, tail, blobs: undefined, functions: this.#functions }, name);
    }
    const deep = this.#blobs && only === undefined ? await this.#checkDeep(this.#blobs, base, tail) : {};
    await this.#blobs?.finish();
    const { list: findings } = run.findings;
    const { length: pendingCommits } = tail.pending;
    const report = { ok: findings.length === 0, findings, tables, pendingCommits, ...deep };
    return { report, block0: this.#block0, wrongIndexes, lostRows, log, lostCatalogue };
  }

  /** Checks the kept states, and looks at every object. */
  async #checkDeep(blobs: BlobCheck, base: View, tail: View): Promise<Partial<VerifyReport>> {
    const run = this.#run;
    const block0 = this.#block0;
    const states = new StateCheck(run, blobs, base);
    const pinned: View[] = [];
    let oldest: View | undefined;
    let keptStates = 0;
    // The present state first: its tables may have next versions, and bases of migrations.
    await states.checkTrees({}, block0);
    await states.check([...pinnedStates(block0), ...historyStates(block0)], ({ snapshot }, kept) => {
      keptStates++;
      const view = (): View => View.ofBlock0(run.context, kept);
      if (snapshot !== undefined) pinned.push(view());
      else oldest ??= view();
    });
    await blobs.finish();
    const census = new ObjectCensus({ run, block0, base, tail, pinned, oldest });
    await census.take();
    return {
      blobs: { ...blobs.counts },
      keptStates,
      garbage: census.garbage,
      unknownObjects: census.unknownObjects,
    };
  }
}

/** Roots of states that are read at the same time. */
const readsAtOnce = 16;

/** Checks earlier states that are kept: all objects that they refer to are there, and their trees are sound. */
class StateCheck {
  readonly #run: CheckRun;
  readonly #blobs: BlobCheck;
  readonly #present: View;

  /** `present`: the view of the present state, which was checked before and shares most of its blocks with the others. */
  constructor(run: CheckRun, blobs: BlobCheck, present: View) {
    this.#run = run;
    this.#blobs = blobs;
    this.#present = present;
  }

  /** Checks states; `onView` is called for each state that could be opened. */
  async check(states: readonly RetainedState[], onView: (state: RetainedState, block0: Block0) => void): Promise<void> {
    const { signal, options } = this.#run;
    const reader = new Block0Reader(options.driver, options.prefix);
    // Most states name the same catalogue.
    reader.note(this.#present.block0);
    for (let from = 0; from < states.length; from += readsAtOnce) {
      const some = states.slice(from, from + readsAtOnce);
      const reads = await Promise.allSettled(
        some.map((state) => readRetainedState(reader, state, defined({ signal }))),
      );
      for (const [i, read] of reads.entries()) {
        const state = some[i] as RetainedState;
        try {
          if (read.status === 'rejected') throw read.reason;
          await this.checkTrees(subjectOf(state), read.value);
          onView(state, read.value);
        } catch (error) {
          this.#run.reachedAll = false;
          this.#run.findings.addError(subjectOf(state), error, state.name);
        }
      }
    }
  }

  /** Checks the trees of all versions of all tables, except blocks that were checked before. */
  async checkTrees(subject: Subject, block0: Block0): Promise<void> {
    const { findings, context } = this.#run;
    this.#run.reachCatalogue(block0);
    let rows = 0;
    for (const placed of context.trees(block0)) {
      const { table, index } = placed.place;
      const about = { ...subject, table, ...defined({ index }) };
      if (index === undefined) rows = placed.tree.count;
      else if (isMiscounted(placed, rows) && subject.generation !== undefined) {
        const message = `The index has ${placed.tree.count} entries, and the table ${rows} rows`;
        findings.add(about, `indexes/${table}/${index}`, message);
      }
      const isBlobs = table === blobsSchema.name && index === undefined;
      const onRun = async (leaf: Node, from: number, to: number): Promise<void> => {
        for (let i = from; i < to; i++) await this.#blobs.checkEarlier(about, this.#present, leaf, i);
      };
      await this.#run.tree(about, { ...placed, ...(isBlobs && { onRun }) }, true);
    }
  }
}

function isMiscounted({ tree, isPartial, isOfMany }: PlacedTree, rows: number): boolean {
  if (isOfMany === true) return false;
  return isPartial === true ? tree.count > rows : tree.count !== rows;
}

function subjectOf({ generation, snapshot }: RetainedState): Subject {
  return { generation, ...defined({ snapshot }) };
}

/**
 * Checks the next version of a table, its blocks in `base` and its pending commits in `tail`: its rows and indexes are whole,
 * and every row has its row of the active version in the base of the migration. Once all rows are made and in line, there are as
 * many as in the active version.
 */
async function checkNextVersion(options: TableCheckOptions, table: string): Promise<void> {
  const check = new TableCheck(options);
  const { run, base, tail } = options;
  const nextVersion = base.nextVersion(table);
  if (nextVersion !== undefined) {
    await check.check(nextVersion.rows);
    await checkBase(run, nextVersion, base.table(table)?.tree);
  }
  const rows = await NextVersionRows.in(tail, table);
  if (rows !== undefined) await check.checkLayers(rows.rows);
}

async function checkBase(
  run: CheckRun,
  { migration, rows, base }: NextVersion,
  active: Tree | undefined,
): Promise<void> {
  const { shape } = base;
  const subject = { table: shape.name };
  const keepsKeys = haveSameKeys(shape, rows.shape);
  // It shares most of its blocks with the active version, where they were checked.
  await run.tree(subject, { place: subject, leaf: shape.leafShape, tree: base.tree }, true);
  if (keepsKeys) {
    const onRun = async (leaf: Node, from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) {
        if (await isIn(base.tree, leaf.key(i))) continue;
        const message = `Row ${i} of version ${rows.shape.version} goes with no row of the base`;
        run.findings.add(subject, leaf.name, message);
      }
    };
    await run.tree(subject, { leaf: rows.shape.leafShape, tree: rows.tree, onRun });
  }
  if (migration?.built !== null || active?.ref?.id !== base.tree.ref?.id || active?.count === rows.tree.count) return;
  const message = `Version ${rows.shape.version} has ${rows.tree.count} rows, and version ${shape.version} ${active?.count}`;
  run.findings.add(subject, `data/${shape.name}`, message);
}

/** Whether a tree has a key. True if the tree is damaged there: the check of the tree itself finds that. */
async function isIn(tree: Tree, key: Uint8Array): Promise<boolean> {
  try {
    return (await tree.lookup(key)) !== undefined;
  } catch (error) {
    if (isUnreadable(error)) return true;
    throw error;
  }
}
