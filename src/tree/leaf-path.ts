/** The way from a root to a leaf, and from there to the next leaf within a range of keys. */
import type { Node } from '../format/node.ts';

/** An inner node and the child that the way leads to. */
export interface Step {
  readonly node: Node;
  child: number;
}

export class LeafPath {
  readonly #from: Uint8Array | undefined;
  readonly #to: Uint8Array | undefined;
  readonly #descending: boolean;
  #steps: Step[] = [];

  /** `from` inclusive, `to` exclusive; undefined means unbounded. */
  constructor(from: Uint8Array | undefined, to: Uint8Array | undefined, descending: boolean) {
    this.#from = from;
    this.#to = to;
    this.#descending = descending;
  }

  /** A path of its own that leads where this one does. */
  copy(): LeafPath {
    const copied = new LeafPath(this.#from, this.#to, this.#descending);
    copied.#steps = this.#steps.map(({ node, child }) => ({ node, child }));
    return copied;
  }

  /** Goes on below an inner node: to its first child that can have keys of the range, in the path's direction. */
  enter(node: Node): Step {
    const from = this.#from;
    const to = this.#to;
    let child: number;
    // Below a node that was entered from its side, that is simply its first or last.
    if (!this.#descending) child = from === undefined ? 0 : node.childFor(from);
    else child = to === undefined ? node.count - 1 : node.childFor(to);
    const step = { node, child };
    this.#steps.push(step);
    return step;
  }

  /** Goes to the next child, perhaps of a node further up; undefined once nothing more is in the range. */
  advance(): Step | undefined {
    for (;;) {
      const step = this.#steps[this.#steps.length - 1];
      if (step === undefined) return undefined;
      if (this.#descending && this.#endsBefore(step)) return undefined;
      step.child += this.#descending ? -1 : 1;
      if (step.child < 0 || step.child >= step.node.count) {
        this.#steps.pop();
        continue;
      }
      if (!this.#descending && this.#endsBefore(step)) return undefined;
      return step;
    }
  }

  /** Whether the separator at a step shows that nothing beyond it is in the range, which spares reading a block. */
  #endsBefore({ node, child }: Step): boolean {
    const from = this.#from;
    const to = this.#to;
    if (this.#descending) return from !== undefined && node.compareKey(child, from, from.length) <= 0;
    return to !== undefined && node.compareKey(child, to, to.length) >= 0;
  }
}
