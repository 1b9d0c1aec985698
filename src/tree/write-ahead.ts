/**
 * Reads the nodes that changes to a tree are about to fall into, so that whoever applies them waits once for many of them: a merge
 * of few changes all over a large table would otherwise take a round trip for each.
 */
import type { Node } from '../format/node.ts';
import type { BlockSource } from './block-source.ts';
import { loadChild } from './tree.ts';

/** What is known of changes that are still to come. */
export interface Upcoming {
  /**
   * Whether some of them may be with keys from `from` to `to`, both included, for all that is in memory: then what they fall into
   * is read ahead. Without it, nothing is.
   */
  mayChange?(from: Uint8Array, to: Uint8Array): boolean;
}

/** Nodes that are read ahead at the same time. */
const mostAhead = 16;

export class WriteAhead {
  readonly #source: BlockSource;
  /** The node whose children were read last, and which of them is next. */
  #node: Node | undefined;
  #next = 0;
  #running = 0;

  constructor(source: BlockSource) {
    this.#source = source;
  }

  /** Begins to read children of a node, from `from` on, that changes may fall into and that are not in memory. */
  fill(node: Node, from: number, changes: Upcoming): void {
    if (changes.mayChange === undefined) return;
    if (this.#node !== node) this.#next = 0;
    this.#node = node;
    // Of the last child, it is not known here where it ends.
    for (let i = Math.max(from, this.#next); i + 1 < node.count && this.#running < mostAhead; i++) {
      this.#next = i + 1;
      if (!changes.mayChange(node.key(i), node.key(i + 1))) continue;
      if (this.#source.glanceChild(node, i) === undefined && !this.#load(node, i)) return;
    }
  }

  /** False if there is no room for it. */
  #load(node: Node, i: number): boolean {
    const { memory } = this.#source;
    const { sizeBytes } = node.child(i);
    if (!memory.beginAhead(sizeBytes)) return false;
    this.#running++;
    const end = (): void => {
      this.#running--;
      memory.endAhead(sizeBytes);
    };
    // Whoever comes to the node is told what is wrong.
    void loadChild(this.#source, node, i).then(end, end);
    return true;
  }
}
