/** Changes of the system tables of unfinished loads, as parts of commits. */
import type { FlushContext } from '../batch/flush.ts';
import { makeMember } from '../batch/make-member.ts';
import { TableOperations } from '../batch/table-operations.ts';
import { loadRunsShape, loadsShape, runsOfLoad } from '../catalog/unfinished-loads.ts';
import type { CommitMember } from '../format/commit.ts';
import type { BridgedTable } from '../migration/bridge.ts';
import type { View } from '../view/view.ts';

/** Makes the changes of system tables, on the view whose tail is the slot before the commit. */
export function systemChanges(
  context: FlushContext,
  view: View,
  operations: readonly TableOperations[],
): Promise<CommitMember> {
  const tableOf = ({ shape }: TableOperations): BridgedTable => {
    const state = view.table(shape.name) ?? view.emptyTable(shape.schema);
    return { state, isWhole: true, isSole: false, active: undefined, checked: [] };
  };
  return makeMember(operations, new Map(), tableOf, { ...context, slot: view.tail + 1, validatorOf: () => undefined });
}

/** The operations that remove the record of a load. */
export async function removalOf(context: FlushContext, view: View, name: string): Promise<TableOperations[]> {
  const loads = new TableOperations(loadsShape, context.environment);
  loads.addDelete(name);
  const runs = new TableOperations(loadRunsShape, context.environment);
  for (const { run } of await runsOfLoad(view, name)) runs.addDelete([name, run]);
  return runs.count === 0 ? [loads] : [loads, runs];
}
