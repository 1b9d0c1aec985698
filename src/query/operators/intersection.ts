/** Rows whose primary keys several indexes have: the entries of one of them are looked for in all others. */
import type { TableState } from '../../view/table-state.ts';
import type { Tree } from '../../tree/tree.ts';
import type { HitList, HitStream } from './row-batch.ts';
import { indexCursor } from './index-cursor.ts';
import { mostKeyBytes } from '../planner/index-intersections.ts';
import { KeySet, SortedProbe } from './key-probe.ts';
import type { KeyProbe } from './key-probe.ts';
import { isMerged } from '../planner/access-paths.ts';
import type { IntersectionAccess } from '../planner/access-paths.ts';
import type { QueryWork } from './work-counters.ts';
import type { KeyRange } from '../../tree/cursor.ts';

export interface IntersectionOptions {
  readonly state: TableState;
  readonly access: IntersectionAccess;
  /** Called between reads. Throws if the rows are of no use any more. */
  readonly breathe: () => void | Promise<void>;
  readonly work: QueryWork;
  /** Opens the first index, for rows whose keys are wherever the probes ask for them. */
  readonly open: (probes: readonly KeyProbe[]) => HitStream;
  /** Opens the first index for rows that are then tested for what the other indexes would have told. */
  readonly openFirst: () => HitStream;
}

export class IntersectionStream implements HitStream {
  readonly #options: IntersectionOptions;
  #stream: HitStream | undefined;

  constructor(options: IntersectionOptions) {
    this.#options = options;
  }

  next(hits: HitList): boolean | Promise<boolean> {
    if (this.#stream !== undefined) return this.#stream.next(hits);
    return this.#prepare().then((stream) => {
      this.#stream = stream;
      return stream.next(hits);
    });
  }

  async #prepare(): Promise<HitStream> {
    const { access, state, breathe, work, open, openFirst } = this.#options;
    const { first, others } = access;
    const probes: KeyProbe[] = [];
    let keys: KeySet | undefined;
    for (const other of others) {
      const tree = state.treeOf(other.index) as Tree;
      if (isMerged(first, other)) {
        probes.push(new SortedProbe(tree, other.index, other.ranges[0] as KeyRange, first.descending));
        continue;
      }
      const more = new KeySet(state.shape.keyField);
      const cursor = indexCursor(tree, { ...other, descending: false }, breathe);
      const options = { within: keys, maxBytes: mostKeyBytes(state), breathe };
      const entries = await more.addAll(cursor, other.index, options);
      // There are more of them than it looked like.
      if (entries === undefined) return openFirst();
      work.entries += entries;
      keys = more;
    }
    return open(keys === undefined ? probes : [keys, ...probes]);
  }
}
