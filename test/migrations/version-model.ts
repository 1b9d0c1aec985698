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
  if (then === undefined) return now;
  const kept = Object.entries(own.row).filter(([name]) => now[name] === then[name]);
  return { ...now, ...Object.fromEntries(kept) };
}

/** An entry once a row of the new version is written over it. */
export function writtenNew(rules: Rules, row: Row, before: Entry | undefined): Entry {
  const truth = rules.back(row, before?.truth);
  return { truth, own: { row, truth } };
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
    if (version === 1) this.#entries.set(id, { truth: row, own: before?.own });
    else this.#entries.set(id, writtenNew(this.#rules, row, before));
  }

  delete(id: number): void {
    this.#entries.delete(id);
  }
}
