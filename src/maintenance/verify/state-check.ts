/** The check of earlier states that are kept: all that they refer to is there, and their trees are as trees should be. */
import { defined } from '../../base/defined.ts';
import type { Block0 } from '../../format/block0.ts';
import { blobsSchema } from '../../blob/blob-tables.ts';
import type { Node } from '../../format/node.ts';
import type { PlacedTree, View } from '../../view/view.ts';
import type { BlobCheck } from './blob-check.ts';
import type { CheckRun } from './check-run.ts';
import type { Subject } from './findings.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import { readRetainedState } from './retained-states.ts';
import type { RetainedState } from './retained-states.ts';

/** Roots of states that are read at the same time. */
const readsAtOnce = 16;

export class StateCheck {
  readonly #run: CheckRun;
  readonly #blobs: BlobCheck;
  readonly #present: View;

  /** `present`: what is in the blocks of the state that was checked before, and shares most of them. */
  constructor(run: CheckRun, blobs: BlobCheck, present: View) {
    this.#run = run;
    this.#blobs = blobs;
    this.#present = present;
  }

  /** Checks states; `onView` is called for each that could be opened. */
  async check(states: readonly RetainedState[], onView: (state: RetainedState, block0: Block0) => void): Promise<void> {
    const { signal, options } = this.#run;
    const reader = new Block0Reader(options.driver, options.prefix);
    // Most of them name the same catalogue.
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

  /** Checks the trees of all versions of all tables, apart from what was checked before. */
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

function isMiscounted({ tree, isPartial }: PlacedTree, rows: number): boolean {
  return isPartial === true ? tree.count > rows : tree.count !== rows;
}

function subjectOf({ generation, snapshot }: RetainedState): Subject {
  return { generation, ...defined({ snapshot }) };
}
