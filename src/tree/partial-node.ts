/** Nodes that only memory holds, with rows that could not be made: they hide what lies below them, and must not be shown. */
import { CachedNode } from '../cache/cached-node.ts';
import type { BlockKind } from '../format/block.ts';
import type { Node } from '../format/node.ts';

export class PartialNode extends CachedNode {
  /** For each entry whose row could not be made, why. */
  readonly broken: ReadonlyMap<number, Error>;

  constructor(name: string, kind: BlockKind, bytes: Uint8Array, broken: ReadonlyMap<number, Error>) {
    super(name, kind, bytes);
    this.broken = broken;
  }
}

/** The entries of a node whose rows could not be made, and why; undefined where there are none. */
export function brokenIn(node: Node): ReadonlyMap<number, Error> | undefined {
  return node instanceof PartialNode ? node.broken : undefined;
}
