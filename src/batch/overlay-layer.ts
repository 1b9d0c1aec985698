/** Lays the operations of a batch over a state of their table. */
import type { Environment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import { treeOfNode } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';
import type { TableState } from '../view/table-state.ts';
import { FoldedChanges } from './folded-changes.ts';
import { encodeChanges } from './make-member.ts';
import type { TableOperations } from './table-operations.ts';

/** Makes a layer over a state, for an overlay, of the operations from position `from` on; undefined if they change nothing. */
export async function overlayLayer(
  list: TableOperations,
  from: number,
  state: TableState,
  environment: Environment,
): Promise<Tree | undefined> {
  const pacer = new Pacer(environment);
  const folded = await FoldedChanges.of(list, state, await list.orderFrom(from, pacer), pacer, { forOverlay: true });
  return folded.done ? undefined : treeOfNode(await encodeChanges(list.shape, folded, pacer));
}
