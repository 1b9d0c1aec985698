/**
 * What two versions of an application see of one table, by the book: for every key the row of the truth and, once the new
 * version has written it, its row together with the row of the truth that it was written with.
 */
import type { Row } from './versions.ts';

/** The rules of one pair of versions. */
export interface Rules {
  /** The row of the new version that a row of the old one becomes. */
  readonly forward: (row: Row) => Row;
  /** The row of the old version once a row of the new one was written over the one before, if there was one. */
  readonly back: (row: Row, before: Row | undefined) => Row;
}

interface Entry {
  readonly truth: Row;
  readonly own: { readonly row: Row; readonly truth: Row } | undefined;
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
    if (version === 1) return entry.truth;
    const now = this.#rules.forward(entry.truth);
    if (entry.own === undefined) return now;
    const then = this.#rules.forward(entry.own.truth);
    const kept = Object.entries(entry.own.row).filter(([name]) => now[name] === then[name]);
    return { ...now, ...Object.fromEntries(kept) };
  }

  rows(version: 1 | 2): Row[] {
    return this.ids.map((id) => this.row(version, id) as Row);
  }

  /** Writes a whole row. */
  write(version: 1 | 2, row: Row): void {
    const id = row['id'] as number;
    const before = this.#entries.get(id);
    if (version === 1) this.#entries.set(id, { truth: row, own: before?.own });
    else {
      const truth = this.#rules.back(row, before?.truth);
      this.#entries.set(id, { truth, own: { row, truth } });
    }
  }

  delete(id: number): void {
    this.#entries.delete(id);
  }
}
