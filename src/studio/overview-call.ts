/** The call with which a page begins: the tables, and what is to know of the instance. */
import type { Asked } from './asked.ts';
import type { CallContext } from './call-context.ts';
import type { Calls } from './messages.ts';
import { knownPrices } from './price-tables.ts';
import { libraryVersion } from './version.ts';

/** `overview`: the tables of the database. */
export async function overview(context: CallContext, _: Asked, signal: AbortSignal): Promise<Calls['overview'][1]> {
  const { db, options } = context;
  const tables = (await context.tables.all(signal)).map(({ info }) => info);
  const { prices } = options;
  return {
    title: options.title,
    writable: context.isWritable,
    version: libraryVersion,
    position: db.position,
    generation: db.stats().log?.generation ?? 0,
    tables: tables.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    prices: prices === undefined ? knownPrices : [prices, ...knownPrices.filter(({ name }) => name !== prices.name)],
  };
}
