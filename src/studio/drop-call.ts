/** The call that drops a table, whose name somebody has typed for that. */
import { InvalidOptionError } from '../index.ts';
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import type { Calls } from './messages.ts';

/** `drop`: drops a table. Throws `InvalidOptionError` if another name was typed. */
export async function drop(context: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['drop'][1]> {
  context.requireWrite('drop');
  const [table, typed] = [asked.text('table'), asked.text('typed')];
  if (typed !== table) {
    const message = `Table ${table} was not dropped: the name that was typed is another one. Type ${table} to drop it.`;
    throw new InvalidOptionError('typed', message);
  }
  await context.db.dropTable(table, { signal });
  return { position: context.db.position };
}
