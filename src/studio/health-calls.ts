/** Calls about the instance and its store: statistics, migrations, indexes, blocks. */
import { defined } from '../base/options.ts';
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import type { Calls } from './messages.ts';

/** `health`: what goes on in the database. */
export async function health(context: CallContext, _: Asked, signal: AbortSignal): Promise<Calls['health'][1]> {
  const { db } = context;
  const names = (await db.tables({ signal })).map(({ name }) => name);
  // Calls at the same time share their look at the store.
  const [statuses, indexes] = await Promise.all([
    Promise.all(names.map((name) => db.migrationStatus(name, { signal }))),
    Promise.all(names.map(async (table) => ({ table, indexes: await db.indexes(table, { signal }) }))),
  ]);
  return {
    health: db.health(),
    stats: db.stats(),
    migrations: statuses.filter(({ state }) => state !== 'none'),
    indexes,
  };
}

/** `bill`: the requests since the instance was created, and how often it looks at the store by itself. */
export function bill({ db }: CallContext): Promise<Calls['bill'][1]> {
  const stats = db.stats();
  const { mode, intervalMs } = stats.polling;
  return Promise.resolve({ stats, pollingMs: mode === 'onDemand' ? null : intervalMs });
}

/** `block`: a block of a table or an index. */
export function block({ db }: CallContext, asked: Asked, signal: AbortSignal): Promise<Calls['block'][1]> {
  const index = asked.optionalText('index');
  const name = asked.optionalText('name');
  return db.block(asked.text('table'), { signal, ...defined({ index, name }) });
}
