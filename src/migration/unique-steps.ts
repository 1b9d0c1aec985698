/**
 * The last steps of adding a unique index, once the entries of all rows are made. Flushes do not know of it yet, so rows may
 * agree. First a commit is put from which on every flush is checked: no commit behind it makes rows agree that did not before. Once
 * it is merged, the rows are looked through, and what holds of them then holds from then on (docs/protocol.md, "Added indexes").
 */
import { ByteWriter } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { Pacer } from '../base/pacer.ts';
import type { MergedTable, TableMergeContext } from '../merge/merge-table.ts';
import type { Engine } from '../engine/engine.ts';
import { describeKey } from '../base/describe-value.ts';
import { isComplete } from '../schema/added-index.ts';
import type { AddedIndex } from '../schema/added-index.ts';
import { checkingOf, isChecked } from '../catalog/checked-indexes.ts';
import { findDuplicates } from '../catalog/duplicate-values.ts';
import type { Duplicate } from '../catalog/duplicate-values.ts';
import type { KeyValue } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { View } from '../view/view.ts';
import { BlockGone } from '../tree/block-source.ts';
import { failedIndex, readyIndex } from './added-chunk.ts';
import type { ChunkWork, Step } from './chunk-work.ts';

export interface UniqueStepsOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly chunks: Pick<ChunkWork, 'store'>;
}

/** Something was done, and there is more to do. */
const goOn: Step = { rows: 0, tell: () => undefined };

export class UniqueSteps {
  readonly #options: UniqueStepsOptions;

  constructor(options: UniqueStepsOptions) {
    this.#options = options;
  }

  /** The next step of an index of which all entries are made, as a view shows it. */
  async step(view: View, table: TableState, added: AddedIndex): Promise<Step> {
    const { engine } = this.#options;
    try {
      return await this.#step(view, table, added);
    } catch (error) {
      if (!(error instanceof BlockGone)) throw error;
      // Others have merged and collected meanwhile. Where the block is lost, nothing gets on, and verify() tells.
      await engine.refresh(engine.stopping);
      if (engine.view.block0.generation === view.block0.generation) throw error;
      return 'lost';
    }
  }

  async #step(view: View, table: TableState, added: AddedIndex): Promise<Step> {
    const { engine, environment } = this.#options;
    const { name } = table.shape;
    const pacer = new Pacer(environment, true);
    const [found] = await findDuplicates(table, added.index, pacer, 1, added.tree);
    if (found !== undefined) {
      if (!(await isOverlaid(table, found))) return this.#fail(name, added, found);
      await engine.checkpoint(engine.stopping);
      return goOn;
    }
    // In what was looked through: all that follows it was checked then.
    const isMerged = await isChecked(View.ofBlock0(engine.context, view.block0), name, added);
    if (isMerged) return this.#succeed(name, added);
    if (!(await isChecked(view, name, added))) await this.#check(name, added);
    await engine.checkpoint(engine.stopping);
    return goOn;
  }

  /** Commits that from here on everything is checked for the index. */
  async #check(table: string, added: AddedIndex): Promise<void> {
    const { engine } = this.#options;
    await engine.append({
      signal: engine.stopping,
      sizeBytes: 256,
      prepare: async (view) => {
        const present = presentOf(view, table, added);
        const isDone = present === undefined || (await isChecked(view, table, present));
        return { changes: isDone ? [] : [checkingOf(table, present)] };
      },
    });
  }

  async #succeed(table: string, added: AddedIndex): Promise<Step> {
    const { name: index } = added.index;
    const step = await this.#store(table, added, (state, _, context) => readyIndex(state, index, context));
    const message = `Unique index ${index} of table ${table} holds from now on`;
    return step ?? { rows: 0, tell: () => this.#options.logger.info(message, { table, index }) };
  }

  async #fail(table: string, added: AddedIndex, { key, other, value }: Duplicate): Promise<Step> {
    const { name: index } = added.index;
    const problem = `The rows with primary keys ${describeKey(other)} and ${describeKey(key)} both have ${value} there.`;
    const step = await this.#store(table, added, (state, present, context) => {
      return failedIndex(state, present, problem, context);
    });
    const way = 'Put the rows right, and call dropIndex(): then it is begun anew.';
    const message = `Unique index ${index} cannot be added to table ${table}. ${problem} ${way}`;
    return step ?? { rows: 0, tell: () => this.#options.logger.warn(message, { table, index }) };
  }

  /** Says in Block 0 what has come of the index, if that is still to be said; undefined: it is there. */
  async #store(
    table: string,
    added: AddedIndex,
    change: (state: TableState, present: AddedIndex, context: TableMergeContext) => MergedTable,
  ): Promise<'lost' | 'nothing' | undefined> {
    const { engine, chunks } = this.#options;
    const chunk = await chunks.store(async (block0, _, context) => {
      const view = View.ofBlock0(engine.context, block0);
      const state = view.table(table);
      const present = presentOf(view, table, added);
      return state && present && { table: change(state, present, context) };
    });
    if (chunk === undefined) return 'nothing';
    return chunk === 'lost' ? chunk : undefined;
  }
}

/** The index as a view has it, if that is the same one and still to be checked: one that was dropped and added again is another. */
function presentOf(view: View, table: string, { index, birth }: AddedIndex): AddedIndex | undefined {
  if (view.nextVersion(table) !== undefined) return undefined;
  const found = view.table(table)?.added.find((one) => one.index.name === index.name);
  return found?.birth === birth && isComplete(found) ? found : undefined;
}

/** Whether a commit that is not merged has changed one of two rows: they may have been put right. */
async function isOverlaid(table: TableState, { key, other }: Duplicate): Promise<boolean> {
  for (const value of [key, other]) {
    const writer = new ByteWriter();
    table.shape.writeKey(writer, value as KeyValue);
    if (await table.isOverlaid(writer.finish())) return true;
  }
  return false;
}
