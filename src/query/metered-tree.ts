/** Trees that tell a meter which blocks they use, for a single run of a query. */
import type { BlockRef } from '../format/child-ref.ts';
import type { Node } from '../format/node.ts';
import type { CacheCounters } from '../cache/block-cache.ts';
import type { CacheSlot } from '../cache/cached-node.ts';
import type { ReadMemory } from '../cache/query-memory.ts';
import { TableState } from '../view/table-state.ts';
import { noBlocks } from '../tree/block-source.ts';
import type { BlockSource } from '../tree/block-source.ts';
import { SingleFlight } from '../tree/single-flight.ts';
import { SplitTree } from '../tree/split-tree.ts';
import { Tree } from '../tree/tree.ts';
import type { TreeIdentity } from '../tree/tree.ts';

/** Counts blocks. */
export interface BlockMeter {
  /** A block is about to be loaded. May throw to prevent it. */
  charge(sizeBytes: number): void;
  /** A block is used, perhaps again. */
  use?(node: Node): void;
}

/** A state whose blocks are counted: those of an index by the meter for its name, all others by that for none. */
export function meteredState(state: TableState, meterOf: (index?: string) => BlockMeter): TableState {
  const metered = (tree: Tree, index?: string): Tree => {
    if (tree instanceof SplitTree) {
      const { lower, upper, bound } = tree;
      return new SplitTree(lower && metered(lower, index), metered(upper, index), bound);
    }
    return tree.ref === null || tree.source === noBlocks ? tree : new MeteredTree(tree, meterOf(index));
  };
  const indexes = new Map([...state.indexes].map(([name, tree]) => [name, metered(tree, name)]));
  const layers = state.layers.map((layer) => metered(layer));
  const indexVersions = state.indexVersions.map((indexVersion) => ({
    ...indexVersion,
    tree: metered(indexVersion.tree, indexVersion.index.name),
  }));
  return new TableState(state.shape, metered(state.tree), indexes, layers, indexVersions, state.blanks, state.added);
}

class MeteredSource implements BlockSource {
  readonly #source: BlockSource;
  readonly #meter: BlockMeter;
  readonly #loads = new SingleFlight<Node>();

  constructor(source: BlockSource, meter: BlockMeter) {
    this.#source = source;
    this.#meter = meter;
  }

  get counters(): CacheCounters {
    return this.#source.counters;
  }

  get memory(): ReadMemory {
    return this.#source.memory;
  }

  find(ref: BlockRef): CacheSlot | undefined {
    const slot = this.#source.find(ref);
    if (slot?.node !== undefined) this.#meter.use?.(slot.node);
    return slot;
  }

  peekChild(node: Node, i: number, passing?: boolean): Node | undefined {
    const child = this.#source.peekChild(node, i, passing);
    if (child !== undefined) this.#meter.use?.(child);
    return child;
  }

  glance(ref: BlockRef): Node | undefined {
    return this.#source.glance(ref);
  }

  glanceChild(node: Node, i: number): Node | undefined {
    return this.#source.glanceChild(node, i);
  }

  async load(ref: BlockRef, passing?: boolean): Promise<Node> {
    return this.loadBy(ref, () => this.#source.load(ref, passing));
  }

  loadBy(ref: BlockRef, load: () => Promise<Node>): Promise<Node> {
    const name = `${ref.birth} ${ref.id}`;
    return this.#loads.share(name, () => {
      if (this.#source.find(ref)?.node === undefined) this.#meter.charge(ref.sizeBytes);
      return load().then((node) => {
        this.#meter.use?.(node);
        return node;
      });
    });
  }
}

class MeteredTree extends Tree {
  readonly #tree: Tree;
  readonly #source: MeteredSource;

  constructor(tree: Tree, meter: BlockMeter) {
    const source = new MeteredSource(tree.source, meter);
    super(source, tree.ref, tree.node);
    this.#tree = tree;
    this.#source = source;
  }

  override get identity(): TreeIdentity | undefined {
    return this.#tree.identity;
  }

  override get mayBreak(): boolean {
    return this.#tree.mayBreak;
  }

  override peekRoot(): Node | undefined {
    return this.#tree.peekRoot();
  }

  override glanceRoot(): Node | undefined {
    return this.#tree.glanceRoot();
  }

  override async loadRoot(): Promise<Node> {
    return this.peekRoot() ?? this.#source.loadBy(this.ref as BlockRef, () => this.#tree.loadRoot());
  }
}
