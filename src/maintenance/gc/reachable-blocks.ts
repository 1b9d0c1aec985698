/** Which blocks some states of the database refer to, catalogues among them. Reads inner nodes only: a parent names its leaves. */
import type { Pacer } from '../../base/pacer.ts';
import type { Block0 } from '../../format/block0.ts';
import { catalogueName } from '../../format/catalogue.ts';
import { blockName } from '../../format/keys.ts';
import type { TreePlace } from '../../format/keys.ts';
import type { Node } from '../../format/node.ts';
import type { ViewContext } from '../../view/view.ts';
import { loadChild } from '../../tree/tree.ts';
import type { Tree } from '../../tree/tree.ts';

/** Inner nodes that are read at the same time. */
const readsAtOnce = 16;

export class ReachableBlocks {
  /** Names of the blocks, with their sizes in bytes. */
  readonly names: Map<string, number> = new Map();
  readonly #context: ViewContext;
  readonly #pacer: Pacer;

  constructor(context: ViewContext, pacer: Pacer) {
    this.#context = context;
    this.#pacer = pacer;
  }

  /** Adds what a Block 0 reaches. Rejects if any of it cannot be read: then nothing may be deleted. */
  async add(block0: Block0, signal: AbortSignal | undefined): Promise<void> {
    const { catalogue } = block0;
    if (catalogue !== undefined) this.names.set(catalogueName(catalogue.ref), catalogue.ref.sizeBytes);
    for (const { place, tree } of this.#context.trees(block0)) await this.#addTree(place, tree, signal);
  }

  async #addTree(place: TreePlace, tree: Tree, signal: AbortSignal | undefined): Promise<void> {
    if (tree.ref === null) return;
    const name = blockName(place, tree.ref);
    // States share most of their blocks, and all that is below a block that they share.
    if (this.names.has(name)) return;
    this.names.set(name, tree.ref.sizeBytes);
    if (tree.ref.level === 0) return;
    let level = [await tree.loadRoot()];
    while (level.length > 0) level = await this.#addChildren(place, tree, level, signal);
  }

  /** Adds the children of nodes of one level, and returns those children that have children themselves. */
  async #addChildren(
    place: TreePlace,
    tree: Tree,
    parents: readonly Node[],
    signal: AbortSignal | undefined,
  ): Promise<Node[]> {
    const next: Node[] = [];
    let reads: Promise<Node>[] = [];
    for (const parent of parents) {
      for (let i = 0; i < parent.count; i++) {
        if (this.#pacer.due()) await this.#pacer.pause();
        signal?.throwIfAborted();
        const child = parent.child(i);
        const name = blockName(place, child);
        if (this.names.has(name)) continue;
        this.names.set(name, child.sizeBytes);
        if (parent.level === 1) continue;
        reads.push(loadChild(tree.source, parent, i));
        if (reads.length < readsAtOnce) continue;
        next.push(...(await Promise.all(reads)));
        reads = [];
      }
    }
    next.push(...(await Promise.all(reads)));
    return next;
  }
}
