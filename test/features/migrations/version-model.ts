/**
 * What two versions of an application see of one table, by the book: for every key the row of the active version and, once the new
 * version has written it, its row together with the row of the active version that it was written with.
 */
import type { Row } from './versions.ts';

/** The rules of one pair of versions. */
export interface Rules {
  /** The row of the new version that a row of the old one becomes; undefined if it cannot become one. */
  readonly forward: (row: Row) => Row | undefined;
  /** The row of the old version once a row of the new one was written over the one before, if there was one. */
  readonly back: (row: Row, before: Row | undefined) => Row;
}

export interface Entry {
  readonly active: Row;
  readonly own: { readonly row: Row; readonly active: Row } | undefined;
}

/** The row of the new version: what the old one has changed since, and else what it was written as. Undefined: it cannot be. */
export function newRow(rules: Rules, { active, own }: Entry): Row | undefined {
  const now = rules.forward(active);
  if (own === undefined || now === undefined) return now;
  const then = rules.forward(own.active);
  const changed = then === undefined ? changedAlone(rules, active, own.active, now) : namesThatDiffer(now, then);
  const kept = Object.entries(own.row).filter(([name]) => !changed.has(name));
  return { ...now, ...Object.fromEntries(kept) };
}

function namesThatDiffer(a: Row, b: Row): Set<string> {
  return new Set(Object.keys(a).filter((name) => a[name] !== b[name]));
}

/** Where the row that was, as a whole, cannot become one of the new version: what each change changes by itself. */
function changedAlone({ forward }: Rules, active: Row, old: Row, now: Row): Set<string> {
  const changed = new Set<string>();
  for (const name of namesThatDiffer(active, old)) {
    const then = forward({ ...active, [name]: old[name] });
    for (const other of then === undefined ? [name] : namesThatDiffer(now, then)) changed.add(other);
  }
  return changed;
}

/** An entry once a row of the new version is written over it. */
export function writtenNew(rules: Rules, row: Row, before: Entry | undefined): Entry {
  const active = rules.back(row, before?.active);
  return { active, own: { row, active } };
}

/** An entry once a row of the old version is written over it: what was written since is different from then, also if it came back. */
export function writtenOld(row: Row, { active, own }: Entry): Entry {
  if (own === undefined) return { active: row, own };
  const touched = Object.entries(active).filter(
    ([name, value]) => value !== row[name] && own.active[name] === row[name],
  );
  return { active: row, own: { row: own.row, active: { ...own.active, ...Object.fromEntries(touched) } } };
}

export class VersionModel {
  readonly #rules: Rules;
  readonly #entries = new Map<number, Entry>();

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  has(id: number): boolean {
    return this.#entries.has(id);
  }

  get ids(): number[] {
    return [...this.#entries.keys()].toSorted((a, b) => a - b);
  }

  row(version: 1 | 2, id: number): Row | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    return version === 1 ? entry.active : newRow(this.#rules, entry);
  }

  rows(version: 1 | 2): Row[] {
    return this.ids.map((id) => this.row(version, id) as Row);
  }

  /** Writes a whole row. */
  write(version: 1 | 2, row: Row): void {
    const id = row['id'] as number;
    const before = this.#entries.get(id);
    if (version === 1)
      this.#entries.set(id, before === undefined ? { active: row, own: undefined } : writtenOld(row, before));
    else this.#entries.set(id, writtenNew(this.#rules, row, before));
  }

  delete(id: number): void {
    this.#entries.delete(id);
  }
}
