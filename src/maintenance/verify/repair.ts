/**
 * Repairs a database as far as its rows allow, and reports the damage that stays. A damaged log is repaired first (log-repair.ts).
 * Indexes are rebuilt from the rows of their tables, in a generation of their own. Rows cannot be rebuilt from indexes, so a lost row
 * stays lost.
 *
 * Invariants:
 * - An index is replaced only by one that holds an entry for every row. If any row cannot be read, the old index stays.
 * - Rows, blobs and the objects that states refer to are never changed. Blocks of the old index stay until garbage is collected.
 */
import { backOff } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { ContentionError, InvalidOptionError, isUnreadable } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import { Pacer } from '../../base/pacer.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import { changeableOf } from '../../block0/block0-register.ts';
import { BlockCache } from '../../cache/block-cache.ts';
import type { Engine, PinnedView } from '../../engine/engine.ts';
import { isRetained } from '../../engine/snapshot-pins.ts';
import type { Block0 } from '../../format/block0.ts';
import { catalogueName } from '../../format/catalogue.ts';
import type { CatalogueRef } from '../../format/catalogue.ts';
import { blockName } from '../../format/object-names.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import { StoredBlocks } from '../../tree/stored-blocks.ts';
import type { Finding, UnreadableNode } from '../../tree/check.ts';
import { readAll } from '../../tree/cursor.ts';
import type { TableMergeContext } from '../../merge/growing-tree.ts';
import type { TreeBuild } from '../../merge/merge-table.ts';
import { View, ViewContext } from '../../view/view.ts';
import type { HeldSnapshot } from '../snapshots/held-snapshot.ts';
import { keyText } from './check-run.ts';
import { IndexRebuild, RowsUnreadable } from './index-rebuild.ts';
import type { RebuildOptions, RepairedIndex } from './index-rebuild.ts';
import type { LogDamage } from './log-check.ts';
import { afterLoss, applyDamagedLog, maxLost } from './log-repair.ts';
import type { LogRepairContext } from './log-repair.ts';
import { historyStates, pinnedStates, readRetainedState } from './object-census.ts';
import type { RetainedState } from './object-census.ts';
import type { RepairOptions, VerifyOptions } from './verify-options.ts';
import { verifyDatabase } from './verify.ts';
import type { Verified, VerifyContext, LostRows, VerifyReport } from './verify.ts';

/** The result of `db.repair()`; with `dryRun`, the result that a run would have. */
export interface RepairReport {
  /** Whether no damage is left in the parts that were checked. */
  readonly ok: boolean;
  /** Indexes that were rebuilt; with `dryRun`, the indexes that would be. */
  readonly repaired: readonly RepairedIndex[];
  /** Damage that stays, and the remedies. */
  readonly unrepairable: readonly Finding[];
  /** Damage of the log, and how the database goes on; undefined if the log is whole. */
  readonly log?: RepairedLog;
  /**
   * Name of the catalogue's object, if that was missing or damaged. This instance knows its content, and Block 0 holds that
   * itself until the next merge writes a new catalogue.
   */
  readonly catalogue?: string;
}

/** A log with a hole. */
export interface RepairedLog extends Omit<LogDamage, 'message' | 'slot'> {
  /** `'stop'`: the stranded commits were given up, `'skip'`: kept; or would be, with `dryRun`. Undefined: `log` was not given. */
  readonly way: 'stop' | 'skip' | undefined;
}

export interface RepairContext extends LogRepairContext {
  /** Replaces trees in a generation of its own. */
  readonly rebuild: (build: TreeBuild) => Promise<boolean>;
}

async function repairDatabase(context: RepairContext, options: RepairOptions): Promise<RepairReport> {
  const { table, index, signal, dryRun = false, log: way } = options;
  const only = table === undefined ? undefined : { table, index };
  const settings = { deep: true, signal, ...defined({ only }) };
  let verified = await verifyDatabase(context, settings);
  checkFound(verified, options);
  const { log: damage } = verified;
  let decided: Pick<LogDamage, 'lostSlots' | 'stranded'> | undefined = damage;
  if (damage !== undefined && way !== undefined && !dryRun) {
    decided = await applyDamagedLog(context, damage, way, signal);
    verified = await verifyDatabase(context, settings);
  }
  const { lostCatalogue } = verified;
  if (lostCatalogue !== undefined && !dryRun) await holdTables(context, lostCatalogue, signal);
  const catalogue = lostCatalogue && catalogueName(lostCatalogue);
  const repair = new Repair(context, verified, signal);
  await repair.run(dryRun);
  const { repaired } = repair;
  const unrepairable = repair.unrepairable.filter(({ name }) => name !== catalogue);
  const place = { driver: context.driver, prefix: context.prefix, cacheBytes: context.cacheBytes, signal };
  for (const lost of verified.lostRows) unrepairable.push(await lostRowsFinding(place, verified.block0, lost));
  const ok = unrepairable.length === 0 && (!dryRun || (repaired.length === 0 && catalogue === undefined));
  const report = { ok, repaired, unrepairable, ...defined({ catalogue }) };
  if (decided === undefined) return report;
  const { lostSlots, stranded } = decided;
  return { ...report, log: { way, lostSlots, stranded } };
}

/** Writes the tables of a lost catalogue into Block 0, unless that names another catalogue by now. */
async function holdTables(context: RepairContext, lost: CatalogueRef, signal: AbortSignal | undefined): Promise<void> {
  await context.register.update((present) => {
    const { catalogue, ...change } = changeableOf(present);
    return catalogue?.ref.id === lost.id ? change : undefined;
  }, signal);
}

function checkFound({ report }: Verified, { table, index }: RepairOptions): void {
  if (table === undefined) return;
  const found = report.tables.find(({ name }) => name === table);
  if (found === undefined) throw new InvalidOptionError('table', `There is no table '${table}' in the database.`);
  if (index === undefined || found.indexes.some(({ name }) => name === index)) return;
  throw new InvalidOptionError('index', `Table '${table}' has no index '${index}'.`);
}

class Repair {
  readonly #context: RepairContext;
  readonly #findings: readonly Finding[];
  readonly #signal: AbortSignal | undefined;
  /** Indexes that still have to be rebuilt, by their tables. */
  readonly #wanted = new Map<string, string[]>();
  readonly #refused: Finding[] = [];
  repaired: readonly RepairedIndex[] = [];

  constructor(context: RepairContext, verified: Verified, signal: AbortSignal | undefined) {
    this.#context = context;
    this.#findings = verified.report.findings;
    this.#signal = signal;
    for (const { table, index } of verified.wrongIndexes) {
      this.#wanted.set(table, [...(this.#wanted.get(table) ?? []), index]);
    }
    for (const { shape } of verified.lostRows) this.#refuse(shape.name, 'some of its rows cannot be read');
  }

  get unrepairable(): readonly Finding[] {
    const made = new Set(this.repaired.map(({ table, index }) => `${table}\0${index}`));
    const left = this.#findings.filter(({ table, index, generation }) => {
      return generation !== undefined || index === undefined || !made.has(`${table}\0${index}`);
    });
    return [...left, ...this.#refused];
  }

  /** Gives up the indexes of a table. */
  #refuse(table: string, why: string): void {
    for (const index of this.#wanted.get(table) ?? []) {
      const message = `The index cannot be made anew from its table: ${why}`;
      this.#refused.push({ name: `indexes/${table}/${index}`, message, table, index });
    }
    this.#wanted.delete(table);
  }

  async run(dryRun: boolean): Promise<void> {
    const { environment, register } = this.#context;
    for (let lost = 0; this.#wanted.size > 0; ) {
      this.#signal?.throwIfAborted();
      try {
        if (dryRun ? await this.#survey() : await this.#rebuild()) return;
      } catch (error) {
        if (!(error instanceof RowsUnreadable)) throw error;
        const { block0 } = await register.refresh(this.#signal);
        // If the generation is not retained, its blocks may have been deleted as garbage: that is no damage, so try again.
        if (isRetained(block0, error.generation)) {
          this.#refuse(error.table, error.message);
          continue;
        }
      }
      lost++;
      if (lost >= maxLost) {
        throw new ContentionError(
          'Other nodes merged before every attempt to replace an index. Nothing is lost: try it again when less is written.',
        );
      }
      await backOff(environment, afterLoss, lost, this.#signal);
    }
  }

  get #options(): RebuildOptions {
    const { driver, prefix, cacheBytes, functions } = this.#context;
    return { driver, prefix, cacheBytes, functions, indexes: this.#wanted, signal: this.#signal };
  }

  async #survey(): Promise<boolean> {
    const { environment, register } = this.#context;
    const rebuild = new IndexRebuild(this.#options, (await register.refresh(this.#signal)).block0);
    await rebuild.survey(new Pacer(environment));
    this.repaired = rebuild.repaired;
    return true;
  }

  async #rebuild(): Promise<boolean> {
    let rebuild: IndexRebuild | undefined;
    const done = await this.#context.rebuild((block0, merge) => {
      rebuild = new IndexRebuild(this.#options, block0);
      return rebuild.build(merge);
    });
    if (done) this.repaired = rebuild?.repaired ?? [];
    return done;
  }
}

export interface LostRowsOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly cacheBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Earlier states that are searched for the rows. */
const maxStates = 3;

/** The finding that reports which rows were lost with a node, and which earlier state still has them. */
async function lostRowsFinding(options: LostRowsOptions, block0: Block0, { shape, node }: LostRows): Promise<Finding> {
  const { ref, lower, upper } = node;
  const table = shape.name;
  const name = blockName({ table }, ref);
  const from = lower === undefined ? 'from the first' : `from primary key ${keyText(shape, lower)}`;
  const to = upper === undefined ? 'to the last' : `to before ${keyText(shape, upper)}`;
  const lost = `${ref.count} rows of table '${table}' cannot be read, ${from} ${to}. Restore the object from a copy`;
  const message = `${lost}; ${await whereElse(options, block0, shape, node)}`;
  return { name, message, table };
}

/** Names the newest earlier state that still shows rows of the range. Only states from before the block was written can. */
async function whereElse(
  options: LostRowsOptions,
  block0: Block0,
  shape: TableShape,
  node: UnreadableNode,
): Promise<string> {
  // States from the block's birth on refer to this same block. So do some before it, if the block was written ahead: they are no help.
  const states = [...pinnedStates(block0), ...historyStates(block0)]
    .filter(({ generation }) => generation < node.ref.birth)
    .toSorted((a, b) => b.generation - a.generation);
  for (const state of states.slice(0, maxStates)) {
    const rows = await countRows(options, state, shape, node);
    if (rows === undefined || rows === 0) continue;
    const how = state.snapshot === undefined ? `db.at(${state.generation})` : `snapshot ${state.snapshot}`;
    return `${rows} rows of that range can be read as they were in generation ${state.generation}, with ${how}`;
  }
  return 'no earlier state that is kept shows them';
}

/** Counts the rows of the range in a state; undefined if they cannot be read there either. */
async function countRows(
  { driver, prefix, cacheBytes, signal }: LostRowsOptions,
  state: RetainedState,
  shape: TableShape,
  { lower: from, upper: to }: UnreadableNode,
): Promise<number | undefined> {
  try {
    const block0 = await readRetainedState(new Block0Reader(driver, prefix), state, defined({ signal }));
    const context = new ViewContext(new StoredBlocks(driver, prefix, new BlockCache(cacheBytes)));
    const table = View.ofBlock0(context, block0).table(shape.name);
    if (table === undefined) return 0;
    const cursor = readAll(table.tree, { from, to });
    let rows = 0;
    while (await cursor.next()) {
      signal?.throwIfAborted();
      rows += cursor.to - cursor.from;
    }
    return rows;
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

/** The parts that checks and repairs on a running engine need. They end with the engine, and it waits for them. */
export interface UpkeepOptions {
  readonly engine: Engine;
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  /** The functions that are registered here. */
  readonly functions: TableMergeContext['functions'];
  /** Holds a pinned state until it is released. */
  readonly hold: (pinning: Promise<PinnedView>, timeToLiveMs: number) => Promise<HeldSnapshot>;
}

/** How long the pin of a state that is being checked lasts without renewal, in milliseconds. */
const pinMs = 600_000;

function contextOf({ engine, hold, ...parts }: UpkeepOptions): VerifyContext {
  const { register, pins, context } = engine;
  return {
    ...parts,
    register,
    cacheBytes: Math.floor(engine.memory.workBytes / 4),
    hold: (block0) => {
      const pinning = pins.pin({ block0 }, pinMs).then((pin) => ({ pin, view: View.ofBlock0(context, block0) }));
      return hold(pinning, pinMs);
    },
  };
}

/** Runs `db.verify()`. */
export async function runVerify(upkeep: UpkeepOptions, options: VerifyOptions): Promise<VerifyReport> {
  const { engine } = upkeep;
  const { deep = false, signal, onProgress } = options;
  const verified = await engine.whileOpen('db.verify()', signal, (either) =>
    verifyDatabase(contextOf(upkeep), { deep, onProgress, signal: either }),
  );
  return verified.report;
}

/** Runs `db.repair()`. */
export function runRepair(upkeep: UpkeepOptions, options: RepairOptions): Promise<RepairReport> {
  const { engine } = upkeep;
  const context = {
    ...contextOf(upkeep),
    rebuild: engine.merger.rebuild.bind(engine.merger),
    applyLog: engine.applyLog.bind(engine),
  };
  return engine.whileOpen('db.repair()', options.signal, (signal) => repairDatabase(context, { ...options, signal }));
}
