/** The table that nodes drop and create again, as the log has it: its rows after every commit, and its drops. */
import type { Commit } from '../../../src/format/commit.ts';
import { Types } from '../../../src/format/types.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import { changedRows } from './commit-rows.ts';
import type { Objects } from './commit-rows.ts';
import type { Judge } from './judge.ts';

export const drafts = defineSchema({
  name: 'drafts',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['text'],
});

const invariant = 'dropped tables';

/** An insert: each has an id of its own. */
export interface Draft {
  readonly node: string;
  /** The position of the instance when the registration was made that the insert came from. */
  readonly registeredAt: number;
  outcome: 'open' | 'written' | 'refused' | 'not written';
}

export class DropLedger {
  readonly #judge: Judge;
  readonly #objects: Objects;
  readonly #asked = new Map<number, Draft>();
  readonly #landed = new Map<number, number>();
  readonly #drops: number[] = [];
  /** The ids of the rows after each slot. */
  readonly #states: (readonly number[])[] = [[]];

  constructor(judge: Judge, objects: Objects) {
    this.#judge = judge;
    this.#objects = objects;
  }

  /** Notes an insert, and returns its id. */
  ask(draft: Draft): number {
    const id = this.#asked.size + 1;
    this.#asked.set(id, draft);
    return id;
  }

  /** The ids of the rows after a slot, ascending. */
  after(slot: number): readonly number[] {
    return this.#states[slot] ?? [];
  }

  landed(slot: number, { members }: Commit): void {
    let rows = [...this.after(slot - 1)];
    for (const { changes, drops = [] } of members) {
      if (drops.some(({ table }) => table === drafts.name)) {
        if (rows.length === 0 && this.#drops.length > 0 && this.#isGone) this.#fail(`Slot ${slot} drops what is gone`);
        this.#isGone = true;
        this.#drops.push(slot);
        rows = [];
      }
      for (const change of changes) {
        if (change.schema.name !== drafts.name) continue;
        this.#isGone = false;
        const shape = new TableShape(change.schema);
        for (const { node, i } of changedRows(change, this.#objects)) {
          const id = shape.keyValue(node.key(i)) as number;
          this.#check(slot, id);
          rows.push(id);
        }
      }
    }
    this.#states[slot] = rows.toSorted((a, b) => a - b);
  }

  #isGone = false;

  #check(slot: number, id: number): void {
    const draft = this.#asked.get(id);
    if (draft === undefined || this.#landed.has(id))
      return this.#fail(`Draft ${id} is in slot ${slot}, and was asked for once at most`);
    this.#landed.set(id, slot);
    const drop = this.#drops.find((at) => at > draft.registeredAt);
    if (drop === undefined) return undefined;
    const from = `a registration of ${draft.node} at ${draft.registeredAt}`;
    return this.#fail(`Draft ${id} is in slot ${slot}, from ${from}, and slot ${drop} drops the table`);
  }

  #fail(what: string): void {
    this.#judge.fail(invariant, what);
  }

  /** Compares what an instance shows at a position. */
  judge(node: string, position: number, found: readonly number[]): void {
    const expected = this.after(position);
    if (JSON.stringify(found) === JSON.stringify(expected)) return;
    this.#fail(`${node} shows drafts ${found.join()} at ${position}; the log has ${expected.join()}`);
  }

  /** Nothing is written any more. */
  finish(): void {
    for (const [id, { outcome }] of this.#asked) {
      const isThere = this.#landed.has(id);
      if (outcome === 'written' && !isThere) this.#fail(`Draft ${id} was acknowledged, and is not in the log`);
      if ((outcome === 'refused' || outcome === 'not written') && isThere)
        this.#fail(`Draft ${id} was refused, and is in the log`);
    }
  }
}
