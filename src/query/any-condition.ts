/** A condition that holds where all of one of its branches do, and its opposite. */
import type { LayoutField } from '../format/row-layout.ts';
import { Condition, filterOf, namesIn } from './condition.ts';
import { AnySelector, ComplementSelector } from './joined-selectors.ts';
import { intersectAll, rangesOf, uniteAccesses } from './key-ranges.ts';
import type { KeyAccess } from './key-ranges.ts';
import type { Selector } from './selector.ts';

/** Conditions that must all hold. */
export type Branch = readonly Condition[];

/** The fields that the branches read together; undefined if one needs the whole row. */
function readsOf(branches: readonly Branch[]): LayoutField[] | undefined {
  const fields = new Set<LayoutField>();
  for (const { reads } of branches.flat()) {
    if (reads === undefined) return undefined;
    for (const field of reads) fields.add(field);
  }
  return [...fields];
}

function selectAny(branches: readonly Branch[]): Selector {
  return new AnySelector(branches.map(filterOf));
}

export class AnyCondition extends Condition {
  /** At least two. */
  readonly branches: readonly Branch[];
  #selector: Selector | undefined;
  /** By field. Planning asks again and again, for each index and each part of a union. */
  readonly #keys = { table: new Map<LayoutField, KeyAccess | null>(), index: new Map<LayoutField, KeyAccess | null>() };

  constructor(branches: readonly Branch[]) {
    super(namesIn(branches.flat()), undefined, undefined, readsOf(branches));
    this.branches = branches;
  }

  override get selector(): Selector {
    this.#selector ??= selectAny(this.branches);
    return this.#selector;
  }

  /** Helps only where every branch does. */
  override keysBy(field: LayoutField, tree: 'table' | 'index'): KeyAccess | undefined {
    const known = this.#keys[tree].get(field);
    if (known !== undefined) return known ?? undefined;
    const keys = this.#keysBy(field, tree);
    this.#keys[tree].set(field, keys ?? null);
    return keys;
  }

  #keysBy(field: LayoutField, tree: 'table' | 'index'): KeyAccess | undefined {
    const all: KeyAccess[] = [];
    for (const branch of this.branches) {
      const keys = keysOfAll(branch, field, tree);
      if (keys === undefined) return undefined;
      all.push(keys);
    }
    return uniteAccesses(all);
  }
}

/** What conditions that must all hold make of an access by key. */
function keysOfAll(branch: Branch, field: LayoutField, tree: 'table' | 'index'): KeyAccess | undefined {
  let keys: KeyAccess | undefined;
  let helpful = 0;
  for (const condition of branch) {
    const other = condition.keysBy(field, tree);
    if (other === undefined) continue;
    helpful++;
    if (keys === undefined) keys = other;
    else {
      const ranges = intersectAll(rangesOf(keys), rangesOf(other));
      keys = { kind: 'ranges', ranges, exact: keys.exact && other.exact };
    }
  }
  return keys === undefined || helpful === branch.length ? keys : { ...keys, exact: false };
}

/** What matches just the rows that none of the branches matches. */
export function opposedTo(branches: readonly Branch[]): Condition {
  return new Condition(
    namesIn(branches.flat()),
    undefined,
    new ComplementSelector(selectAny(branches)),
    readsOf(branches),
  );
}
