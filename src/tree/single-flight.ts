/** Blocks on their way: those who ask for one meanwhile share it. */
import type { Node } from '../format/node.ts';

/** A block that is being read, as long as it is. */
interface Load<N extends Node> {
  node: Promise<N> | undefined;
}

export class SingleFlight<N extends Node> {
  /**
   * It is not enough to delete what has arrived. A map that makes room for more leaves its former table behind, with all
   * that was in it then and a link to the next table. As soon as one of those tables is old, as each is that outlives a
   * collection of the whole heap, the young ones behind it count as in use: scans would leave half of the blocks that
   * they pass to the next such collection. So the tables hold what can be emptied.
   */
  readonly #loads = new Map<string, Load<N>>();

  /** A block that is on its way, or else that `read` gives. */
  share(name: string, read: () => Promise<N>): Promise<N> {
    const known = this.#loads.get(name)?.node;
    if (known !== undefined) return known;
    const load: Load<N> = { node: undefined };
    const node = read().finally(() => {
      this.#loads.delete(name);
      load.node = undefined;
    });
    load.node = node;
    this.#loads.set(name, load);
    return node;
  }
}
