/** Counts the requests for blocks by the table that they belong to, for statistics. */
import { folders, unescapeSegment } from '../format/object-names.ts';
import type { ObservedRequest } from '../storage/wrap/observed-driver.ts';

/** The requests for the blocks of one table and its indexes, as `db.stats()` reports them. */
export interface TableRequests {
  /** Name of the table. */
  readonly table: string;
  /** Number of reads, whatever their outcome. */
  readonly reads: number;
  /** Number of writes, whatever their outcome. */
  readonly writes: number;
  /** Bytes that were read and written. */
  readonly bytes: number;
}

export class TableRequestCounts {
  readonly #start: string;
  readonly #counts = new Map<string, { reads: number; writes: number; bytes: number }>();

  /** `prefix`: that of the database. */
  constructor(prefix: string) {
    this.#start = `${prefix}/`;
  }

  /** Notes a request. Those for other objects than blocks are passed over. */
  note({ kind, key, bytes }: Pick<ObservedRequest, 'kind' | 'key' | 'bytes'>): void {
    if ((kind !== 'get' && kind !== 'put') || !key.startsWith(this.#start)) return;
    const [folder, segment] = key.slice(this.#start.length).split('/', 2);
    if (segment === undefined || (`${folder}/` !== folders.data && `${folder}/` !== folders.indexes)) return;
    const counts = this.#counts.get(segment) ?? { reads: 0, writes: 0, bytes: 0 };
    if (kind === 'get') counts.reads++;
    else counts.writes++;
    counts.bytes += bytes;
    this.#counts.set(segment, counts);
  }

  /** Returns the counts, the tables with the most requests first. */
  snapshot(): TableRequests[] {
    const all = [...this.#counts].map(([segment, { reads, writes, bytes }]) => {
      return { table: unescapeSegment(segment), reads, writes, bytes };
    });
    return all.toSorted((a, b) => b.reads + b.writes - a.reads - a.writes);
  }
}
