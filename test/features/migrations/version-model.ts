/**
 * What two versions of an application see of one table, by the book: for every key the row of the truth and, once the new
 * version has written it, its row together with the row of the truth that it was written with.
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
  readonly truth: Row;
  readonly own: { readonly row: Row; readonly truth: Row } | undefined;
}

/** The row of the new version: what the old one has changed since, and else what it was written as. Undefined: it cannot be. */
export function newRow(rules: Rules, { truth, own }: Entry): Row | undefined {
  const now = rules.forward(truth);
  if (own === undefined || now === undefined) return now;
  const then = rules.forward(own.truth);
  const changed = then === undefined ? changedAlone(rules, truth, own.truth, now) : namesThatDiffer(now, then);
  const kept = Object.entries(own.row).filter(([name]) => !changed.has(name));
  return { ...now, ...Object.fromEntries(kept) };
}

function namesThatDiffer(a: Row, b: Row): Set<string> {
  return new Set(Object.keys(a).filter((name) => a[name] !== b[name]));
}

/** Where the row that was, as a whole, cannot become one of the new version: what each change changes by itself. */
function changedAlone({ forward }: Rules, truth: Row, old: Row, now: Row): Set<string> {
  const changed = new Set<string>();
  for (const name of namesThatDiffer(truth, old)) {
    const then = forward({ ...truth, [name]: old[name] });
    for (const other of then === undefined ? [name] : namesThatDiffer(now, then)) changed.add(other);
  }
  return changed;
}

/** An entry once a row of the new version is written over it. */
export function writtenNew(rules: Rules, row: Row, before: Entry | undefined): Entry {
  const truth = rules.back(row, before?.truth);
  return { truth, own: { row, truth } };
}

/** An entry once a row of the old version is written over it: what was written since is different from then, also if it came back. */
export function writtenOld(row: Row, { truth, own }: Entry): Entry {
  if (own === undefined) return { truth: row, own };
  const touched = Object.entries(truth).filter(([name, value]) => value !== row[name] && own.truth[name] === row[name]);
  return { truth: row, own: { row: own.row, truth: { ...own.truth, ...Object.fromEntries(touched) } } };
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
    return version === 1 ? entry.truth : newRow(this.#rules, entry);
  }

  rows(version: 1 | 2): Row[] {
    return this.ids.map((id) => this.row(version, id) as Row);
  }

  /** Writes a whole row. */
  write(version: 1 | 2, row: Row): void {
    const id = row['id'] as number;
    const before = this.#entries.get(id);
    if (version === 1)
      this.#entries.set(id, before === undefined ? { truth: row, own: undefined } : writtenOld(row, before));
    else this.#entries.set(id, writtenNew(this.#rules, row, before));
  }

  delete(id: number): void {
    this.#entries.delete(id);
  }
}
