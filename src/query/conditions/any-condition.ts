/** A disjunction: a condition that holds where all conditions of one of its branches hold; and its negation. */
import { atOnce, itemsInStep, mapped, sorted } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { Condition, filterOf, namesIn } from './condition.ts';
import type { PreparedFields } from './condition.ts';
import { AnySelector, ComplementSelector } from './filter.ts';
import type { Selector } from './filter.ts';
import { intersecting, uniting } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import { joinElements } from './list-selectors.ts';

/** Conditions that must all hold. */
export type Branch = readonly Condition[];

/** The number of conditions of a branch that a key range may come from. Rows are tested for the others. */
const mostHelpful = 1024;

/** Returns all fields that the branches read; undefined if one needs the whole row. */
function readsOf(branches: readonly Branch[]): LayoutField[] | undefined {
  const fields = new Set<LayoutField>();
  for (const branch of branches) {
    for (const { reads } of branch) {
      if (reads === undefined) return undefined;
      for (const field of reads) fields.add(field);
    }
  }
  return [...fields];
}

/** Makes the selector of rows that match a branch. Cheap branches are tested first. */
function* selectingAny(branches: readonly Branch[]): Steps<Selector> {
  const selectors = yield* mapped(branches, (branch) =>
    branch.length === 1 ? (branch[0] as Condition).selector : filterOf(branch),
  );
  return new AnySelector(yield* sorted(joinElements(selectors, true), (a, b) => a.cost - b.cost));
}

export class AnyCondition extends Condition {
  /** At least two. */
  readonly branches: readonly Branch[];
  override readonly size: number;
  #selector: Selector | undefined;
  /** Key accesses by field: a cache, since planning asks for each index and each part of a union. */
  readonly #keys = { table: new Map<LayoutField, KeyAccess | null>(), index: new Map<LayoutField, KeyAccess | null>() };

  constructor(branches: readonly Branch[]) {
    super(namesOf(branches), undefined, undefined, readsOf(branches));
    this.branches = branches;
    let size = 1;
    for (const branch of branches) for (const condition of branch) size += condition.size;
    this.size = size;
  }

  override get selector(): Selector {
    this.#selector ??= atOnce(selectingAny(this.branches));
    return this.#selector;
  }

  override *preparing(fields: PreparedFields): Steps<void> {
    let seen = 0;
    for (const branch of this.branches) {
      for (const condition of branch) {
        if (condition.isLong) yield* condition.preparing(fields);
        else void condition.selector;
        if (++seen % itemsInStep === 0) yield;
      }
    }
    for (const field of fields.table) yield* this.#knowing(field, 'table');
    for (const field of fields.index) yield* this.#knowing(field, 'index');
    this.#selector ??= yield* selectingAny(this.branches);
  }

  /** Returns a key access only if every branch has one. */
  override keysBy(field: LayoutField, tree: 'table' | 'index'): KeyAccess | undefined {
    const known = this.#keys[tree].get(field);
    return known === undefined ? atOnce(this.#knowing(field, tree)) : (known ?? undefined);
  }

  *#knowing(field: LayoutField, tree: 'table' | 'index'): Steps<KeyAccess | undefined> {
    const keys = yield* this.#keysBy(field, tree);
    this.#keys[tree].set(field, keys ?? null);
    return keys;
  }

  *#keysBy(field: LayoutField, tree: 'table' | 'index'): Steps<KeyAccess | undefined> {
    const all: KeyAccess[] = [];
    for (const branch of this.branches) {
      const keys = yield* keysOfAll(branch, field, tree);
      if (keys === undefined) return undefined;
      all.push(keys);
      if (all.length % itemsInStep === 0) yield;
    }
    return yield* uniting(all);
  }
}

function namesOf(branches: readonly Branch[]): string[] {
  const names = new Set<string>();
  for (const branch of branches) for (const name of namesIn(branch)) names.add(name);
  return [...names];
}

/** Returns the key access of conditions that must all hold. */
function* keysOfAll(branch: Branch, field: LayoutField, tree: 'table' | 'index'): Steps<KeyAccess | undefined> {
  let keys: KeyAccess | undefined;
  let helpful = 0;
  for (let i = 0; i < branch.length && helpful < mostHelpful; i++) {
    if ((i + 1) % itemsInStep === 0) yield;
    const other = (branch[i] as Condition).keysBy(field, tree);
    if (other === undefined) continue;
    helpful++;
    if (keys === undefined) keys = other;
    else {
      keys = yield* intersecting(keys, other);
      yield;
    }
  }
  return keys === undefined || helpful === branch.length ? keys : { ...keys, exact: false };
}

/** Returns the negation: a condition that matches exactly the rows that no branch matches. */
export function opposedTo(branches: readonly Branch[]): Condition {
  const selector = new ComplementSelector(atOnce(selectingAny(branches)));
  return new Condition(namesOf(branches), undefined, selector, readsOf(branches));
}
