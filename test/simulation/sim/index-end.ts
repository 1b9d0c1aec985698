/**
 * The end of a run whose table got and lost indexes: with everybody else gone, a process that registers all of them has all of
 * them in the end, but for one that the rows contradict (liveness); and queries find by them what the model has.
 */
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { passTurns, patienceMs, startLast } from './last-instance.ts';
import { agreementIn, rowsOf } from './model.ts';
import type { Row } from './tables.ts';
import { pageIndexes, pages, pagesWith } from './tables.ts';
import type { World } from './world.ts';

/** Waits until every index is there, or is known to be impossible. Undefined: in vain. */
async function statesOf(world: World, db: Database, random: SeededRandom): Promise<Map<string, string> | undefined> {
  const { root } = world;
  const untilMs = root.timeline.nowMs + patienceMs;
  while (root.timeline.nowMs < untilMs) {
    await passTurns(world, db, random);
    const status = await db.indexes(pages);
    const states = new Map(status.map(({ name, state }) => [name, state]));
    if (pageIndexes.every((name) => ['ready', 'failed'].includes(states.get(name) ?? ''))) return states;
  }
  return undefined;
}

/** By each index, rows are found as the model has them. */
async function compare({ ledger, judge }: World, db: Database): Promise<void> {
  const rows = [...rowsOf(ledger.state, pages.name).values()];
  for (const [index, field] of [
    ['ranks', 'slug'],
    ['places', 'rank'],
    ['label', 'label'],
  ] as const) {
    for (const value of new Set(rows.map((row) => row[field] ?? null))) {
      const query = db.query(pages.name).where(field, '=', value as string);
      const found = (await query.execute()) as Row[];
      const expected = rows.filter((row) => row[field] === value).length;
      if (found.length !== expected)
        judge.fail('added indexes', `By ${index} ${found.length} rows have ${value}, and in the model ${expected}`);
    }
  }
}

/** Has the table get all of its indexes, after everybody else has left. */
export async function endIndexes(world: World, random: SeededRandom): Promise<void> {
  const { ledger, judge, trace } = world;
  if (rowsOf(ledger.state, pages.name).size === 0) return;
  const db = await startLast(world, random, [pagesWith(new Set(pageIndexes))], { retiredVersions: 'allow' });
  let states = await statesOf(world, db, random);
  // What could not be may be possible by now: it is begun anew once it is dropped.
  if (states?.get('label') === 'failed') {
    await db.dropIndex(pages, 'label');
    states = await statesOf(world, db, random);
  }
  const told = [...(states ?? [])].map((each) => each.join(' ')).join(', ');
  trace.add('simulation', `has indexes ${told}`);
  const wrong = (what: string): void => judge.fail('added indexes', `At the end ${what}: ${told}`);
  if (states === undefined) {
    const status = JSON.stringify(await db.indexes(pages));
    judge.fail('liveness', `With nobody else left, indexes are not all added: ${status}`);
  } else {
    const agreement = agreementIn(pages.name, rowsOf(ledger.state, pages.name));
    if (agreement !== undefined && states.get('label') === 'ready') wrong(`${agreement.keys.join(' and ')} agree`);
    if (agreement === undefined && states.get('label') === 'failed') wrong('no rows agree');
    if (pageIndexes.some((name) => name !== 'label' && states.get(name) !== 'ready')) wrong('one has failed');
    await compare(world, db);
  }
  await db.stop();
}
