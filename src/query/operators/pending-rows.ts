/**
 * The rows of one layer by way of an index: those that commits which are not merged yet have left there, in the order of
 * the index.
 */
import { isPromise } from '../../base/brands.ts';
import { invariant } from '../../base/invariant.ts';
import type { Pacer } from '../../base/pacer.ts';
import type { Node } from '../../format/node.ts';
import { entriesOf } from '../../view/layer-entries.ts';
import type { LayerEntries } from '../../view/layer-entries.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import type { HitList, HitStream } from './row-batch.ts';
import { indexCursor } from './index-cursor.ts';
import type { IndexAccess } from '../planner/access-paths.ts';
import type { QueryWork } from './work-counters.ts';
import type { Filter } from '../conditions/selector.ts';

/** Entries that are gone through before whoever asks may do something else; fewer where each row takes long. */
const entriesAtOnce = 1024;
const slowEntriesAtOnce = 64;

export interface LayerStreamOptions {
  readonly state: TableState;
  /** Which of its layers: 0 is the newest. */
  readonly position: number;
  readonly access: IndexAccess;
  /** What rows are tested for: all that the query asks. */
  readonly filter: Filter;
  readonly work: QueryWork;
  readonly pacer: Pacer;
}

export class LayerStream implements HitStream {
  readonly #state: TableState;
  readonly #layer: Tree;
  readonly #newer: readonly Tree[];
  readonly #access: IndexAccess;
  readonly #filter: Filter;
  readonly #work: QueryWork;
  readonly #pacer: Pacer;
  readonly #descending: boolean;
  #rows: Uint32Array | undefined;
  #cursor: RunCursor | undefined;
  /** What is left of the present run. */
  #from = 0;
  #to = 0;
  #key = new Uint8Array(64);

  constructor({ state, position, access, filter, work, pacer }: LayerStreamOptions) {
    this.#state = state;
    this.#layer = state.layers[position] as Tree;
    this.#newer = state.layers.slice(0, position);
    this.#access = access;
    this.#filter = filter;
    this.#work = work;
    this.#pacer = pacer;
    this.#descending = access.oneValue && access.descending;
  }

  next(hits: HitList): boolean | Promise<boolean> {
    if (this.#cursor !== undefined) return this.#read(hits);
    const entries = entriesOf(this.#layer, this.#state.shape, this.#access.index, this.#pacer);
    return isPromise(entries) ? entries.then((made) => this.#begin(made, hits)) : this.#begin(entries, hits);
  }

  #begin({ tree, rows }: LayerEntries, hits: HitList): boolean {
    this.#rows = rows;
    this.#cursor = indexCursor(tree, this.#access);
    return this.#read(hits);
  }

  #read(hits: HitList): boolean {
    const most = hits.count + hits.wanted;
    const atOnce = this.#filter.rowsAtOnce(this.#filter.slow ? slowEntriesAtOnce : entriesAtOnce);
    for (let left = atOnce; left > 0 && hits.count < most; left--) {
      // What was added before the end is told first.
      if (this.#from >= this.#to && !this.#advance()) return left < atOnce;
      const i = this.#descending ? --this.#to : this.#from++;
      this.#add((this.#rows as Uint32Array)[i] as number, hits);
    }
    return true;
  }

  #advance(): boolean {
    const cursor = this.#cursor as RunCursor;
    const moved = cursor.next();
    invariant(!isPromise(moved), 'Entries that are in memory are read without waiting');
    if (!moved) return false;
    this.#from = cursor.from;
    this.#to = cursor.to;
    return true;
  }

  #add(i: number, hits: HitList): void {
    const node = this.#layer.node as Node;
    this.#work.rows++;
    if (this.#isHidden(node, i)) return;
    const base = node.rowBase(i);
    if (!this.#filter.matches(node, base)) return;
    this.#work.matches++;
    hits.add(node, base);
  }

  /** Whether a later commit has changed the row. */
  #isHidden(node: Node, i: number): boolean {
    if (this.#newer.length === 0) return false;
    const length = node.keyLength(i);
    if (length > this.#key.length) this.#key = new Uint8Array(length * 2);
    node.copyKey(i, this.#key, 0);
    return this.#newer.some((layer) => layer.lookup(this.#key, length) !== undefined);
  }
}
