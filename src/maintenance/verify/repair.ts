/**
 * Rebuilds what can be rebuilt from what is there, and says what cannot. Indexes follow from the rows of their tables, so
 * they are made anew, in a generation of their own; nothing follows from an index, so a row that is lost stays lost.
 *
 * Invariants:
 * - An index is replaced only by one that holds an entry for every row. If any row cannot be read, it stays as it is.
 * - Rows, blobs and what states refer to are never changed. Blocks of the old index stay until garbage is collected.
 */
import { defined } from '../../base/defined.ts';
import { backOff } from '../../base/backoff.ts';
import type { Backoff } from '../../base/backoff.ts';
import { randomUuid } from '../../base/ids.ts';
import { ContentionError, InvalidOptionError } from '../../base/errors.ts';
import { Pacer } from '../../base/pacer.ts';
import type { TreeBuild } from '../../merge/merger.ts';
import { isRetained } from '../../engine/snapshot-pins.ts';
import type { Block0 } from '../../format/block0.ts';
import { catalogueName } from '../../format/catalogue.ts';
import type { CatalogueRef } from '../../format/catalogue.ts';
import { emptyCommit } from '../../format/commit.ts';
import { CommitLog } from '../../log/commit-log.ts';
import { changeableOf } from '../../block0/block0-register.ts';
import type { LoggedCommit } from '../../view/view.ts';
import type { Finding } from '../../tree/check.ts';
import { IndexRebuild, RowsUnreadable } from './index-rebuild.ts';
import type { RebuildOptions, RepairedIndex } from './index-rebuild.ts';
import { readSlot } from './log-check.ts';
import type { LogDamage } from './log-check.ts';
import { lostRowsFinding } from './lost-rows.ts';
import { verifyDatabase } from './verify.ts';
import type { Verified, VerifyContext } from './verify.ts';
import type { RepairOptions } from './verify-options.ts';

/** What `db.repair()` did, or would do. */
export interface RepairReport {
  /** Whether nothing is wrong any more, with what was looked at. */
  readonly ok: boolean;
  /** Indexes that were made anew; with `dryRun`, those that would be. */
  readonly repaired: readonly RepairedIndex[];
  /** What is wrong and stays so, and what can be done about it. */
  readonly unrepairable: readonly Finding[];
  /** What was wrong with the log, and how the database goes on; undefined if nothing was. */
  readonly log?: RepairedLog;
  /**
   * The catalogue, by the name of its object, if that was missing or damaged: this instance knows what it held, and Block 0
   * holds that itself until the next merge writes a new one.
   */
  readonly catalogue?: string;
}

/** A log with a hole. */
export interface RepairedLog extends Omit<LogDamage, 'message' | 'slot'> {
  /** Whether the stranded commits were given up or kept, or with `dryRun` would be; undefined: nothing was asked for. */
  readonly way: 'stop' | 'skip' | undefined;
}

export interface RepairContext extends VerifyContext {
  /** Replaces trees in a generation of its own. */
  readonly rebuild: (build: TreeBuild) => Promise<boolean>;
  /** Has Block 0 apply what it is given, on top of it. False if it must begin anew. */
  readonly applyLog: (slots: (block0: Block0) => Promise<readonly LoggedCommit[]>) => Promise<boolean>;
}

/** Attempts at replacing Block 0 that other nodes come before. */
const maxLost = 20;
const afterLoss: Backoff = { firstMs: 10, longestMs: 1000, jitter: 'full' };

export async function repairDatabase(context: RepairContext, options: RepairOptions): Promise<RepairReport> {
  const { table, index, signal, dryRun = false, log: way } = options;
  const only = table === undefined ? undefined : { table, index };
  const settings = { deep: true, signal, ...defined({ only }) };
  let verified = await verifyDatabase(context, settings);
  checkFound(verified, options);
  const { log: damage } = verified;
  if (damage !== undefined && way !== undefined && !dryRun) {
    await goOn(context, damage, way, signal);
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
  if (damage === undefined) return report;
  const { lostSlots, stranded } = damage;
  return { ...report, log: { way, lostSlots, stranded } };
}

/** Has Block 0 hold the tables that are in a catalogue, unless it names another one by now. */
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

/** Has Block 0 apply the log up to its last slot: what is lost as commits of nothing, and with `stop` what lies behind as well. */
async function goOn(
  context: RepairContext,
  damage: LogDamage,
  way: 'stop' | 'skip',
  signal: AbortSignal | undefined,
): Promise<void> {
  const { driver, prefix, environment, register } = context;
  const log = new CommitLog(environment, driver, prefix);
  const last = Math.max(...damage.lostSlots, ...damage.stranded.map(({ slot }) => slot));
  const slots = async ({ databaseId, appliedSeq }: Block0): Promise<LoggedCommit[]> => {
    const found: LoggedCommit[] = [];
    for (let seq = appliedSeq + 1; seq <= last; seq++) {
      const isKept = seq < damage.slot || way === 'skip';
      const read = isKept ? (await readSlot(log, seq, signal)).commit : undefined;
      const commit = read?.databaseId === databaseId ? read : undefined;
      const empty = emptyCommit(databaseId, randomUuid(environment));
      found.push(commit === undefined ? { seq, commit: empty, givenUp: true } : { seq, commit });
    }
    return found;
  };
  for (let lost = 0; (await register.refresh(signal)).block0.appliedSeq < last; ) {
    signal?.throwIfAborted();
    if (await context.applyLog(slots)) continue;
    if (++lost >= maxLost)
      throw new ContentionError(
        'Other nodes replaced Block 0 before every attempt to repair the log. Stop them first.',
      );
    await backOff(environment, afterLoss, lost, signal);
  }
}

class Repair {
  readonly #context: RepairContext;
  readonly #findings: readonly Finding[];
  readonly #signal: AbortSignal | undefined;
  /** Indexes that are still to be made, by their tables. */
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
        // Otherwise its blocks may be gone since others merged, and collected garbage.
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
